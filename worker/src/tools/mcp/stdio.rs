//! A server that is a child process: JSON-RPC as lines on its standard input and output.
//!
//! The child is the leader of a process group of its own, and the whole group is killed with the connection. `children` says
//! who the child is, and what of the worker's environment it gets. What it writes to standard error is logged at debug.

use std::{
    collections::{BTreeMap, VecDeque},
    io, process,
    process::Stdio as Pipe,
    sync::{Arc, MutexGuard},
    thread,
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::Mutex,
};

use super::{
    answer,
    children::{Children, GroupGuard},
    lines::{LineReader, OutputLine},
    transport_failure::{TransportFailure, TransportFailureKind},
};

/// Time that a child has to end by itself once its input is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Longest line of standard error that is logged.
const LOGGED_BYTES: usize = 4096;

pub struct Stdio {
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: LineReader<ChildStdout>,
    max_bytes: usize,
    requests: Arc<std::sync::Mutex<PendingRequests>>,
    group: ProcessGroup,
}

/// What is started for a server.
pub struct ServerProgram<'a> {
    pub server: &'a str,
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, SecretString>,
}

/// Requests of which an answer may come.
#[derive(Default)]
struct PendingRequests {
    waiting: Vec<RequestId>,
    /// Cancelled ones, whose answers may still come and are nobody's; the latest few.
    cancelled: VecDeque<RequestId>,
}

const CANCELLED: usize = 64;

impl PendingRequests {
    fn cancel(&mut self, cancelled: &RequestId) {
        self.waiting.retain(|id| id != cancelled);
        self.cancelled.push_back(cancelled.clone());
        if self.cancelled.len() > CANCELLED {
            self.cancelled.pop_front();
        }
    }

    /// Takes the request whose answer has this id. What belongs to none can only be held against the one that waits, if there
    /// is just one.
    fn take(&mut self, found: Option<&RequestId>) -> Option<RequestId> {
        let is = |id: &RequestId| found.is_some_and(|found| answer::same_id(id, found));
        if self.cancelled.iter().any(is) {
            return None;
        }
        let at = self.waiting.iter().position(is).or_else(|| (self.waiting.len() == 1).then_some(0))?;
        Some(self.waiting.remove(at))
    }
}

/// The child and all that it has started, until this is dropped.
struct ProcessGroup {
    child: Child,
    /// The child's id, which is the group's; none once the group has been killed.
    leader: Option<Pid>,
    /// Kills the group if this process dies before.
    guard: Option<GroupGuard>,
}

impl ProcessGroup {
    fn new(child: Child, children: &Children) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Self { child, leader, guard: leader.map(|leader| children.guard(leader)) }
    }

    /// Waits for the child's end, and then kills what it has left behind, which may hold its output open.
    async fn wait_for_end(&mut self) {
        let _ = self.child.wait().await;
        self.kill();
    }

    fn kill(&mut self) {
        // Invariant: once only, and no later than the child was waited for, or the id could be another group's.
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
            self.guard = None;
            if process::id() == FIRST_PROCESS {
                reap(leader);
            }
        }
    }
}

/// The process that inherits all orphans, as this one does when it is alone in a container.
const FIRST_PROCESS: u32 = 1;

/// Waits for the dead of a group whom nobody else would wait for: the children of the child. Without it each would stay in the
/// container's table of processes.
fn reap(group: Pid) {
    thread::spawn(move || while retry_on_intr(|| waitpgid(group, WaitOptions::empty())).is_ok() {});
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Stdio {
    pub fn start(program: &ServerProgram<'_>, children: &Children, max_bytes: usize) -> io::Result<Self> {
        let ServerProgram { server, command, args, env } = *program;
        let mut child = Command::new(command);
        child.args(args);
        children.prepare(&mut child);
        child.envs(env.iter().map(|(name, value)| (name, value.expose_secret())));
        child.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = child.process_group(0).kill_on_drop(true).spawn()?;
        let no_pipe = || io::Error::other("the child has no pipes");
        let input = child.stdin.take().ok_or_else(no_pipe)?;
        let output = child.stdout.take().ok_or_else(no_pipe)?;
        let errors = child.stderr.take().ok_or_else(no_pipe)?;
        tokio::spawn(log(server.to_owned(), errors, env.values().cloned().collect()));
        Ok(Self {
            input: Arc::new(Mutex::new(Some(input))),
            output: LineReader::new(output, max_bytes),
            max_bytes,
            requests: Arc::default(),
            group: ProcessGroup::new(child, children),
        })
    }

    /// One line as a message. What is no JSON object is noise, which some servers print.
    fn read(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        if !line.starts_with(b"{") {
            return None;
        }
        let head: MessageHead = serde_json::from_slice(line).unwrap_or_default();
        if head.method.is_some() {
            return serde_json::from_slice(line).ok();
        }
        let id = self.requests().take(head.id.as_ref())?;
        Some(answer::read(line, &id).unwrap_or_else(|failure| failure.into_answer(id)))
    }

    fn requests(&self) -> MutexGuard<'_, PendingRequests> {
        self.requests.lock().expect("no thread panics with this lock")
    }
}

/// What tells answers from calls.
#[derive(Default, serde::Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            ClientJsonRpcMessage::Request(request) => self.requests().waiting.push(request.id.clone()),
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| self.requests().cancel(id));
                }
            }
            _ => {}
        }
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            match input.lock().await.as_mut() {
                Some(input) => input.write_all(&line).await,
                None => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.output.next() => line,
                () = self.group.wait_for_end(), if self.group.leader.is_some() => continue,
            };
            let message = match line {
                OutputLine::Complete(line) => self.read(&line),
                OutputLine::TooLong => {
                    let id = self.requests().take(None);
                    id.map(|id| TransportFailure::too_large(self.max_bytes).into_answer(id))
                }
                OutputLine::End => return None,
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A writer that holds the lock is stuck on a child that does not read: no farewell then.
        if let Ok(mut input) = self.input.try_lock() {
            drop(input.take());
            let ended = async { while !matches!(self.output.next().await, OutputLine::End) {} };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
        }
        self.group.kill();
        Ok(())
    }
}

/// Reads standard error to its end, or the child would block; a secret in it is not logged.
async fn log(server: String, errors: ChildStderr, secrets: Vec<SecretString>) {
    let mut lines = LineReader::new(errors, LOGGED_BYTES);
    loop {
        match lines.next().await {
            OutputLine::Complete(line) => {
                let mut text = String::from_utf8_lossy(&line).into_owned();
                for secret in secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| !secret.is_empty()) {
                    text = text.replace(secret, "…");
                }
                tracing::debug!(mcp.server = server, line = text, "an MCP server wrote to standard error");
            }
            OutputLine::TooLong => {
                tracing::debug!(mcp.server = server, "an MCP server wrote a long line to standard error")
            }
            OutputLine::End => return,
        }
    }
}

/// What became of a message that could not be written: a line without its end is no message.
pub fn unsent(error: &io::Error) -> TransportFailure {
    TransportFailure::new(TransportFailureKind::Undelivered, format!("its standard input is closed: {error}"))
}
