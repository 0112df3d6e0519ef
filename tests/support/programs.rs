//! A client program of `tests/clients`. It reports to the test in lines of JSON.
//!
//! `{"got": …}` is an item that the program received from its package, in order; `{"end": …}` is the last line, its result.
//! A test either starts a program of its own, or connects to one that serves all tests. A shared program reports
//! `{"failed": …}` as its last line if it fails.

use std::{
    io::BufRead,
    process::{self, Stdio},
    sync::{Arc, Mutex, OnceLock},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, Command},
    time::{Instant, timeout_at},
};

use super::TIMEOUT;

/// A program of `tests/clients` that serves all tests. It ends with this process, which holds its standard input.
pub struct SharedProgram {
    name: &'static str,
    /// The port of the loopback interface at which the process listens.
    running: OnceLock<(u16, process::Child)>,
}

impl SharedProgram {
    pub const fn new(name: &'static str) -> Self {
        Self { name, running: OnceLock::new() }
    }

    /// Opens a connection for one test, and sends the parameters.
    pub async fn connect(&'static self, parameters: Value) -> ClientProgram {
        let port = tokio::task::spawn_blocking(|| self.port()).await.expect("the program starts");
        let (output, input) = TcpStream::connect(("127.0.0.1", port)).await.expect("the program listens").into_split();
        let mut program = ClientProgram {
            name: self.name.to_owned(),
            input: Box::new(input),
            reports: BufReader::new(Box::new(output) as Box<_>).lines(),
            child: None,
            errors: Arc::default(),
        };
        program.tell(parameters).await;
        program
    }

    /// Returns the port, and starts the program first if necessary.
    fn port(&self) -> u16 {
        let (port, _) = self.running.get_or_init(|| {
            let command = test_servers::clients::command(self.name);
            let mut child = process::Command::new(&command[0])
                .args(&command[1..])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("node is installed");
            let mut port = String::new();
            let stdout = child.stdout.take().expect("it is a pipe");
            std::io::BufReader::new(stdout).read_line(&mut port).expect("the program prints its port");
            (port.trim().parse().expect("the program starts"), child)
        });
        *port
    }
}

/// A running client program, or a connection to a shared one. It ends with the test.
pub struct ClientProgram {
    name: String,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    reports: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    /// The process, if it is this test's own.
    child: Option<Child>,
    errors: Arc<Mutex<String>>,
}

impl ClientProgram {
    /// Starts `tests/clients/<name>`. Its arguments are the API's URL and the parameters as JSON.
    pub async fn start(name: &str, base: &str, parameters: Value) -> Self {
        let folder = name.to_owned();
        let command = tokio::task::spawn_blocking(move || test_servers::clients::command(&folder)).await.unwrap();
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .args([base, &parameters.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; ./check says what is needed", command[0]));
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let errors = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().unwrap();
        let received = Arc::clone(&errors);
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                received.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        let reports = BufReader::new(Box::new(output) as Box<_>).lines();
        Self { name: name.to_owned(), input: Box::new(input), reports, child: Some(child), errors }
    }

    /// Sends a line of JSON to the program.
    pub async fn tell(&mut self, line: Value) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap_or_else(|_| self.fail("does not listen"));
    }

    /// Returns the reports up to the n-th one for which `is_it` holds.
    pub async fn up_to_nth(&mut self, mut n: usize, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + TIMEOUT;
        let mut reports_so_far = Vec::new();
        while n > 0 {
            match self.next(deadline).await {
                Ok(got) => reports_so_far.push(got),
                Err(end) => self.fail(&format!("has ended before, with {end}, after {reports_so_far:#?}")),
            }
            n -= usize::from(is_it(reports_so_far.last().unwrap()));
        }
        reports_so_far
    }

    /// Returns all other reports and the result. A process must then exit by itself.
    pub async fn rest(mut self) -> (Vec<Value>, Value) {
        let mut reports_so_far = Vec::new();
        let end = loop {
            // Each report starts the time-out again.
            match self.next(Instant::now() + TIMEOUT).await {
                Ok(got) => reports_so_far.push(got),
                Err(end) => break end,
            }
        };
        if let Some(child) = &mut self.child {
            let exit = timeout_at(Instant::now() + TIMEOUT, child.wait()).await;
            let status = exit.unwrap_or_else(|_| self.fail("does not stop")).unwrap();
            if !status.success() {
                self.fail(&format!("has failed with {status}"));
            }
        }
        (reports_so_far, end)
    }

    /// Returns the next report, or its result as the error.
    async fn next(&mut self, deadline: Instant) -> Result<Value, Value> {
        let line = timeout_at(deadline, self.reports.next_line()).await;
        let line = line.unwrap_or_else(|_| self.fail("has not got there in time")).unwrap();
        let mut report: Value = match line.as_deref().map(serde_json::from_str) {
            Some(Ok(report)) => report,
            _ => self.fail(&format!("has reported {line:?}")),
        };
        if let Some(failure) = report["failed"].as_str() {
            self.fail(&format!("has failed with {failure}"));
        }
        match report.get_mut("got") {
            Some(got) => Ok(got.take()),
            None => Err(report["end"].take()),
        }
    }

    fn fail(&self, how: &str) -> ! {
        panic!("tests/clients/{} {how}: {}", self.name, self.errors.lock().unwrap())
    }
}
