//! A server that is a child process: JSON-RPC as lines on its standard input and output.
//!
//! The child leads its own process group, and the whole group is killed with the connection. `children` decides the
//! child's user and environment. The child's standard error is logged at debug.

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

/// Time for a child to end by itself once its input is closed.
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

/// The command of a server, with its arguments and environment.
pub struct ServerProgram<'a> {
    pub server: &'a str,
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, SecretString>,
}

/// Requests whose answer may still arrive.
#[derive(Default)]
struct PendingRequests {
    waiting: Vec<RequestId>,
    /// The latest cancelled requests; late answers to them are dropped.
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

    /// Removes and returns the request whose answer has this id. An answer without a matching request counts for the
    /// only waiting one, if there is exactly one.
    fn take(&mut self, found: Option<&RequestId>) -> Option<RequestId> {
        let is = |id: &RequestId| found.is_some_and(|found| answer::same_id(id, found));
        if self.cancelled.iter().any(is) {
            return None;
        }
        let at = self.waiting.iter().position(is).or_else(|| (self.waiting.len() == 1).then_some(0))?;
        Some(self.waiting.remove(at))
    }
}

/// The child and the processes that it has started. Dropping the group kills them.
struct ProcessGroup {
    child: Child,
    /// The child's id, which is the group's; `None` once the group has been killed.
    leader: Option<Pid>,
    /// Kills the group if this process dies first.
    guard: Option<GroupGuard>,
}

impl ProcessGroup {
    fn new(child: Child, children: &Children) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Self { child, leader, guard: leader.map(|leader| children.guard(leader)) }
    }

    /// Waits for the child's end, and then kills the rest of its group, which may hold the output open.
    async fn wait_for_end(&mut self) {
        let _ = self.child.wait().await;
        self.kill();
    }

    fn kill(&mut self) {
        // Invariant: once only, and no later than the child was waited for, or the id could belong to another group.
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
            self.guard = None;
            if process::id() == FIRST_PROCESS {
                reap(leader);
            }
        }
    }
}

/// The process that inherits all orphans: this process is it when it is alone in a container.
const FIRST_PROCESS: u32 = 1;

/// Reaps the dead processes of a group that have no other parent: the children of the child. Otherwise each would stay
/// in the container's process table.
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

    /// Parses one line as a message. A line that is no JSON object is noise, which some servers print.
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

/// The fields that distinguish answers from calls.
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
        // If another writer holds the lock, the child does not read its input, and waiting for its end would be
        // useless.
        if let Ok(mut input) = self.input.try_lock() {
            drop(input.take());
            let ended = async { while !matches!(self.output.next().await, OutputLine::End) {} };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
        }
        self.group.kill();
        Ok(())
    }
}

/// Logs standard error until its end, because a full pipe would block the child. Secrets are replaced.
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

/// Returns the failure of a message that could not be written. A line without its end is no message, so it was not
/// delivered.
pub fn unsent(error: &io::Error) -> TransportFailure {
    TransportFailure::new(TransportFailureKind::Undelivered, format!("its standard input is closed: {error}"))
}
