//! The worker's client of MCP servers.
//!
//! The modules, in the order in which a call passes them: `target` (a server with its secrets looked up, for a run), `pool`
//! with `slots` and `uses` (the connections of each scope), `connect` (handshake and list of tools) with `starts`. Then
//! `connection` (requests and their cancellation), `output` and `failure` (the results), and `resources` (a tool of the
//! client's own). Three transports: `stdio` with
//! `output_reader`, `lines`, `child_report` and `children`, `http` with `events` and `event_bytes`, `rpc`; the latter two
//! use `post`. `intake` takes in each message, and `exchange` carries its memory to the caller. `tool_entry`, `content` and
//! `characters` read leniently, and `hidden` keeps secrets out of texts. By `answer` and `transport_failure` a transport
//! reports an unusable answer.

mod answer;
mod cancel_guard;
mod characters;
mod child_report;
mod children;
mod connect;
mod connection;
mod content;
mod error;
mod event_bytes;
mod events;
mod exchange;
mod failure;
mod hidden;
mod http;
mod intake;
mod lines;
mod listener;
mod output;
mod output_reader;
mod pool;
mod post;
mod resources;
mod rpc;
mod slots;
mod starts;
mod stdio;
mod target;
#[cfg(test)]
mod tests;
mod tool_entry;
mod tool_list;
mod transport_failure;
mod uses;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_shared::{agent::McpServer, config::ToolsConfig, tool::ToolError};
use serde_json::{Map, Value};

pub use children::{Children, guard};
pub use error::Error;
pub use resources::is_reader;
pub use target::ServerUser;
pub use uses::ConnectionHold;

use connect::{StartReport, Terms, connect_reporting};
use connection::TimeLimit;
use failure::CallFailure;
use hidden::HiddenTexts;
use pool::ConnectionPool;
use starts::StartTurns;
use target::ServerTarget;

use super::returned::ResultPart;
use crate::memory_budget::{MemoryBudget, MemoryGuard};

/// Key of a call's idempotency key in the `_meta` of its request; `rpc` sends it also as the header `Idempotency-Key`.
const IDEMPOTENCY_KEY: &str = "holdfast/idempotency-key";

/// Connections of this process to MCP servers. Runs whose agents describe a server alike share one within its scope.
pub struct Mcp {
    pool: ConnectionPool,
    config: ToolsConfig,
}

/// Key of the run's owner in a call's `_meta`, for servers whose definition requires it.
const CALLER: &str = "holdfast/caller";

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// A tool that no run gets, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOutTool {
    /// The name, shortened; the position in the list for a tool without a name.
    pub name: String,
    pub reason: String,
}

/// The things that a server has for runs.
#[derive(Debug, Default)]
pub struct ServerListing {
    pub tools: Vec<ServerTool>,
    pub left_out: Vec<LeftOutTool>,
    /// How the server wants its tools to be used.
    pub instructions: Option<String>,
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct McpCall<'a> {
    pub tool: &'a str,
    pub input: &'a Map<String, Value>,
    /// The idempotency key.
    pub key: &'a str,
    /// Longest time of one try without a sign of life; without it the server's time-out applies, or else the configured one.
    pub limit: Option<Duration>,
    /// The run, whose connection is used, and whose owner's share of memory the answer takes.
    pub user: &'a ServerUser,
    /// The owner of the run, for a server that receives it.
    pub caller: Option<&'a str>,
    /// Whether a try that may have reached the tool can be repeated, as with `read_only` and `idempotent` tools.
    pub repeatable: bool,
}

/// The output of a tool.
#[derive(Debug)]
pub struct Output {
    /// For the model: text, text resources, files, and descriptions of other content in brackets. Structured content as
    /// JSON if there is no text.
    pub parts: Vec<ResultPart>,
    /// The memory of a large answer, until it is dropped.
    pub memory: Option<MemoryGuard>,
}

impl Mcp {
    pub fn new(config: &ToolsConfig, children: Arc<Children>) -> Arc<Self> {
        let terms = Terms {
            config: config.clone(),
            memory: MemoryBudget::new(config.foreign_answers_bytes),
            children,
            starts: Arc::new(StartTurns::new(config.mcp_starts())),
            client: Arc::default(),
        };
        Arc::new(Self { pool: ConnectionPool::new(terms), config: config.clone() })
    }

    /// Starts the server for a run if it is not connected, and keeps its connection for the run until the hold is dropped.
    /// Does not wait for the start. Fails if too many connections are in use.
    pub async fn hold(&self, server: &McpServer, user: &ServerUser) -> Result<ConnectionHold, Error> {
        self.pool.hold(&self.target(server, user)?).await
    }

    /// Returns how the start of a server that a run holds has ended; `None` while it starts.
    pub fn start_of(&self, server: &McpServer, user: &ServerUser) -> Option<Result<(), Error>> {
        self.target(server, user).map_or_else(|error| Some(Err(error)), |target| self.pool.outcome(&target))
    }

    /// Connects to a server of scope `worker` before the first run needs it.
    pub async fn start_for_all(&self, server: &McpServer) {
        let target = ServerTarget::of_worker(server, &self.config.agent_secrets);
        if let Ok(target) = target {
            // The pool logs the outcome.
            let _ = self.pool.acquire(&target, None).await;
        }
    }

    /// Connects to the server apart from all runs, reads its list of tools, and disconnects. Fails after `limit`; a start then
    /// still continues to its own end, so that a slow installation is done the next time.
    pub async fn try_out(&self, server: &McpServer, limit: Duration) -> Result<(), Error> {
        let target = ServerTarget::of_worker(server, &self.config.agent_secrets)?;
        let (terms, report) = (self.pool.terms().clone(), Arc::new(StartReport::new()));
        let trial = tokio::spawn({
            let (target, report) = (target.clone(), Arc::clone(&report));
            async move {
                let connection = connect_reporting(&target, &terms, &report).await?;
                connection.close().await;
                Ok(())
            }
        });
        match tokio::time::timeout(limit, trial).await {
            Ok(outcome) => outcome.expect("no code of a trial panics or aborts it"),
            Err(_) => Err(target.error(connect::slow(limit).with_lines_of(report.get()))),
        }
    }

    /// Returns the longest time of a server's start.
    pub fn start_limit(&self, server: &McpServer) -> Duration {
        if server.is_command() { self.config.mcp_connect } else { self.config.mcp_http_connect }
    }

    /// Returns the server's current tools, and connects first if there is no connection. Fails if the server cannot be
    /// used now.
    pub async fn tools(&self, server: &McpServer, user: &ServerUser) -> Result<Arc<ServerListing>, Error> {
        let target = self.target(server, user)?;
        let limit = target.connect_limit(&self.config);
        let listing = |failure| target.error(connect::listing(failure));
        match self.pool.acquire(&target, None).await?.tools(limit).await {
            // The connection was stale; a new one starts by reading the list.
            Err(failure) if failure.breaks_connection() => {
                self.pool.acquire(&target, None).await?.tools(limit).await.map_err(listing)
            }
            outcome => outcome.map_err(listing),
        }
    }

    /// Returns the list that a connected server has announced after `known`. Connects to no server.
    pub async fn announced(
        &self,
        server: &McpServer,
        user: &ServerUser,
        known: &Arc<ServerListing>,
    ) -> Option<Arc<ServerListing>> {
        let target = self.target(server, user).ok()?;
        match self.pool.current(&target)?.tools(target.connect_limit(&self.config)).await {
            Ok(listing) => (!Arc::ptr_eq(&listing, known)).then_some(listing),
            Err(failure) => {
                let problem = target.error(connect::listing(failure));
                tracing::warn!(mcp.server = server.name, %problem, "failed to read an announced list of tools");
                None
            }
        }
    }

    /// Makes one call, with time-out and retries. Returns a `ToolError` for every failure;
    /// `CallFailure::may_be_tried_again` decides about retries. Dropping the future cancels the request at the server.
    pub async fn call(self: &Arc<Self>, server: &McpServer, call: &McpCall<'_>) -> Result<Output, ToolError> {
        let silence = call.limit.or(server.timeout_ms.map(Duration::from_millis)).unwrap_or(self.config.mcp_timeout);
        let limit = TimeLimit { silence, total: self.config.mcp_total.max(silence) };
        let retries = server.retries.unwrap_or(self.config.tool_retries);
        let pause = server.retry_delay_ms.map_or(self.config.tool_retry, Duration::from_millis);
        let started = Instant::now();
        let mut tries = 1;
        // The first try relies on a recent failure to connect; a further try connects itself.
        let mut since = None;
        let failure = loop {
            let failure = match self.try_call(server, call, limit, since).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            if tries > retries || !failure.may_be_tried_again(call.repeatable) {
                break failure;
            }
            tries += 1;
            tokio::time::sleep(pause).await;
            since = Some(Instant::now());
        };
        let (code, duration_ms) = (failure.code(), started.elapsed().as_millis() as u64);
        let (server_name, tool) = (&server.name, call.tool);
        let target = self.target(server, call.user);
        let hidden = target.map(|target| HiddenTexts::of(&target)).unwrap_or_default();
        match failure.detail() {
            None => {
                tracing::info!(
                    mcp.server = server_name,
                    tool.name = tool,
                    code,
                    tries,
                    duration_ms,
                    "the tool reported a failure"
                )
            }
            Some(error) => {
                let error = hidden.replace_in(&error);
                tracing::warn!(
                    mcp.server = server_name,
                    tool.name = tool,
                    code,
                    error,
                    tries,
                    duration_ms,
                    "failed to call a tool"
                )
            }
        }
        Err(failure.into_tool_error(&server.name, call.tool, &hidden))
    }

    /// Ends all connections and child processes; later calls fail.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn target(&self, server: &McpServer, user: &ServerUser) -> Result<ServerTarget, Error> {
        ServerTarget::new(server, user, &self.config.agent_secrets)
    }

    async fn try_call(
        &self,
        server: &McpServer,
        call: &McpCall<'_>,
        limit: TimeLimit,
        since: Option<Instant>,
    ) -> Result<Output, CallFailure> {
        let target = self.target(server, call.user).map_err(CallFailure::Unavailable)?;
        let connection = self.pool.acquire(&target, since).await.map_err(CallFailure::Unavailable)?;
        match connection.call(call, limit).await {
            // The connection was stale, as when the server was restarted: the call is not at fault.
            Err(failure) if failure.is_undelivered() => {
                let fresh = self.pool.acquire(&target, since).await.map_err(CallFailure::Unavailable)?;
                fresh.call(call, limit).await
            }
            outcome => outcome,
        }
    }
}
