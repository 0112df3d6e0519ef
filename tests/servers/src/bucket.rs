//! A private object store that speaks S3's protocol.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
};

use tempfile::TempDir;

use crate::{free_port, installation::Installation, supervised::SupervisedChild};

/// A server with one bucket, which stores nothing on disk.
pub struct Bucket {
    port: u16,
    folder: TempDir,
    server: Option<SupervisedChild>,
}

/// The name of the bucket.
const NAME: &str = "files";

impl Bucket {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut bucket = Self { port: free_port(), folder, server: None };
        bucket.restart();
        bucket
    }

    /// Starts the server again, with an empty bucket.
    pub fn restart(&mut self) {
        self.stop();
        let command =
            [program().display().to_string(), "-H".into(), "127.0.0.1".into(), "-p".into(), self.port.to_string()];
        let folder = self.folder.path();
        let server = SupervisedChild::start(&command, "TERM", folder, &folder.join("s3.log"));
        server.wait_until(|| self.answer("PUT", &format!("/{NAME}")).is_some());
        self.server = Some(server);
    }

    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Returns the variables that name the store, and a path in its bucket.
    pub fn settings(&self) -> [(&'static str, String); 6] {
        [
            ("HOLDFAST_FILES_URL", format!("s3://{NAME}/some/path")),
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "key".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ]
    }

    /// Returns the list of the bucket's objects, as XML.
    pub fn listing(&self) -> String {
        self.answer("GET", &format!("/{NAME}")).expect("the object store answers")
    }

    fn answer(&self, method: &str, path: &str) -> Option<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(socket, "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n").ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        answer.lines().next()?.contains(" 200 ").then_some(answer)
    }
}

fn program() -> PathBuf {
    Installation::of("tests/servers/s3", "servers/s3").python().join("bin/moto_server")
}
