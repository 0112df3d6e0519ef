//! A private Redis.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
};

use tempfile::TempDir;

use crate::{Certificates, free_port, is_installed, supervised::SupervisedChild};

/// A Redis for one test, which stores nothing on disk.
pub struct Redis {
    port: u16,
    tls: Option<Tls>,
    /// More options of the command.
    options: Vec<String>,
    folder: TempDir,
    server: Option<SupervisedChild>,
}

/// The TLS port of the server, for clients with a certificate.
struct Tls {
    port: u16,
    certificates: Certificates,
}

impl Redis {
    pub fn start() -> Self {
        Self::start_with(None, &[])
    }

    /// Starts a copy of another server, which refuses writes.
    pub fn start_replica_of(master: &Self) -> Self {
        Self::start_with(None, &["--replicaof", "127.0.0.1", &master.port.to_string()])
    }

    /// Starts a server of a Cluster, without slots.
    pub(crate) fn start_for_cluster() -> Self {
        // The other servers talk to a port of its own, which is 10,000 higher by default, and perhaps taken.
        let bus = free_port().to_string();
        Self::start_with(None, &["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", &bus])
    }

    /// Starts a server that speaks TLS at `tls_url`.
    pub fn start_with_tls() -> Self {
        Self::start_with(Some(Tls { port: free_port(), certificates: Certificates::make() }), &[])
    }

    fn start_with(tls: Option<Tls>, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let options = options.iter().copied().map(str::to_owned).collect();
        let mut redis = Self { port: free_port(), tls, options, folder, server: None };
        redis.restart();
        redis
    }

    /// Returns the URL for TLS, and the certificates.
    pub fn tls_url(&self) -> (String, &Certificates) {
        let tls = self.tls.as_ref().expect("it was started with TLS");
        (format!("rediss://127.0.0.1:{}", tls.port), &tls.certificates)
    }

    /// Sends a signal to the server, such as `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        self.server.as_ref().expect("it runs").signal(signal);
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Polls until this holds. Panics if the server ends before.
    pub(crate) fn wait_until(&self, holds: impl FnMut() -> bool) {
        self.server.as_ref().expect("it runs").wait_until(holds);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server, as a crash does.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.signal("KILL");
        }
    }

    /// Starts the server again, without data, on the same port.
    pub fn restart(&mut self) {
        self.kill();
        assert!(
            is_installed("redis-server"),
            "redis-server is not installed: run `./check --install`, or install the package redis-server"
        );
        let folder = self.folder.path();
        let port = self.port.to_string();
        let command = ["redis-server", "--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        let command = command.map(str::to_owned).into_iter().chain(["--dir".to_owned(), folder.display().to_string()]);
        let mut command: Vec<String> = command.chain(self.options.iter().cloned()).collect();
        if let Some(Tls { port, certificates }) = &self.tls {
            command.extend(["--tls-port".to_owned(), port.to_string()]);
            for (option, file) in [
                ("--tls-ca-cert-file", "authority.pem"),
                ("--tls-cert-file", "server.pem"),
                ("--tls-key-file", "server.key"),
            ] {
                command.extend([option.to_owned(), certificates.path(file).display().to_string()]);
            }
        }
        let server = SupervisedChild::start(&command, "TERM", folder, &folder.join("redis.log"));
        server.wait_until(|| self.call("PING").is_some());
        self.server = Some(server);
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        let keys = redis_cli(self.port, "DBSIZE");
        keys.trim().parse().expect("Redis counts its keys")
    }

    /// Returns all data, byte for byte.
    pub fn snapshot(&self) -> Vec<u8> {
        for command in ["CONFIG SET rdbcompression no", "SAVE"] {
            assert_eq!(self.call(command).as_deref(), Some("+OK"), "{command}");
        }
        std::fs::read(self.folder.path().join("dump.rdb")).expect("Redis has saved its data")
    }

    /// Removes all data by FLUSHALL.
    pub fn flush_all(&self) {
        self.call("FLUSHALL").expect("Redis answers");
    }

    /// Sends a command; returns the first line of the response, or `None` if the server is away.
    pub fn call(&self, command: &str) -> Option<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        socket.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).ok()?;
        (!answer.is_empty()).then(|| answer.trim_end().to_owned())
    }
}

/// Sends a command to a server of Redis; returns the whole answer, which is empty if the server is away.
pub(crate) fn redis_cli(port: u16, command: &str) -> String {
    let mut client = Command::new("redis-cli");
    client.args(["-p", &port.to_string()]).args(command.split(' '));
    let output = client.output().expect("redis-cli comes with redis-server");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
