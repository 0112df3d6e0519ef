//! One connection to one server: requests with a time limit, the list of tools, and the end.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use holdfast_shared::json_size::JsonSize;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, GetExtensions, RequestMetaObject, ServerJsonRpcMessage,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions, RunningService, ServiceError},
};
use tokio::time::{timeout, timeout_at};

use super::{
    CALLER, IDEMPOTENCY_KEY, McpCall, Output, ServerListing, ServerUser,
    cancel_guard::CancelGuard,
    exchange::{Deposit, McpExchange},
    failure::CallFailure,
    intake::AnswerLimits,
    listener::{NotificationListener, ProgressWatch},
    output, resources, tool_list,
};
use crate::memory_budget::MemoryGuard;

/// Consecutive requests without an answer in time, after which the connection is replaced. A child process is then
/// restarted.
const WEDGED: u32 = 3;

/// Longest time for closing a connection in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

pub struct Connection {
    peer: Peer<RoleClient>,
    /// `close` takes it. Dropping it ends the connection, and a child with it.
    service: Mutex<Option<RunningService<RoleClient, Arc<NotificationListener>>>>,
    listener: Arc<NotificationListener>,
    pub limits: AnswerLimits,
    tools: Mutex<ToolListing>,
    /// Set once a request has shown that the server has gone.
    broken: AtomicBool,
    /// Requests without an answer in time since the last answer.
    unanswered: AtomicU32,
}

/// The times that one request may take.
#[derive(Clone, Copy)]
pub struct TimeLimit {
    /// Without an answer or progress.
    pub silence: Duration,
    /// At all.
    pub total: Duration,
}

/// The answer to a request.
pub struct RequestAnswer {
    pub result: ServerResult,
    pub size: JsonSize,
    /// The memory of a large answer, until it is dropped.
    pub memory: Option<MemoryGuard>,
}

/// A list of tools, and the number of changes that it includes.
#[derive(Default)]
struct ToolListing {
    changes: u64,
    listing: Arc<ServerListing>,
}

impl Connection {
    /// Returns a connection whose list of tools has been read. Fails if the server has no list.
    pub async fn new(
        service: RunningService<RoleClient, Arc<NotificationListener>>,
        listener: Arc<NotificationListener>,
        limits: AnswerLimits,
        limit: Duration,
    ) -> Result<Self, CallFailure> {
        let connection = Self {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            listener,
            limits,
            tools: Mutex::default(),
            broken: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
        };
        connection.list(limit).await?;
        Ok(connection)
    }

    pub fn is_usable(&self) -> bool {
        !self.broken.load(Ordering::Acquire) && !self.peer.is_transport_closed()
    }

    /// Returns the tools as the server last announced them.
    pub async fn tools(&self, limit: Duration) -> Result<Arc<ServerListing>, CallFailure> {
        let changes = self.listener.changes();
        {
            let listing = lock(&self.tools);
            if listing.changes >= changes {
                return Ok(Arc::clone(&listing.listing));
            }
        }
        self.list(limit).await
    }

    pub async fn call(&self, call: &McpCall<'_>, limit: TimeLimit) -> Result<Output, CallFailure> {
        let mut meta = RequestMetaObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), call.key.into());
        if let Some(caller) = call.caller {
            meta.insert(CALLER.to_owned(), caller.into());
        }
        let request = if self.reads_resource(call.tool) {
            resources::request(call.input, meta)
        } else {
            let mut params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.input.clone());
            params.meta = Some(meta);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let limited = self.request_within(request, Some(call.user), limit);
        let RequestAnswer { result, memory, .. } = limited.await?;
        Ok(Output { memory, ..output::read(resources::as_tool_result(result), self.limits.text_bytes)? })
    }

    /// Sends one request of no run, whose answer must arrive within `limit`.
    pub async fn request(&self, request: ClientRequest, limit: Duration) -> Result<RequestAnswer, CallFailure> {
        self.request_within(request, None, TimeLimit { silence: limit, total: limit }).await
    }

    /// Sends one request, whose answer takes the memory of this run's owner. Cancels it at the server when its time is over, or when
    /// the future is dropped.
    async fn request_within(
        &self,
        mut request: ClientRequest,
        user: Option<&ServerUser>,
        limit: TimeLimit,
    ) -> Result<RequestAnswer, CallFailure> {
        let exchange = McpExchange::new(user.map(|user| user.owner.as_ref()));
        request.extensions_mut().insert(exchange.clone());
        let started = Instant::now();
        let exchange = async {
            let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
            let handle = timeout(limit.silence, sent).await.map_err(|_| CallFailure::Timeout(limit.silence))?;
            let mut handle = handle.map_err(|_| CallFailure::undelivered("the connection has been closed"))?;
            let progress = self.listener.watch(&handle.progress_token, user.map(|user| user.signs_of_life.clone()));
            let mut cancel_guard = CancelGuard::new(self.peer.clone(), handle.id);
            let answer = answer_within(limit, started, &progress, &mut handle.rx).await?;
            cancel_guard.disarm();
            let answer = answer.map_err(|_| CallFailure::lost())?;
            let Deposit { size, memory, message } = exchange.collect();
            let answer = match message {
                Some(ServerJsonRpcMessage::Response(answer)) => Ok(answer.result),
                Some(ServerJsonRpcMessage::Error(answer)) => Err(ServiceError::McpError(answer.error)),
                _ => answer,
            };
            Ok(RequestAnswer { result: answer.map_err(CallFailure::from)?, size, memory })
        };
        let outcome = exchange.await;
        let unanswered = match outcome {
            Err(CallFailure::Timeout(_)) => self.unanswered.fetch_add(1, Ordering::AcqRel) + 1,
            _ => {
                self.unanswered.store(0, Ordering::Release);
                0
            }
        };
        if unanswered >= WEDGED || outcome.as_ref().is_err_and(CallFailure::breaks_connection) {
            self.broken.store(true, Ordering::Release);
        }
        outcome
    }

    /// Ends the connection. Requests in flight fail as lost.
    pub async fn close(&self) {
        self.broken.store(true, Ordering::Release);
        let service = lock(&self.service).take();
        if let Some(mut service) = service {
            let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        }
    }

    /// Returns whether the server has declared resources, though it may have none.
    pub fn declares_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|server| server.capabilities.resources.is_some())
    }

    fn reads_resource(&self, tool: &str) -> bool {
        lock(&self.tools).listing.tools.iter().any(|listed| listed.name == tool && resources::is_reader(listed))
    }

    async fn list(&self, limit: Duration) -> Result<Arc<ServerListing>, CallFailure> {
        // Order matters: a change that is announced while the list is read makes the list stale.
        let changes = self.listener.changes();
        let instructions = self.peer.peer_info().and_then(|info| info.instructions.clone());
        let mut read = ServerListing { instructions, ..tool_list::read(self, limit).await? };
        if resources::are_on(self, limit).await {
            resources::add_reader(&mut read.tools);
        }
        let read = Arc::new(read);
        let mut listing = lock(&self.tools);
        if listing.changes <= changes {
            *listing = ToolListing { changes, listing: Arc::clone(&read) };
        }
        Ok(read)
    }
}

/// Waits for an answer. Each sign of life gives the server the time of `silence` again, until the total time is over.
async fn answer_within<T>(
    limit: TimeLimit,
    started: Instant,
    progress: &ProgressWatch<'_>,
    answer: &mut (impl Future<Output = T> + Unpin),
) -> Result<T, CallFailure> {
    let end = started + limit.total;
    loop {
        let last = progress.last().unwrap_or(started);
        let until = end.min(last + limit.silence);
        if let Ok(answer) = timeout_at(until.into(), &mut *answer).await {
            return Ok(answer);
        }
        if progress.last().unwrap_or(started) > last && Instant::now() < end {
            continue;
        }
        let was_silent = until < end || limit.total == limit.silence;
        return Err(if was_silent {
            CallFailure::Timeout(limit.silence)
        } else {
            CallFailure::TotalTimeout(limit.total)
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with this lock")
}
