//! A server that is a child process: JSON-RPC as lines on its standard input and output.
//!
//! The child leads its own process group, and the whole group is killed with the connection. `children` decides the
//! child's user and environment, and `child_report` keeps its last words.

use std::{collections::BTreeMap, io, path::Path, process, process::Stdio as Pipe, sync::Arc, thread, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientNotification, ServerJsonRpcMessage},
    transport::Transport,
};
use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    sync::{Mutex, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    child_report::ChildReport,
    children::{Children, GroupGuard},
    exchange::McpExchange,
    hidden::HiddenTexts,
    intake::Intake,
    output_reader::{OutputReader, SentRequests},
    transport_failure::{TransportFailure, TransportFailureKind},
};

/// Time for a child to end by itself once its input is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

pub struct Stdio {
    input: Arc<Mutex<Option<ChildStdin>>>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    requests: SentRequests,
    /// Reads the child's output.
    _reader: AbortOnDropHandle<()>,
    group: ProcessGroup,
}

/// The command of a server, with its arguments and environment.
pub struct ServerProgram<'a> {
    pub server: &'a str,
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, SecretString>,
    /// The folder in which it starts, if the definition names one.
    pub cwd: Option<&'a Path>,
}

/// The child and the processes that it has started. Dropping the group kills them.
struct ProcessGroup {
    child: Child,
    report: ChildReport,
    /// The child's id, which is the group's; `None` once the group has been killed.
    leader: Option<Pid>,
    /// Kills the group if this process dies first.
    guard: Option<GroupGuard>,
}

impl ProcessGroup {
    fn new(child: Child, report: ChildReport, children: &Children) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Self { child, report, leader, guard: leader.map(|leader| children.guard(leader)) }
    }

    /// Waits for the child's end, and then kills the rest of its group, which may hold the output open.
    async fn wait_for_end(&mut self) {
        if let Ok(status) = self.child.wait().await {
            self.report.note_end(status);
        }
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
    pub fn start(program: &ServerProgram<'_>, children: &Children, intake: Intake) -> io::Result<Self> {
        let ServerProgram { server, command, args, env, cwd } = *program;
        let mut child = Command::new(command);
        child.args(args);
        children.prepare(&mut child, cwd);
        child.envs(env.iter().map(|(name, value)| (name, value.expose_secret())));
        child.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = child.process_group(0).kill_on_drop(true).spawn()?;
        let no_pipe = || io::Error::other("the child has no pipes");
        let input = child.stdin.take().ok_or_else(no_pipe)?;
        let output = child.stdout.take().ok_or_else(no_pipe)?;
        let errors = child.stderr.take().ok_or_else(no_pipe)?;
        let report = ChildReport::start(server, errors, HiddenTexts::new(env.values().cloned().collect()));
        let requests = SentRequests::default();
        let (messages, received) = mpsc::channel(1);
        let reader = OutputReader::new(output, intake, requests.clone());
        Ok(Self {
            input: Arc::new(Mutex::new(Some(input))),
            messages: received,
            requests,
            _reader: AbortOnDropHandle::new(tokio::spawn(reader.read(messages))),
            group: ProcessGroup::new(child, report, children),
        })
    }

    /// Returns what becomes known of the child's end.
    pub fn report(&self) -> ChildReport {
        self.group.report.clone()
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                self.requests.expect(request.id.clone(), McpExchange::of(&message))
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| self.requests.cancel(id));
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
            tokio::select! {
                biased;
                message = self.messages.recv() => {
                    if message.is_none() && self.group.leader.is_some() {
                        // A child that has closed its output is usually about to end, with a status that explains it.
                        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.group.wait_for_end()).await;
                    }
                    return message;
                }
                () = self.group.wait_for_end(), if self.group.leader.is_some() => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // If another writer holds the lock, the child does not read its input, and waiting for its end would be
        // useless.
        if let Ok(mut input) = self.input.try_lock() {
            drop(input.take());
            let ended = async { while self.messages.recv().await.is_some() {} };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
        }
        self.group.kill();
        Ok(())
    }
}

/// Returns the failure of a message that could not be written. A line without its end is no message, so it was not
/// delivered.
pub fn unsent(error: &io::Error) -> TransportFailure {
    TransportFailure::new(TransportFailureKind::Undelivered, format!("its standard input is closed: {error}"))
}
