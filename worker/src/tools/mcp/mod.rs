//! MCP servers as the worker's client.
//!
//! In the order of a call's way: `target` (a description with its secrets looked up), `pool` (who shares a connection),
//! `connect` (handshake and list of tools), `connection` (requests, cancelled when nobody waits), `output` and `failure`
//! (what comes of them). Three transports: `stdio` with `lines` and `children`, `http`, `rpc`; the latter two `post`. `answer` and `trouble`
//! are how a transport says that an answer is not usable.

mod answer;
mod cancel_guard;
mod children;
mod connect;
mod connection;
mod error;
mod failure;
mod http;
mod lines;
mod listener;
mod output;
mod pool;
mod post;
mod rpc;
mod stdio;
mod target;
#[cfg(test)]
mod tests;
mod tool_list;
mod transport_failure;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_shared::{agent::McpServer, config::ToolsConfig, tool::ToolError};
use serde_json::{Map, Value};

pub use children::{Children, guard};
pub use error::Error;

use connect::Terms;
use failure::CallFailure;
use pool::ConnectionPool;
use target::ServerTarget;

/// Where a call's key lies in the `_meta` of its request; for `rpc` it is also the header `Idempotency-Key`.
const IDEMPOTENCY_KEY: &str = "holdfast/idempotency-key";

/// Connections of this process to MCP servers, shared by all runs whose agents describe a server alike.
pub struct Mcp {
    pool: ConnectionPool,
    config: Config,
}

struct Config {
    connect: Duration,
    timeout: Duration,
    retries: u32,
    retry_delay: Duration,
    /// Variables of the worker that agents may use.
    variables: Vec<String>,
}

/// Where the owner of the run lies in a call's `_meta`, for servers whose definition asks for it.
const CALLER: &str = "holdfast/caller";

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct McpCall<'a> {
    pub tool: &'a str,
    pub input: &'a Map<String, Value>,
    /// The idempotency key.
    pub key: &'a str,
    /// Longest time of one try; without it the server's, or else the configured one.
    pub limit: Option<Duration>,
    /// The owner of the run, for a server that is told.
    pub caller: Option<&'a str>,
    /// Whether a try that may have reached the tool can be repeated, as with tools that are read_only or idempotent.
    pub repeatable: bool,
}

/// What a tool has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// For the model: text, resources that are text, and in brackets what else there was. Structured content as JSON if there
    /// is no text.
    pub text: String,
}

impl Mcp {
    pub fn new(config: &ToolsConfig, children: Arc<Children>) -> Arc<Self> {
        let terms = Terms { connect: config.mcp_connect, max_bytes: config.mcp_max_bytes, children };
        Arc::new(Self {
            pool: ConnectionPool::new(terms, config.mcp_idle),
            config: Config {
                connect: config.mcp_connect,
                timeout: config.mcp_timeout,
                retries: config.tool_retries,
                retry_delay: config.tool_retry,
                variables: config.agent_secrets.clone(),
            },
        })
    }

    /// The server's tools, from its list as it is now; connects first where there is no connection. An error means that the
    /// server is of no use now.
    pub async fn tools(self: &Arc<Self>, server: &McpServer) -> Result<Arc<[ServerTool]>, Error> {
        let target = ServerTarget::new(server, &self.config.variables)?;
        let limit = self.config.connect;
        let listing = |failure| target.error(connect::listing(failure));
        match self.pool.acquire(&target, None).await?.tools(limit).await {
            // The connection has gone stale unnoticed; a new one begins by reading the list.
            Err(failure) if failure.breaks_connection() => {
                self.pool.acquire(&target, None).await?.tools(limit).await.map_err(listing)
            }
            outcome => outcome.map_err(listing),
        }
    }

    /// One call, with time-out and retries. Whatever goes wrong is a `ToolError`; which failures are followed by another try
    /// is decided by `Failure::may_be_tried_again`. Dropping the future cancels the request at the server.
    pub async fn call(self: &Arc<Self>, server: &McpServer, call: &McpCall<'_>) -> Result<Output, ToolError> {
        let limit = call.limit.or(server.timeout_ms.map(Duration::from_millis)).unwrap_or(self.config.timeout);
        let retries = server.retries.unwrap_or(self.config.retries);
        let pause = server.retry_delay_ms.map_or(self.config.retry_delay, Duration::from_millis);
        let started = Instant::now();
        let mut tries = 1;
        // The first try believes a failure to connect that others have just had; a further one finds out itself.
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
        match failure.detail() {
            None => {
                tracing::info!(mcp.server = server_name, tool.name = tool, code, tries, duration_ms, "tool failed")
            }
            Some(error) => {
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
        Err(failure.into_tool_error(&server.name, call.tool))
    }

    /// Ends all connections and child processes; from then on there are no more.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn try_call(
        &self,
        server: &McpServer,
        call: &McpCall<'_>,
        limit: Duration,
        since: Option<Instant>,
    ) -> Result<Output, CallFailure> {
        let target = ServerTarget::new(server, &self.config.variables).map_err(CallFailure::Unavailable)?;
        let connection = self.pool.acquire(&target, since).await.map_err(CallFailure::Unavailable)?;
        match connection.call(call, limit).await {
            // The connection had gone stale unnoticed, as when the server was restarted: this is no fault of the call.
            Err(failure) if failure.is_undelivered() => {
                let fresh = self.pool.acquire(&target, since).await.map_err(CallFailure::Unavailable)?;
                fresh.call(call, limit).await
            }
            outcome => outcome,
        }
    }
}
