//! The programs of `examples`, installed below `target` with the packages that they pin.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    clients::copy_files,
    free_port,
    installation::{Installation, run},
    packages::collect,
    supervised::SupervisedChild,
};

/// An installed example.
pub struct ExampleProgram {
    /// The folder of the program and its packages.
    pub folder: PathBuf,
    /// The program that runs its scripts.
    pub interpreter: PathBuf,
}

impl ExampleProgram {
    /// Installs `examples/<name>`.
    pub fn install(name: &str) -> Self {
        let installation = Installation::of(&format!("examples/{name}"), &format!("examples/{name}"));
        let (folder, interpreter) = installation.program();
        copy_tree(installation.source(), &folder);
        Self { folder, interpreter }
    }

    /// Builds an application of Next.js, unless the build is newer than every source.
    pub fn build(&self) {
        let lock = File::create(self.folder.with_added_extension("lock")).expect("a file can be made in target");
        lock.lock().expect("a file can be locked");
        let mut sources = Vec::new();
        collect(&self.folder.join("app"), &mut sources);
        sources.extend(["packed", "package.json"].map(|name| self.folder.join(name)));
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
        if changed(&self.folder.join(".next/BUILD_ID")) > sources.iter().filter_map(changed).max() {
            return;
        }
        let mut next = Command::new("node");
        next.args(["node_modules/next/dist/bin/next", "build"]).env("NEXT_TELEMETRY_DISABLED", "1");
        run(next.current_dir(&self.folder));
    }
}

/// A running server of an example. It ends with the test.
pub struct Example {
    pub base: String,
    _child: SupervisedChild,
    _log: TempDir,
}

impl Example {
    /// Starts a server with these arguments of its interpreter, and waits until it listens. `PORT` in an argument is its port.
    pub fn start(program: &ExampleProgram, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let port = free_port();
        let mut command = vec!["env".to_owned(), "-C".to_owned(), program.folder.display().to_string()];
        command.extend(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.extend([format!("PORT={port}"), "NEXT_TELEMETRY_DISABLED=1".to_owned()]);
        command.push(program.interpreter.display().to_string());
        command.extend(arguments.iter().map(|argument| argument.replace("PORT", &port.to_string())));
        let log = tempfile::tempdir().expect("a temporary folder can be made");
        let child = SupervisedChild::start(&command, "TERM", log.path(), &log.path().join("log"));
        child.wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { base: format!("http://127.0.0.1:{port}"), _child: child, _log: log }
    }
}

/// Copies the files of a program and of its folders.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made in target");
    copy_files(from, to);
    for entry in fs::read_dir(from).expect("the folder of the program can be read") {
        let path = entry.expect("the folder of the program can be read").path();
        // A developer may have started the example where it lies.
        let is_built = path.ends_with("node_modules") || path.ends_with(".next");
        if path.is_dir() && !is_built {
            copy_tree(&path, &to.join(path.file_name().expect("a folder has a name")));
        }
    }
}
