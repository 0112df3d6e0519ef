//! The spans of requests and the API's part of a run's trace. This file has all their names and attributes.
//!
//! A request's span ends with the head of its answer, because a client may follow a stream for hours. The run of that
//! stream has its own spans. Requests that probes send every few seconds have none.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use holdfast_shared::{
    run::Run,
    storage::AnsweredRun,
    telemetry::{Span, SpanKind, Traceparent},
};
use uuid::Uuid;

/// Routes that probes request every few seconds.
const UNTRACED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

tokio::task_local! {
    /// The span of the request that this task answers.
    static REQUEST: Arc<Mutex<Span>>;
}

/// Answers a request within a span, which continues the caller's trace if the request names one.
pub async fn traced(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    if route.as_deref().is_some_and(|route| UNTRACED.contains(&route)) {
        return next.run(request).await;
    }
    let caller = request.headers().get("traceparent").and_then(|value| value.to_str().ok()?.parse().ok());
    let method = request.method().as_str().to_owned();
    let name = route.as_ref().map_or_else(|| method.clone(), |route| format!("{method} {route}"));
    let mut span = Span::begin_trace(caller, name);
    span.set("http.request.method", method);
    span.set("url.scheme", "http");
    span.set("url.path", request.uri().path().to_owned());
    if let Some(route) = route {
        span.set("http.route", route);
    }
    let span = Arc::new(Mutex::new(span));
    let response = REQUEST.scope(Arc::clone(&span), next.run(request)).await;
    let mut span = span.lock().unwrap_or_else(PoisonError::into_inner);
    let status = response.status();
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(status.as_str());
    }
    response
}

/// Returns the trace parent for a run that this request submits; `None` outside of a traced request.
pub fn of_request() -> Option<Traceparent> {
    with_request(|span| span.traceparent()).flatten()
}

/// Adds the run's ids to the span of the current request.
pub fn concerns(run: &Run) {
    with_request(|span| about(span, run.id, run.conversation_id));
}

/// Starts the span of the commit of a message with its run.
pub fn submit(parent: Option<Traceparent>, run_id: Uuid) -> Span {
    let mut span = Span::begin(parent, SpanKind::Internal, "submit");
    if span.is_recorded() {
        span.set("run.id", run_id.to_string());
    }
    span
}

/// Records the commit of an answer in the trace of the run that has waited for it, with a link to the request's own
/// trace.
pub fn answer(run: &AnsweredRun, since: SystemTime, request: Option<Traceparent>) {
    let mut span = Span::begin_since(run.traceparent, SpanKind::Internal, "answer", since);
    about(&mut span, run.run_id, run.conversation_id);
    span.set("run.queued", run.queued);
    span.link(request);
}

fn with_request<T>(with: impl FnOnce(&mut Span) -> T) -> Option<T> {
    REQUEST.try_with(|span| with(&mut span.lock().unwrap_or_else(PoisonError::into_inner))).ok()
}

fn about(span: &mut Span, run_id: Uuid, conversation_id: Uuid) {
    if span.is_recorded() {
        span.set("run.id", run_id.to_string());
        span.set("gen_ai.conversation.id", conversation_id.to_string());
    }
}
