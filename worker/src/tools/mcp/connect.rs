//! Makes a connection: transport, handshake, protocol version and list of tools, within one time limit.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdfast_shared::config::ToolsConfig;
use reqwest::{Client, header};
use rmcp::{
    RoleClient, ServiceExt,
    model::ErrorCode,
    service::{ClientInitializeError, RunningService},
};
use secrecy::SecretString;

use super::{
    child_report::ChildReport,
    children::Children,
    connection::Connection,
    error::{Error, SUPPORTED_VERSIONS, ServerProblem},
    failure::{CallFailure, in_short},
    http::Http,
    intake::{AnswerLimits, Intake},
    listener::NotificationListener,
    post,
    rpc::Rpc,
    starts::{StartTurn, StartTurns},
    stdio::{ServerProgram, Stdio},
    target::{ServerTarget, TargetTransport},
    transport_failure::{TransportFailure, TransportFailureKind},
};
use crate::memory_budget::MemoryBudget;

/// Settings of all connections.
#[derive(Clone)]
pub struct Terms {
    pub config: ToolsConfig,
    /// The memory for the answers of all servers.
    pub memory: MemoryBudget,
    pub children: Arc<Children>,
    pub starts: Arc<StartTurns>,
    /// The HTTP client of all servers without headers of their own, made for the first one.
    pub client: Arc<OnceLock<Client>>,
}

/// Time for testing whether a URL belongs to the old HTTP+SSE transport.
const OLD_TRANSPORT_PROBE: Duration = Duration::from_secs(2);

const HANDSHAKE: &str = "connecting";
const LISTING: &str = "reading its tools";

/// The report of the child that a start has, once there is one.
pub type StartReport = OnceLock<ChildReport>;

/// Connects, and logs the outcome. A process waits for its turn first, which the time limit does not count.
pub async fn connect(target: &ServerTarget, terms: &Terms) -> Result<Arc<Connection>, Error> {
    connect_reporting(target, terms, &StartReport::new()).await
}

/// Does as `connect`, and sets the report of the child as soon as it has started.
pub async fn connect_reporting(
    target: &ServerTarget,
    terms: &Terms,
    report: &StartReport,
) -> Result<Arc<Connection>, Error> {
    let turn = match &target.transport {
        TargetTransport::Stdio { command, args, .. } => Some(terms.starts.begin(command, args).await),
        _ => None,
    };
    let started = std::time::Instant::now();
    let limit = target.connect_limit(&terms.config);
    let opened = tokio::time::timeout(limit, open(target, terms, limit, report)).await;
    let outcome = opened.unwrap_or_else(|_| Err(slow(limit)));
    if outcome.is_ok() {
        turn.iter().for_each(StartTurn::succeed);
    }
    let (server, transport, duration_ms) =
        (&target.name, target.transport_name(), started.elapsed().as_millis() as u64);
    match outcome {
        Ok((connection, tools)) => {
            tracing::info!(
                mcp.server = server,
                mcp.transport = transport,
                tools,
                duration_ms,
                "connected to MCP server"
            );
            Ok(Arc::new(connection))
        }
        Err(problem) => {
            let error = target.error(problem.with_lines_of(report.get()));
            tracing::warn!(mcp.server = server, mcp.transport = transport, duration_ms, %error, "failed to connect to MCP server");
            Err(error)
        }
    }
}

/// Returns the problem of a server that has not connected within `limit`.
pub const fn slow(limit: Duration) -> ServerProblem {
    ServerProblem::Slow { doing: HANDSHAKE, limit, lines: None }
}

async fn open(
    target: &ServerTarget,
    terms: &Terms,
    limit: Duration,
    report: &StartReport,
) -> Result<(Connection, usize), ServerProblem> {
    let listener = Arc::new(NotificationListener::default());
    let service = serve(target, Arc::clone(&listener), terms, report).await?;
    let version = service.peer().peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    if !SUPPORTED_VERSIONS.split(", ").any(|supported| supported == version) {
        return Err(unsupported_version(version));
    }
    let connection = Connection::new(service, listener, AnswerLimits::new(&terms.config), limit).await;
    let connection = connection.map_err(listing)?;
    let tools = connection.tools(limit).await.map_err(listing)?.tools.len();
    Ok((connection, tools))
}

async fn serve(
    target: &ServerTarget,
    listener: Arc<NotificationListener>,
    terms: &Terms,
    report: &StartReport,
) -> Result<RunningService<RoleClient, Arc<NotificationListener>>, ServerProblem> {
    let intake = Intake::new(&terms.config, terms.memory.clone(), &target.key().in_words());
    match &target.transport {
        TargetTransport::Stdio { command, args, env, cwd } => {
            let program = ServerProgram { server: &target.name, command, args, env, cwd: cwd.as_deref() };
            let stdio = Stdio::start(&program, &terms.children, intake);
            let user = terms.children.user_name().map(str::to_owned);
            let stdio = stdio.map_err(|error| ServerProblem::Command { user, error: error.to_string() })?;
            let report = report.get_or_init(|| stdio.report());
            match listener.serve(stdio).await {
                Ok(service) => Ok(service),
                Err(error) => Err(report.explain(handshake(error)).await),
            }
        }
        TargetTransport::Http { url, bearer, headers, caller_header } => {
            let client = client(terms, headers)?;
            let http = Http::new(client.clone(), intake, caller_header.clone());
            let transport = http.transport(url, bearer.clone());
            match listener.serve(transport).await.map_err(handshake) {
                Err(ServerProblem::Failed { .. }) if speaks_old_transport(&client, url).await => {
                    Err(ServerProblem::OldTransport)
                }
                outcome => outcome,
            }
        }
        TargetTransport::Rpc { url, bearer, headers, caller_header } => {
            let rpc = Rpc::new(client(terms, headers)?, url, bearer.clone(), intake, caller_header.clone());
            listener.serve(rpc).await.map_err(handshake)
        }
    }
}

/// Returns the problem of a version. Versions are dates, so their texts sort by time.
fn unsupported_version(version: String) -> ServerProblem {
    let is_date = version.starts_with("20");
    if is_date && SUPPORTED_VERSIONS.split(", ").all(|supported| supported < version.as_str()) {
        ServerProblem::NewerProtocol(version)
    } else {
        ServerProblem::Version(version)
    }
}

/// Returns the client of all servers, or for a server with headers one that sends them.
fn client(terms: &Terms, headers: &BTreeMap<String, SecretString>) -> Result<Client, ServerProblem> {
    if let Some(client) = terms.client.get().filter(|_| headers.is_empty()) {
        return Ok(client.clone());
    }
    let sent = post::headers(headers)
        .map_err(|name| ServerProblem::Client(format!("HTTP cannot carry the value of the header {name}")))?;
    let client = post::client(terms.config.mcp_http_connect, sent)
        .map_err(|error| ServerProblem::Client(error.without_url().to_string()))?;
    Ok(if headers.is_empty() { terms.client.get_or_init(|| client).clone() } else { client })
}

/// Returns whether a GET opens a stream of events, in which the old transport names the address for POSTs.
async fn speaks_old_transport(client: &Client, url: &str) -> bool {
    let get = client.get(url).header(header::ACCEPT, "text/event-stream").timeout(OLD_TRANSPORT_PROBE);
    let Ok(response) = get.send().await else { return false };
    let kind = response.headers().get(header::CONTENT_TYPE);
    response.status().is_success() && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Returns why the handshake failed.
fn handshake(error: ClientInitializeError) -> ServerProblem {
    let failed = |detail: String| ServerProblem::Failed { doing: HANDSHAKE, detail };
    match error {
        ClientInitializeError::JsonRpcError(error) => match TransportFailure::of(&error) {
            Some(failure) => of_transport(failure, HANDSHAKE),
            // Protocols after 2025-11-25 have no such handshake.
            None if [ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, ErrorCode::METHOD_NOT_FOUND].contains(&error.code) => {
                ServerProblem::NewerProtocol(in_short(&error))
            }
            None => failed(in_short(&error)),
        },
        ClientInitializeError::ConnectionClosed(_) => failed("it closed the connection".into()),
        // The error's own text would quote the complete answer.
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            failed("its answer is no handshake".into())
        }
        ClientInitializeError::TransportError { .. } => failed("the connection broke".into()),
        error => failed(error.to_string()),
    }
}

/// Returns why the list of tools could not be read.
pub fn listing(failure: CallFailure) -> ServerProblem {
    match failure {
        CallFailure::Unavailable(error) => error.problem,
        CallFailure::Transport(failure) => of_transport(failure, LISTING),
        CallFailure::Timeout(limit) | CallFailure::TotalTimeout(limit) => {
            ServerProblem::Slow { doing: LISTING, limit, lines: None }
        }
        CallFailure::Refused(error) => ServerProblem::Failed { doing: LISTING, detail: in_short(&error) },
        CallFailure::Tool(detail) => ServerProblem::Failed { doing: LISTING, detail },
    }
}

fn of_transport(failure: TransportFailure, doing: &'static str) -> ServerProblem {
    match failure.kind {
        TransportFailureKind::Undelivered => ServerProblem::Unreachable(failure.detail),
        TransportFailureKind::Unauthorized => ServerProblem::Unauthorized(failure.detail),
        TransportFailureKind::OAuth => ServerProblem::OAuth,
        _ => ServerProblem::Failed { doing, detail: failure.detail },
    }
}
