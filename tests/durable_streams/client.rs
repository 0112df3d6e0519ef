//! The official client, installed once into `target/clients`, in the version that `tests/clients/durable-streams` pins; and
//! the bad network between it and the server.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Command},
    sync::broadcast,
};

use crate::support::PATIENCE;

/// A running program that says what it is given, line by line.
pub struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub fn follow(url: &str, live: &str) -> Self {
        let folder = installed();
        let mut node = Command::new("node");
        node.arg(folder.join("follow.mjs")).args([url, live]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = node.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line; `None` when the program has ended well.
    pub async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("the program went silent");
        if let Some(line) = line.unwrap() {
            return Some(serde_json::from_str(&line).unwrap());
        }
        assert!(self.child.wait().await.unwrap().success(), "the program says why on its standard error");
        None
    }

    /// All lines that are left.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await {
            lines.push(line);
        }
        lines
    }
}

fn installed() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pinned = root.join("tests/clients/durable-streams");
    let folder = root.join("target/clients/durable-streams");
    fs::create_dir_all(&folder).unwrap();
    // Other test processes wait while one installs.
    let lock = File::create(root.join("target/clients/durable-streams.lock")).unwrap();
    lock.lock().unwrap();
    let read = |folder: &Path| fs::read_to_string(folder.join("package-lock.json")).ok();
    // Written last, so that an interrupted installation is done again.
    let done = root.join("target/clients/durable-streams.installed");
    let is_installed = fs::read_to_string(&done).ok() == read(&pinned);
    for file in ["package.json", "package-lock.json", "follow.mjs"] {
        fs::copy(pinned.join(file), folder.join(file)).unwrap();
    }
    if !is_installed {
        let mut npm = std::process::Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        let output = npm.output().unwrap_or_else(|error| panic!("npm: {error}; ./check says what is needed"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(&done, read(&pinned).unwrap()).unwrap();
    }
    folder
}

/// A network whose connections can be cut, as by a crash of something in between: both ends see a reset.
pub struct Network {
    pub base: String,
    cut: broadcast::Sender<()>,
}

impl Network {
    /// The way to a server, `http://host:port`.
    pub async fn to(server: &str) -> Self {
        let server = server.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let cut = broadcast::Sender::new(1);
        let cuts = cut.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, TcpStream::connect(&server).await.unwrap(), cuts.subscribe()));
            }
        });
        Self { base, cut }
    }

    /// Resets all connections; answers how many there were.
    pub fn cut(&self) -> usize {
        self.cut.send(()).unwrap_or_default()
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, mut cut: broadcast::Receiver<()>) {
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = cut.recv() => {
            client.set_zero_linger().unwrap();
            server.set_zero_linger().unwrap();
        }
    }
}
