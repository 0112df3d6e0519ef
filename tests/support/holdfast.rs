//! The real executable, which tests start as an operator does.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use tempfile::TempDir;
use test_servers::{Postgres, Redis, TestDatabase};

use super::{Client, ScriptGate, TIMEOUT};

/// A process of Holdfast, which ends when it is dropped.
pub struct Holdfast {
    child: Child,
    log: Receiver<String>,
    log_lines: Vec<String>,
    base: Option<String>,
    /// The data folder, which is removed after the process has ended.
    _data: Option<Arc<TempDir>>,
}

impl Holdfast {
    /// Returns a command without the tests' own environment. `HOLDFAST_PROGRAM` names another build of the program.
    pub fn command() -> Command {
        Self::command_of(std::env::var_os("HOLDFAST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into()))
    }

    /// Returns a command of the version before.
    pub fn previous_command() -> Command {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/previous/holdfast");
        assert!(program.exists(), "tests/servers/previous_version.sh target/previous builds the version before");
        Self::command_of(program.into())
    }

    fn command_of(program: OsString) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOLDFAST_ADDR", "127.0.0.1:0")
            .env(ScriptGate::VARIABLE, ScriptGate::folder())
            // Stdio servers must be able to read the test's files.
            .env("HOLDFAST_MCP_USER", own_user().to_string());
        command
    }

    /// Starts a process, and reads its log.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, log) = mpsc::channel();
        let stderr = child.stderr.take().unwrap();
        let verbose = std::env::var_os("HOLDFAST_TEST_LOG").is_some();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if verbose {
                    eprintln!("{line}");
                }
                if sender.send(line).is_err() && !verbose {
                    break;
                }
            }
        });
        Self { child, log, log_lines: Vec::new(), base: None, _data: None }
    }

    /// Waits for a log line with this part, and returns it.
    pub fn wait_for_log(&mut self, part: &str) -> String {
        if let Some(line) = self.log_lines.iter().find(|line| line.contains(part)) {
            return line.clone();
        }
        loop {
            let line = self
                .log
                .recv_timeout(TIMEOUT)
                .unwrap_or_else(|_| panic!("no log line has {part:?}: {:#?}", self.log_lines));
            self.log_lines.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits for the first `n` log lines with this part, and returns them.
    pub fn wait_for_logs(&mut self, part: &str, n: usize) -> Vec<String> {
        loop {
            let lines: Vec<String> =
                self.log_lines.iter().filter(|line| line.contains(part)).take(n).cloned().collect();
            if lines.len() == n {
                return lines;
            }
            let line = self.log.recv_timeout(TIMEOUT);
            self.log_lines
                .push(line.unwrap_or_else(|_| panic!("only {lines:#?} have {part:?}: {:#?}", self.log_lines)));
        }
    }

    /// Returns the log so far.
    pub fn log_so_far(&mut self) -> String {
        self.log_lines.extend(self.log.try_iter());
        self.log_lines.join("\n")
    }

    /// Waits until the process listens, and returns its URL.
    pub fn base(&mut self) -> String {
        if self.base.is_none() {
            let line = self.wait_for_log("listens on http://");
            self.base = Some(line[line.find("http://").unwrap()..].trim().to_owned());
        }
        self.base.clone().unwrap()
    }

    pub fn client(&mut self) -> Client {
        Client::new(&self.base())
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the names of the process's threads. Linux keeps 15 characters of each.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        tasks.map(|task| name(task.unwrap()).trim().to_owned()).collect()
    }

    /// Sends a signal, such as `TERM` or `STOP`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "the process has ended before");
    }

    /// Kills the process.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until the process has ended by itself.
    pub fn exit(&mut self) -> ExitStatus {
        let deadline = std::time::Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "the process does not end: {:#?}",
                self.log.try_iter().collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Holdfast {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The URL of a Redis for a command that connects to none.
const NO_REDIS: &str = "redis://127.0.0.1:1";

fn on_database(url: &str) -> Command {
    let mut command = Holdfast::command();
    command.env("DATABASE_URL", url).env("REDIS_URL", NO_REDIS);
    command
}

/// A data folder with the schema, of which each test gets a copy.
static TEMPLATE: OnceLock<TempDir> = OnceLock::new();

/// Copies a data folder with the schema.
fn copy_template(folder: &Path) {
    let template = TEMPLATE.get_or_init(|| {
        let template = tempfile::tempdir().unwrap();
        migrate(Holdfast::command().arg("migrate").env("HOLDFAST_DATA_DIR", template.path()));
        template
    });
    std::fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
    for file in std::fs::read_dir(template.path()).unwrap().flatten() {
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
}

/// Executes `holdfast migrate`, which makes or upgrades the schema of the command's database.
pub fn migrate(command: &mut Command) {
    let migrated = command.output().unwrap();
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
}

/// Returns the id of the user who runs the tests.
pub fn own_user() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// Returns the reason that a process prints when it refuses to start.
pub fn refusal(command: &mut Command) -> String {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(!child.wait().unwrap().success(), "it started: {stderr}");
    let line = stderr.lines().find(|line| line.starts_with("holdfast: "));
    line.unwrap_or_else(|| panic!("no sentence says why: {stderr}")).to_owned()
}

/// A data folder, on which a test starts one process after the other.
#[derive(Clone)]
pub struct Embedded {
    pub folder: Arc<TempDir>,
    pub settings: Vec<(&'static str, String)>,
}

impl Embedded {
    pub fn new() -> Self {
        Self { folder: Arc::new(tempfile::tempdir().unwrap()), settings: Vec::new() }
    }

    pub fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.settings.push((variable, value.to_string()));
        self
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn command(&self) -> Command {
        self.configured(Holdfast::command())
    }

    /// Returns a command of the version before.
    pub fn previous_command(&self) -> Command {
        self.configured(Holdfast::previous_command())
    }

    fn configured(&self, mut command: Command) -> Command {
        command.env("HOLDFAST_DATA_DIR", self.data_dir()).envs(self.settings.iter().cloned());
        command
    }

    /// Starts a process. The first one on this folder finds the schema there.
    pub fn start(&self) -> Holdfast {
        self.prepare();
        self.start_as_it_is()
    }

    /// Makes the data folder with the schema unless it exists.
    pub fn prepare(&self) {
        if !self.data_dir().exists() {
            copy_template(&self.data_dir());
        }
    }

    /// Starts a process, which makes its folder and its schema if they do not exist.
    pub fn start_as_it_is(&self) -> Holdfast {
        let mut holdfast = Holdfast::start(&mut self.command());
        holdfast._data = Some(Arc::clone(&self.folder));
        holdfast
    }
}

/// A PostgreSQL database, a Redis, and any number of processes. Short leases keep the tests short.
pub struct ScaledOut {
    pub database_url: String,
    pub redis: Redis,
    pub settings: Vec<(&'static str, String)>,
    _database: Option<TestDatabase>,
}

impl ScaledOut {
    pub fn new() -> Self {
        let database = Postgres::migrated_database(|url| migrate(on_database(url).arg("migrate")));
        Self::as_it_is(database.url().to_owned(), Some(database))
    }

    /// Returns a deployment on a given database, also of another server than the shared one.
    pub fn on(database_url: String, database: Option<TestDatabase>) -> Self {
        migrate(on_database(&database_url).arg("migrate"));
        Self::as_it_is(database_url, database)
    }

    /// Returns a deployment on a database as it is, with or without the schema.
    pub fn as_it_is(database_url: String, database: Option<TestDatabase>) -> Self {
        let settings = vec![("HOLDFAST_LEASE_MS", "1500".to_owned()), ("HOLDFAST_SWEEP_MS", "250".to_owned())];
        Self { database_url, redis: Redis::start(), settings, _database: database }
    }

    pub fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.settings.retain(|(name, _)| *name != variable);
        self.settings.push((variable, value.to_string()));
        self
    }

    pub fn command(&self, role: &str) -> Command {
        self.configured(Holdfast::command(), role)
    }

    /// Returns a command of the version before.
    pub fn previous_command(&self, role: &str) -> Command {
        self.configured(Holdfast::previous_command(), role)
    }

    fn configured(&self, mut command: Command, role: &str) -> Command {
        command.env("DATABASE_URL", &self.database_url).env("REDIS_URL", self.redis.url());
        command.arg(role).envs(self.settings.iter().cloned());
        command
    }

    pub fn api(&self) -> Holdfast {
        Holdfast::start(&mut self.command("api"))
    }

    pub fn worker(&self) -> Holdfast {
        let mut worker = Holdfast::start(&mut self.command("worker"));
        worker.wait_for_log("worker started");
        worker
    }
}
