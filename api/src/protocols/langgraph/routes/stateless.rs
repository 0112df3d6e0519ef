//! `/langgraph/runs`: runs in threads of their own, and several runs at once.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State},
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use holdfast_shared::{run::RunStatus, storage::RunFilter};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    join::Joining,
    request::RunRequest,
    runs::{CancelQuery, created, run_json, stream_started, wait_started},
    segment::find_segment,
    start::RunStart,
    thread_named,
};
use crate::{
    app::App,
    auth::Caller,
    event_stream::{event_stream, unsent},
    extract::{self, JsonBody, Query, read_body, read_json},
    page_sizes::page_size,
    problem::Problem,
    thread::truncated_id,
};

/// Most runs of one request.
const MAX_RUNS: usize = 32;

/// Start a run in a new thread, and stream it. The thread stays, unless `on_completion` is `delete`.
#[utoipa::path(post, path = "/langgraph/runs/stream", operation_id = "stream_stateless_run", tag = "langgraph", request_body = RunRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The frames of the run."),
        (status = 400, body = Problem, description = "As in a thread."),
        (status = 404, body = Problem, description = "agent_not_found"),
        (status = 409, body = Problem, description = "nothing_to_run"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    stream_started(&RunStart { app: &app, caller: &caller, headers: &headers, thread_id: None, body: &body }).await
}

/// Start a run in a new thread. The thread stays, unless `on_completion` is `delete`.
#[utoipa::path(post, path = "/langgraph/runs", operation_id = "create_stateless_run", tag = "langgraph", request_body = RunRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, body = Object, description = "The run."),
        (status = 400, body = Problem, description = "As in a thread."),
        (status = 404, body = Problem, description = "agent_not_found"),
        (status = 409, body = Problem, description = "nothing_to_run"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    let start = RunStart { app: &app, caller: &caller, headers: &headers, thread_id: None, body: &body };
    Ok(created(&start.post().await?))
}

/// Start a run in a new thread, and wait until it ends or waits. The thread stays, unless `on_completion` is `delete`.
#[utoipa::path(post, path = "/langgraph/runs/wait", operation_id = "wait_stateless_run", tag = "langgraph", request_body = RunRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 200, body = Object, description = "The values, or `__error__` of a failed run."),
        (status = 400, body = Problem, description = "As in a thread."),
        (status = 404, body = Problem, description = "agent_not_found"),
        (status = 409, body = Problem, description = "nothing_to_run"),
        (status = 422, body = Problem, description = "not_supported, idempotency_key_reused")
    )
)]
pub async fn wait(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<RunRequest>,
) -> Result<Response, Problem> {
    wait_started(&RunStart { app: &app, caller: &caller, headers: &headers, thread_id: None, body: &body }).await
}

/// Start several runs, each in a new thread. A refused one ends the request; those before it stay.
#[utoipa::path(post, path = "/langgraph/runs/batch", operation_id = "create_runs", tag = "langgraph",
    request_body(content = Vec<RunRequest>, description = "At most 32 bodies of runs."),
    responses(
        (status = 200, body = Vec<Object>, description = "A list of runs."),
        (status = 400, body = Problem, description = "As in a thread."),
        (status = 404, body = Problem, description = "agent_not_found"),
        (status = 409, body = Problem, description = "nothing_to_run"),
        (status = 422, body = Problem, description = "not_supported")
    )
)]
pub async fn batch(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    let body = read_body(request, &app).await?;
    let bodies: Vec<RunRequest> = read_json(&body)?;
    if bodies.len() > MAX_RUNS {
        return Err(Problem::invalid_body(format!("A request starts at most {MAX_RUNS} runs.")));
    }
    let (headers, mut runs) = (HeaderMap::new(), Vec::with_capacity(bodies.len()));
    for body in &bodies {
        let start = RunStart { app: &app, caller: &caller, headers: &headers, thread_id: None, body };
        let started = start.post().await?;
        runs.push(run_json(&started.segment, &started.thread_id));
    }
    Ok(Json(runs.into()))
}

/// Follow a run whose thread the client does not name.
#[utoipa::path(get, path = "/langgraph/runs/{run_id}/stream", operation_id = "join_stateless_stream", tag = "langgraph",
    params(("run_id" = String, Path),
        ("stream_mode" = Option<String>, Query, description = "A mode, or a JSON list of modes; also several times."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has; -1, or none, for all.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The frames of the run."),
        (status = 400, body = Problem, description = "invalid_event_id"),
        (status = 404, body = Problem, description = "run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired"),
        (status = 422, body = Problem, description = "not_supported: an unknown mode")
    )
)]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(run_id): Path<String>,
    method: Method,
    headers: HeaderMap,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let joining = Joining::of(&headers, &fields)?;
    let unknown = || Problem::run_not_found(truncated_id(&run_id));
    let id = extract::id(&run_id).map_err(|_| unknown())?;
    let run = app.storage().run_without_answer(&caller.owner, id).await?.ok_or_else(unknown)?;
    let thread = app.storage().conversation(&caller.owner, run.conversation_id).await?.ok_or_else(unknown)?;
    let segment = find_segment(&app, &caller, &thread, &run_id).await?;
    if method == Method::HEAD {
        return Ok(event_stream(segment.run.id, unsent()));
    }
    let thread_id = thread.id.to_string();
    joining.stream(&app, caller, (thread, thread_id), segment).await
}

/// The runs to cancel. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphCancel)]
pub struct CancelRequest {
    /// The thread of `run_ids`.
    thread_id: Option<String>,
    run_ids: Option<Vec<String>>,
    /// `pending`, `running` or `all`, instead of ids.
    status: Option<String>,
}

/// Cancel several runs.
#[utoipa::path(post, path = "/langgraph/runs/cancel", operation_id = "cancel_runs", tag = "langgraph", request_body = CancelRequest,
    params(CancelQuery),
    responses(
        (status = 204, description = "The server has the request."),
        (status = 400, body = Problem, description = "invalid_body: neither ids nor a status, or too many ids"),
        (status = 404, body = Problem, description = "conversation_not_found, run_not_found"),
        (status = 422, body = Problem, description = "not_supported: an unknown action")
    )
)]
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<CancelQuery>,
    JsonBody(body): JsonBody<CancelRequest>,
) -> Result<StatusCode, Problem> {
    let action = query.action()?;
    for id in wanted(&app, &caller, &body).await? {
        action.cancel(&app, &caller.owner, id).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the ids of the runs that a request names.
async fn wanted(app: &App, caller: &Caller, body: &CancelRequest) -> Result<Vec<Uuid>, Problem> {
    if let (Some(thread_id), Some(run_ids)) = (&body.thread_id, &body.run_ids) {
        if run_ids.len() > MAX_RUNS {
            return Err(Problem::invalid_body(format!("A request cancels at most {MAX_RUNS} runs by their ids.")));
        }
        let (thread, mut ids) = (thread_named(app, caller, thread_id).await?, Vec::new());
        for run_id in run_ids {
            ids.push(find_segment(app, caller, &thread, run_id).await?.run.id);
        }
        return Ok(ids);
    }
    let statuses: &[RunStatus] = match body.status.as_deref() {
        Some("pending") => &[RunStatus::Queued],
        Some("running") => &[RunStatus::Running],
        Some("all") => &[RunStatus::Queued, RunStatus::Running, RunStatus::Waiting],
        _ => {
            let fields = "The body has thread_id and run_ids, or the status pending, running or all.";
            return Err(Problem::invalid_body(fields));
        }
    };
    let (size, mut ids) = (page_size(app, None)?, Vec::new());
    for status in statuses {
        let filter = RunFilter { conversation_id: None, status: Some(*status) };
        let mut cursor: Option<String> = None;
        while let Some(page) = app.storage().runs(&caller.owner, filter, size, cursor.as_deref()).await? {
            ids.extend(page.items.iter().map(|run| run.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(ids)
}
