//! Limits on reads: turns for those that read a whole thread or log, and the rate limit of anonymous callers.
//!
//! A long read takes the processor and a pooled connection for a while. So a caller has one at a time, and all callers
//! together have a few; a further one waits. Streams have their own limits (`streams`), but the messages with which some
//! of them begin are a long read.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Query, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use holdfast_shared::turns::{NoTurn, TurnPermit, Turns};
use tracing::Instrument;

use crate::{
    app::App,
    auth::{self, Caller},
    extract::{accepts_event_stream, accepts_json},
    in_flight::LimitKey,
    problem::Problem,
    reserve::PROBE_PATHS,
};

/// Time-out of a read that waits for other reads.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// Paths whose GET reads a whole thread, a whole log, or a page of either.
pub const LONG_READS: [&str; 24] = [
    "/v1/conversations/{id}/messages",
    "/v1/conversations/{id}/checkpoints",
    "/v1/conversations/{id}/checkpoints/{checkpoint_id}",
    "/v1/conversations/{id}/plans",
    "/v1/sessions/{session_id}/messages",
    "/v1/sessions/{session_id}/history",
    "/v1/runs/{id}/messages",
    "/v1/runs/{id}/tool_calls",
    "/v1/runs/{id}/plans",
    "/v1/plans/{id}",
    "/v1/documents/{id}/text",
    RUN_EVENTS,
    DURABLE_STREAM,
    "/api/chat/{id}/messages",
    AG_UI,
    AG_UI_THREAD,
    "/langgraph/threads/{thread_id}",
    "/langgraph/threads/{thread_id}/state",
    "/langgraph/threads/{thread_id}/state/{checkpoint_id}",
    "/langgraph/threads/{thread_id}/runs",
    "/openai/v1/conversations/{id}/items",
    "/openai/v1/conversations/{id}/items/{item_id}",
    RESPONSE,
    "/openai/v1/responses/{id}/input_items",
];

/// Paths whose GET is a stream, or waits for the end of a run.
pub const STREAMS: [&str; 7] = [
    "/v1/runs/{id}/wait",
    "/api/chat/{id}/stream",
    "/ag-ui/runs/{id}",
    "/langgraph/runs/{run_id}/stream",
    "/langgraph/threads/{thread_id}/stream",
    "/langgraph/threads/{thread_id}/runs/{run_id}/stream",
    "/langgraph/threads/{thread_id}/runs/{run_id}/join",
];

/// Paths whose POST changes nothing. A handler takes a turn itself after its request's body, for which a turn must not wait.
pub const POSTED_READS: [&str; 5] = [
    "/langgraph/threads/{thread_id}/state/checkpoint",
    "/langgraph/threads/{thread_id}/history",
    "/langgraph/threads/search",
    "/langgraph/threads/count",
    "/langgraph/assistants/search",
];

/// A page of events, a snapshot, or a stream.
const RUN_EVENTS: &str = "/v1/runs/{id}/events";
/// A page of events, or with `live` a stream.
const DURABLE_STREAM: &str = "/v1/stream/runs/{id}";
/// The messages of a thread, or the stream of a run.
const AG_UI: &str = "/ag-ui";
/// A stream that begins with the messages of the thread.
const AG_UI_THREAD: &str = "/ag-ui/threads/{id}";
/// A response, or its stream.
const RESPONSE: &str = "/openai/v1/responses/{id}";

pub struct ReadLimit(Turns);

/// A read, as its limits see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LimitedRead {
    /// Whether the rate limit of anonymous callers counts it.
    is_counted: bool,
    /// Whether it needs a turn.
    is_long: bool,
}

impl ReadLimit {
    pub fn new(most: usize) -> Self {
        Self(Turns::new(most))
    }

    /// Admits one more long read until the caller drops the permit. Fails if no permit becomes free within the time-out.
    pub async fn begin(&self, caller: &Caller) -> Result<TurnPermit, Problem> {
        self.0.take(&LimitKey::of(caller).to_string(), TURN_TIMEOUT).await.map_err(|no_turn| match no_turn {
            NoTurn::OfCaller => Problem::too_many_reads(),
            NoTurn::OfAll => Problem::reads_busy(),
        })
    }
}

/// Counts the reads of anonymous callers, and has long reads wait for their turns.
pub async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (Some(caller), Some(read)) = (auth::caller_of(&request).cloned(), LimitedRead::of(&request)) else {
        return next.run(request).await;
    };
    if read.is_counted
        && let Err(refused) = app.anonymous_limits().admit_read(&caller).await
    {
        return refused.into_response();
    }
    if !read.is_long {
        return next.run(request).await;
    }
    let turn = match app.read_limit().begin(&caller).await {
        Ok(turn) => turn,
        Err(refused) => return refused.into_response(),
    };
    // A client that hangs up does not end a statement, so a task reads to the end and owns the turn.
    let read = async move {
        let response = next.run(request).await;
        drop(turn);
        Ok(response)
    };
    app.to_completion(read.in_current_span()).await.into_response()
}

impl LimitedRead {
    /// Returns what the limits know of a request; `None` for a probe, and for a request that may change something.
    fn of(request: &Request) -> Option<Self> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        if PROBE_PATHS.contains(&path) || !is_get && !POSTED_READS.contains(&path) {
            return None;
        }
        // As the handlers read it: a client may encode any character.
        let fields =
            Query::<Vec<(String, String)>>::try_from_uri(request.uri()).map(|query| query.0).unwrap_or_default();
        let asks = |flag: &str| fields.iter().any(|(name, value)| name == flag && value == "true");
        let is_long = LONG_READS.contains(&path);
        let is_stream = match path {
            RUN_EVENTS => !accepts_json(request.headers()) || accepts_event_stream(request.headers()),
            DURABLE_STREAM => fields.iter().any(|(name, _)| name == "live"),
            RESPONSE => asks("stream"),
            AG_UI => fields.iter().any(|(name, _)| name == "runId"),
            AG_UI_THREAD => true,
            path => STREAMS.contains(&path),
        };
        let begins_long = path == AG_UI_THREAD || path == RUN_EVENTS && asks("snapshot");
        Some(Self { is_counted: !is_stream, is_long: is_long && (!is_stream || begins_long) })
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, routing::any};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_read_beyond_a_limit_waits_and_then_fails() {
        let reads = ReadLimit::new(2);
        let [ann, bob, carl] = ["ann", "bob", "carl"].map(Caller::test);
        let first = reads.begin(&ann).await.unwrap();
        assert_eq!(reads.begin(&ann).await.unwrap_err().code, "too_many_reads");
        let _second = reads.begin(&bob).await.unwrap();
        assert_eq!(reads.begin(&carl).await.unwrap_err().code, "reads_busy");
        drop(first);
        assert!(reads.begin(&carl).await.is_ok());
    }

    #[tokio::test]
    async fn long_reads_take_turns_and_streams_do_not() {
        let answer = async |request: Request| format!("{:?}", LimitedRead::of(&request));
        let paths = LONG_READS.into_iter().chain(STREAMS).chain(POSTED_READS).chain(["/v1/conversations", "/healthz"]);
        let paths: std::collections::BTreeSet<_> = paths.collect();
        let router = paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(answer)));
        let service = TowerToHyperService::new(router);
        let check = async |method: Method, target: &str, accept: &str, expected: Option<LimitedRead>| {
            let request = Request::builder().method(method.clone()).uri(target).header("accept", accept);
            let response = service.call(request.body(Body::empty()).unwrap()).await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
            assert_eq!(body, format!("{expected:?}"), "{method} {target} {accept}");
        };
        let (json, sse) = ("application/json", "text/event-stream");
        let read = |is_counted, is_long| Some(LimitedRead { is_counted, is_long });
        check(Method::GET, "/v1/conversations/x/messages", json, read(true, true)).await;
        check(Method::POST, "/v1/conversations/x/messages", json, None).await;
        check(Method::GET, "/v1/conversations", json, read(true, false)).await;
        check(Method::GET, "/healthz", json, None).await;
        check(Method::GET, "/v1/runs/x/events", json, read(true, true)).await;
        check(Method::GET, "/v1/runs/x/events", sse, read(false, false)).await;
        check(Method::GET, "/v1/runs/x/events", "*/*", read(false, false)).await;
        check(Method::GET, "/v1/runs/x/events?after=1-1&snapshot=true", sse, read(false, true)).await;
        check(Method::GET, "/v1/runs/x/events?sn%61pshot=tru%65", sse, read(false, true)).await;
        check(Method::GET, "/openai/v1/responses/x", json, read(true, true)).await;
        check(Method::GET, "/openai/v1/responses/x?stream=true", json, read(false, false)).await;
        check(Method::GET, "/v1/stream/runs/x?offset=-1", json, read(true, true)).await;
        check(Method::GET, "/v1/stream/runs/x?offset=-1&live=sse", sse, read(false, false)).await;
        check(Method::GET, "/api/chat/x/stream", sse, read(false, false)).await;
        check(Method::GET, "/ag-ui/threads/x", sse, read(false, true)).await;
        check(Method::GET, "/ag-ui?threadId=x", json, read(true, true)).await;
        check(Method::GET, "/ag-ui?threadId=x&runId=y", sse, read(false, false)).await;
        check(Method::GET, "/langgraph/threads/x/state", json, read(true, true)).await;
        check(Method::POST, "/langgraph/threads/x/state", json, None).await;
        check(Method::POST, "/langgraph/threads/x/history", json, read(true, false)).await;
        check(Method::POST, "/langgraph/threads/search", json, read(true, false)).await;
    }
}
