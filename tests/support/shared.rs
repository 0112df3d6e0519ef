//! The deployments that stories share: one for each mode in a test process, which the first story of the mode starts. A story is
//! a user of its own there, so it meets no data of the others. It breaks no server and changes no setting of a shared one.
//!
//! The processes end with the test process, also if it is killed.

use std::{
    process::Command,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tempfile::TempDir;
use test_servers::SupervisedChild;

use super::{Client, Embedded, ScaledOut};

static EMBEDDED: OnceLock<SharedDeployment> = OnceLock::new();
static SCALED_OUT: OnceLock<SharedDeployment> = OnceLock::new();

/// Characters of a story's name in the name of its user, which has room for a person's name before it.
const STORY_CHARS: usize = 80;

/// Settings for many stories at once. No story waits for a slot or a turn of another one.
const SETTINGS: [(&str, &str); 4] = [
    ("HOLDFAST_SWEEP_MS", "250"),
    ("HOLDFAST_WORKER_CONCURRENCY", "2000"),
    ("HOLDFAST_READS", "64"),
    ("HOLDFAST_SEARCHES", "64"),
];

/// Which of the two a story shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedMode {
    Embedded,
    ScaledOut,
}

/// A story's part of a shared deployment.
pub struct SharedStory {
    pub mode: SharedMode,
    name: String,
}

struct SharedDeployment {
    base: String,
    _servers: Option<ScaledOut>,
    _processes: Vec<SharedProcess>,
}

/// A process of Holdfast that ends with the test process.
struct SharedProcess {
    child: SupervisedChild,
    /// The folder with its log and perhaps its data. The shell that ends the process removes it.
    folder: Arc<TempDir>,
}

impl SharedStory {
    /// Gives a story a name that no other one has.
    pub fn new(mode: SharedMode, fact: &str) -> Self {
        static STORIES: AtomicUsize = AtomicUsize::new(0);
        let number = STORIES.fetch_add(1, Ordering::Relaxed);
        Self { mode, name: format!("{}.{number}", &fact[..fact.len().min(STORY_CHARS)]) }
    }

    /// Starts the deployment if it does not run yet, and returns a client of the story's user.
    pub fn client(&self) -> Client {
        let shared = match self.mode {
            SharedMode::Embedded => EMBEDDED.get_or_init(SharedDeployment::embedded),
            SharedMode::ScaledOut => SCALED_OUT.get_or_init(SharedDeployment::scaled_out),
        };
        Client::of_story(&shared.base, &self.name)
    }
}

impl SharedDeployment {
    fn embedded() -> Self {
        let embedded = SETTINGS.iter().fold(Embedded::new(), |embedded, (name, value)| embedded.with(name, *value));
        embedded.prepare();
        let process = SharedProcess::start(&embedded.command(), embedded.folder);
        process.wait_for_log("worker started");
        Self { base: process.base(), _servers: None, _processes: vec![process] }
    }

    fn scaled_out() -> Self {
        let scaled = SETTINGS.iter().fold(ScaledOut::new(), |scaled, (name, value)| scaled.with(name, *value));
        // No process dies here, and a busy machine must not take runs from a living one.
        let scaled = scaled.with("HOLDFAST_LEASE_MS", 15_000);
        let folder = || Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        let worker = SharedProcess::start(&scaled.command("worker"), folder());
        let api = SharedProcess::start(&scaled.command("api"), folder());
        worker.wait_for_log("worker started");
        Self { base: api.base(), _servers: Some(scaled), _processes: vec![worker, api] }
    }
}

impl SharedProcess {
    fn start(command: &Command, folder: Arc<TempDir>) -> Self {
        let text = |part: &std::ffi::OsStr| part.to_str().expect("settings of tests are texts").to_owned();
        let variables = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", text(name), text(value?))));
        let program = std::iter::once(command.get_program()).chain(command.get_args()).map(text);
        let command: Vec<String> =
            ["env", "-i"].map(str::to_owned).into_iter().chain(variables).chain(program).collect();
        let child = SupervisedChild::start(&command, "KILL", folder.path(), &folder.path().join("holdfast.log"));
        Self { child, folder }
    }

    fn base(&self) -> String {
        let line = self.wait_for_log("listens on http://");
        line[line.find("http://").expect("it is the part")..].trim().to_owned()
    }

    /// Waits for a log line with this part, and returns it.
    fn wait_for_log(&self, part: &str) -> String {
        let mut line = None;
        self.child.wait_until(|| {
            let log = std::fs::read_to_string(self.folder.path().join("holdfast.log")).unwrap_or_default();
            // A line without its end may lack a part of the address.
            line =
                log.split_inclusive('\n').find(|line| line.contains(part) && line.ends_with('\n')).map(str::to_owned);
            line.is_some()
        });
        line.expect("it was waited for")
    }
}
