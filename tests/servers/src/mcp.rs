//! MCP servers that others wrote: installed once into `target/mcp-servers`, in the versions that `tests/mcp` pins.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tempfile::TempDir;

use crate::{free_port, supervised::Supervised};

/// The command of a server with all kinds of tools, on standard input and output.
pub fn everything() -> Vec<String> {
    let script = everything_script();
    vec!["node".into(), script, "stdio".into()]
}

/// The command of a server that reads and writes files below a folder, on standard input and output.
pub fn filesystem(folder: &Path) -> Vec<String> {
    let script = node_module("@modelcontextprotocol/server-filesystem/dist/index.js");
    vec!["node".into(), script, folder.display().to_string()]
}

/// The command of a server that tells the time, on standard input and output.
pub fn time() -> Vec<String> {
    vec![python().join("bin/mcp-server-time").display().to_string()]
}

/// The server with all kinds of tools, on streamable HTTP.
pub struct Everything {
    port: u16,
    folder: TempDir,
    server: Option<Supervised>,
}

impl Everything {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut everything = Self { port: free_port(), folder, server: None };
        everything.restart();
        everything
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Ends the server without a word, as a crash would.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.signal("KILL");
        }
    }

    /// Starts the server again, which has forgotten its sessions, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        let folder = self.folder.path();
        let port = format!("PORT={}", self.port);
        let command = ["env".into(), port, "node".into(), everything_script(), "streamableHttp".into()];
        self.server = Some(Supervised::start(&command, "KILL", folder, &folder.join("everything.log")));
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            std::thread::yield_now();
        }
    }
}

fn everything_script() -> String {
    node_module("@modelcontextprotocol/server-everything/dist/index.js")
}

fn node_module(path: &str) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        installed("node", &["package.json", "package-lock.json"], |folder| {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
            run(&mut npm);
        })
    });
    folder.join("node_modules").join(path).display().to_string()
}

fn python() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        installed("python", &["requirements.txt"], |folder| {
            run(Command::new("python3").args(["-m", "venv"]).arg(folder));
            let mut pip = Command::new(folder.join("bin/pip"));
            pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "-r"]);
            run(pip.arg(folder.join("requirements.txt")));
        })
    })
}

/// The folder in which what the files pin is installed. Other test processes wait while one installs.
fn installed(name: &str, files: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("this crate lies in the repository");
    let all = root.join("target/mcp-servers");
    let folder = all.join(name);
    fs::create_dir_all(&folder).expect("a folder can be made in target");
    let lock = File::create(all.join(format!("{name}.lock"))).expect("a file can be made in target");
    lock.lock().expect("a file can be locked");
    let read = |file: &&str| fs::read_to_string(root.join("tests/mcp").join(file)).expect("tests/mcp has the file");
    let pinned: String = files.iter().map(read).collect();
    // Written last, so that an interrupted installation is done again.
    let done = all.join(format!("{name}.installed"));
    if fs::read_to_string(&done).is_ok_and(|installed| installed == pinned) {
        return folder;
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made in target");
    for file in files {
        fs::copy(root.join("tests/mcp").join(file), folder.join(file)).expect("a file can be copied to target");
    }
    install(&folder);
    fs::write(&done, pinned).expect("a file can be written in target");
    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; ./check says what is needed"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
