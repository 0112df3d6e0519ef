//! The end of a child, or its silence, as operators read it: its exit status, and the last lines of its standard error.

use std::{
    collections::VecDeque,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{process::ChildStderr, sync::watch, time::timeout};

use super::{
    error::ServerProblem,
    hidden::HiddenTexts,
    lines::{LineReader, OutputLine},
};

/// Longest line of standard error that is logged.
const LOGGED_BYTES: usize = 4096;

/// The last lines of standard error that are kept.
const KEPT_LINES: usize = 10;

/// Most characters of each of them.
const KEPT_CHARS: usize = 300;

/// Time for the rest of standard error to arrive after the child's end.
const REST: Duration = Duration::from_millis(500);

/// Cheap to clone; the transport fills it in.
#[derive(Clone)]
pub struct ChildReport {
    ending: Arc<Mutex<ChildEnding>>,
    has_read_all: watch::Receiver<bool>,
}

#[derive(Default)]
struct ChildEnding {
    status: Option<ExitStatus>,
    lines: VecDeque<String>,
}

impl ChildReport {
    /// Reads and logs standard error until its end, because a full pipe would block the child. Secrets are replaced.
    pub fn start(server: &str, errors: ChildStderr, hidden: HiddenTexts) -> Self {
        let (end, has_read_all) = watch::channel(false);
        let report = Self { ending: Arc::default(), has_read_all };
        let (ending, server) = (Arc::clone(&report.ending), server.to_owned());
        tokio::spawn(async move {
            let mut lines = LineReader::new(errors, LOGGED_BYTES);
            loop {
                match lines.next().await {
                    OutputLine::Complete(line) => {
                        let text = hidden.replace_in(&String::from_utf8_lossy(&line));
                        lock(&ending).keep(&text);
                        tracing::debug!(mcp.server = server, line = text, "an MCP server wrote to standard error");
                    }
                    OutputLine::Large => {}
                    OutputLine::TooLong => {
                        tracing::debug!(mcp.server = server, "an MCP server wrote a long line to standard error")
                    }
                    OutputLine::End => break,
                }
            }
            let _ = end.send(true);
        });
        report
    }

    /// Returns the last lines of standard error so far.
    pub fn last_lines(&self) -> String {
        lock(&self.ending).last_lines()
    }

    pub fn note_end(&self, status: ExitStatus) {
        lock(&self.ending).status = Some(status);
    }

    /// Returns a problem of the child with the child's own words, if it has ended.
    pub async fn explain(&self, problem: ServerProblem) -> ServerProblem {
        if lock(&self.ending).status.is_none() {
            return problem;
        }
        let mut has_read_all = self.has_read_all.clone();
        let _ = timeout(REST, has_read_all.wait_for(|read| *read)).await;
        let ending = lock(&self.ending);
        match ending.status {
            Some(status) => ServerProblem::Exited { status: status.to_string(), lines: ending.last_lines() },
            None => problem,
        }
    }
}

impl ChildEnding {
    fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        lines.join("\n")
    }

    fn keep(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.lines.len() == KEPT_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.trim_end().chars().take(KEPT_CHARS).collect());
    }
}

fn lock(ending: &Mutex<ChildEnding>) -> MutexGuard<'_, ChildEnding> {
    ending.lock().unwrap_or_else(PoisonError::into_inner)
}
