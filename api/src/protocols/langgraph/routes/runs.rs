//! `/langgraph/threads/{thread_id}/runs`: start, follow, list, cancel.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use holdfast_shared::{event_id::EventId, run::Run, timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    assistants::id_of_agent,
    join::{is_true, query_of},
    request::RunRequest,
    segment::{RunSegment, find_segment, read_segment},
    start::{RunStart, StartedRun},
    stream::{Following, run_path},
    thread_named,
};
use crate::{
    app::App,
    auth::Caller,
    extract::{JsonBody, Query},
    problem::Problem,
    protocols::langgraph::wire::LangModes,
    relay::SeenFrames,
};

/// How long a cancel with `wait` waits for the end of its run.
const CANCEL_WAIT: Duration = Duration::from_secs(15);

/// Start a run in a thread, or continue the one that waits, and stream it.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/stream", operation_id = "stream_run", tag = "langgraph", request_body = RunRequest,
    params(("thread_id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The frames of the run; `Content-Location` names it, and `Location` is where to follow it again."),
        (status = 400, body = Problem, description = "invalid_body, invalid_json, invalid_content, empty_content, content_too_long, unsupported_part, invalid_client_tool, invalid_metadata"),
        (status = 404, body = Problem, description = "conversation_not_found, agent_not_found, checkpoint_not_found"),
        (status = 409, body = Problem, description = "conversation_busy, run_not_waiting, nothing_to_run, thread_of_another_agent"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let start = RunStart { app: &app, caller: &caller, headers: &headers, thread_id: Some(&thread_id), body: &body };
    stream_started(&start).await
}

/// Streams a run from its start, or from the answer that continues it.
pub async fn stream_started(start: &RunStart<'_>) -> Result<Response, Problem> {
    let modes = start.body.modes()?;
    let StartedRun { thread, thread_id, segment, subscriber } = start.follow().await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(segment.run.id))?;
    let (caller, cancels) = (start.caller.clone(), start.body.cancels_on_disconnect());
    let query = query_of(modes, cancels);
    let following = Following { caller, thread, thread_id, segment, modes, seen: SeenFrames::NONE, cancels, query };
    following.stream(start.app, subscriber).await
}

/// Start a run in a thread, or continue the one that waits.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs", operation_id = "create_run", tag = "langgraph", request_body = RunRequest,
    params(("thread_id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, body = Object, description = "The run."),
        (status = 400, body = Problem, description = "invalid_body, invalid_json, and others of the message"),
        (status = 404, body = Problem, description = "conversation_not_found, agent_not_found, checkpoint_not_found"),
        (status = 409, body = Problem, description = "conversation_busy, run_not_waiting, nothing_to_run, thread_of_another_agent"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let start = RunStart { app: &app, caller: &caller, headers: &headers, thread_id: Some(&thread_id), body: &body };
    Ok(created(&start.post().await?))
}

/// Returns the response for a run without a stream.
pub fn created(started: &StartedRun) -> Response {
    let path = run_path(&started.thread_id, started.segment.id());
    let location = HeaderValue::from_str(&path).expect("a path is ASCII");
    ([(header::CONTENT_LOCATION, location)], Json(run_json(&started.segment, &started.thread_id))).into_response()
}

/// Start a run in a thread, or continue the one that waits, and wait until it ends or waits. Returns the values of the thread.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/wait", operation_id = "wait_run", tag = "langgraph", request_body = RunRequest,
    params(("thread_id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, body = Object, description = "The values, or `__error__` of a failed run."),
        (status = 400, body = Problem, description = "invalid_body, invalid_json, and others of the message"),
        (status = 404, body = Problem, description = "conversation_not_found, agent_not_found, checkpoint_not_found"),
        (status = 409, body = Problem, description = "conversation_busy, run_not_waiting, nothing_to_run, thread_of_another_agent"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn wait(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let start = RunStart { app: &app, caller: &caller, headers: &headers, thread_id: Some(&thread_id), body: &body };
    wait_started(&start).await
}

/// Waits for the end of a run, or for its next pause.
pub async fn wait_started(start: &RunStart<'_>) -> Result<Response, Problem> {
    let StartedRun { thread, thread_id, segment, subscriber } = start.follow().await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(segment.run.id))?;
    let (caller, cancels) = (start.caller.clone(), start.body.cancels_on_disconnect());
    let (modes, query) = (LangModes::default(), String::new());
    let following = Following { caller, thread, thread_id, segment, modes, seen: SeenFrames::NONE, cancels, query };
    Ok(following.values(start.app, subscriber))
}

/// Read a run.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}", operation_id = "read_run", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)),
    responses((status = 200, body = Object, description = "The run."), (status = 404, body = Problem, description = "conversation_not_found, run_not_found")))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, run_id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    Ok(Json(run_json(&read_segment(&app, &caller, &thread, &run_id).await?, &thread_id)))
}

/// How a client cancels a run.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct CancelQuery {
    /// `1` or `true`: the answer comes when the run has ended.
    wait: Option<String>,
    /// `interrupt`, which is the default, or `rollback`: the run's message and its output leave the thread too.
    action: Option<String>,
}

impl CancelQuery {
    /// Returns how to cancel. Fails for an unknown action.
    pub fn action(&self) -> Result<CancelAction, Problem> {
        match self.action.as_deref() {
            Some("interrupt") | None => Ok(CancelAction::Interrupt),
            Some("rollback") => Ok(CancelAction::Rollback),
            Some(_) => Err(Problem::field_not_supported("this action", "interrupt or rollback a run.")),
        }
    }
}

/// The way in which a cancel ends a run.
#[derive(Clone, Copy)]
pub enum CancelAction {
    /// The message, and the output so far.
    Interrupt,
    /// Nothing.
    Rollback,
}

impl CancelAction {
    pub async fn cancel(self, app: &Arc<App>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        match self {
            Self::Interrupt => app.cancel(owner, run_id).await,
            Self::Rollback => app.roll_back(owner, run_id).await,
        }
    }
}

/// Cancel a run. Its output so far stays, unless the action is `rollback`; an ended run stays as it is.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path), CancelQuery),
    responses(
        (status = 202, description = "The server has the request."),
        (status = 204, description = "With `wait`: the run has ended."),
        (status = 404, body = Problem, description = "conversation_not_found, run_not_found"),
        (status = 422, body = Problem, description = "not_supported: an unknown action")
    )
)]
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, run_id)): Path<(String, String)>,
    Query(query): Query<CancelQuery>,
) -> Result<StatusCode, Problem> {
    let action = query.action()?;
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let segment = find_segment(&app, &caller, &thread, &run_id).await?;
    let waits = query.wait.as_deref().is_some_and(is_true);
    let permit = if waits { Some(app.streams().open(&caller)?) } else { None };
    let run = action.cancel(&app, &caller.owner, segment.run.id).await?;
    let Some(permit) = permit else { return Ok(StatusCode::ACCEPTED) };
    if !run.status.is_terminal() {
        let wait = caller.no_later_than(Instant::now() + CANCEL_WAIT).duration_since(Instant::now());
        if let Some(subscriber) = app.relay().open(&caller.owner, &Arc::new(run), EventId::ORIGIN, permit).await? {
            subscriber.await_end(wait).await;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Take the message of a run back that has not begun.
#[utoipa::path(delete, path = "/langgraph/threads/{thread_id}/runs/{run_id}", operation_id = "delete_run", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)),
    responses(
        (status = 204, description = "The run has ended, and its message has left the thread."),
        (status = 404, body = Problem, description = "conversation_not_found, run_not_found"),
        (status = 409, body = Problem, description = "run_begun: the runs of a thread stay as long as the thread")
    )
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, run_id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let segment = find_segment(&app, &caller, &thread, &run_id).await?;
    app.take_back(&caller.owner, segment.run.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a run as the protocol has it.
pub fn run_json(segment: &RunSegment, thread_id: &str) -> Value {
    let run = &segment.run;
    let updated_at = run.finished_at.or(run.started_at).unwrap_or(run.created_at);
    json!({
        "run_id": segment.id(), "thread_id": thread_id, "assistant_id": id_of_agent(run.agent_id),
        "created_at": timestamp::text(run.created_at), "updated_at": timestamp::text(updated_at),
        "status": segment.status(), "metadata": run.metadata.clone().unwrap_or_else(|| json!({})),
        "multitask_strategy": null, "kwargs": {},
    })
}
