//! The spans of requests, and what else this process does for a run's trace. All names and attributes are here.
//!
//! A request's span ends with the head of its answer: a stream may be followed for hours, and the run that it shows has
//! spans of its own. What machines ask every few seconds has none.

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

/// Routes that are asked by machines, again and again.
const UNTRACED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

tokio::task_local! {
    /// The span of the request that this task answers.
    static REQUEST: Arc<Mutex<Span>>;
}

/// Answers a request within a span, which goes on with the trace of the caller if the request names one.
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

/// What a run that this request submits goes on with.
pub fn of_request() -> Option<Traceparent> {
    with_request(|span| span.traceparent()).flatten()
}

/// The request has to do with this run.
pub fn concerns(run: &Run) {
    with_request(|span| about(span, run.id, run.conversation_id));
}

/// The commit of a message with its run.
pub fn submit(parent: Option<Traceparent>, run_id: Uuid) -> Span {
    let mut span = Span::begin(parent, SpanKind::Internal, "submit");
    if span.is_recorded() {
        span.set("run.id", run_id.to_string());
    }
    span
}

/// The commit of an answer, in the trace of the run that has waited for it. The request, which has a trace of its own, is
/// linked.
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
