//! Third-party MCP servers, installed once into `target/mcp-servers` in the versions that `tests/mcp` pins.

use std::{
    net::TcpStream,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use tempfile::TempDir;

use crate::{
    free_port,
    installation::Installation,
    supervised::{SupervisedChild, pause},
};

/// Returns the command of a stdio server with all kinds of tools.
pub fn everything() -> Vec<String> {
    let script = everything_script();
    vec!["node".into(), script, "stdio".into()]
}

/// Returns the command of a stdio server that reads and writes files below a folder.
pub fn filesystem(folder: &Path) -> Vec<String> {
    let script = node_module("@modelcontextprotocol/server-filesystem/dist/index.js");
    vec!["node".into(), script, folder.display().to_string()]
}

/// Returns the command of a stdio server that returns the time.
pub fn time() -> Vec<String> {
    vec![python().join("bin/mcp-server-time").display().to_string()]
}

/// The server with all kinds of tools, on streamable HTTP.
pub struct Everything {
    port: u16,
    folder: TempDir,
    server: Option<SupervisedChild>,
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

    /// Kills the server, as a crash does.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.signal("KILL");
        }
    }

    /// Starts the server again, without its sessions, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        let folder = self.folder.path();
        let port = format!("PORT={}", self.port);
        let command = ["env".into(), port, "node".into(), everything_script(), "streamableHttp".into()];
        self.server = Some(SupervisedChild::start(&command, "KILL", folder, &folder.join("everything.log")));
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            pause();
        }
    }
}

fn everything_script() -> String {
    node_module("@modelcontextprotocol/server-everything/dist/index.js")
}

fn node_module(path: &str) -> String {
    node_modules().join(path).display().to_string()
}

/// Returns the folder with the packages of the servers.
pub fn node_modules() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| Installation::of("tests/mcp", "mcp-servers/node").node()).join("node_modules")
}

fn python() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| Installation::of("tests/mcp", "mcp-servers/python").python())
}
