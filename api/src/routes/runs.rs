//! `/v1/runs`: start, list, read, wait for, cancel.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use holdfast_shared::{
    context::AgentContext,
    conversation::Conversation,
    message::Message,
    page::Page,
    run::{Run, RunStatus, SubmitMode},
    storage::{MessageInput, RunFilter, Target},
    tool::ClientTool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::accepted;
use crate::{
    app::{App, ContentInput, Posting, fingerprint},
    auth::Caller,
    event_stream::{StreamQuery, cursor, stream_on},
    extract::{JsonBody, Query, RunId, accepts_event_stream, idempotency_key},
    page_sizes::page_size,
    problem::Problem,
    run_request::{checked_options, default_target},
    wire::Wire,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRunBody {
    /// The text, or texts and files.
    input: ContentInput,
    /// The agent of a new conversation; an existing one keeps its agent.
    agent_id: Option<Uuid>,
    /// If absent: the conversation of the session that `X-Session-ID` names, else a new one.
    conversation_id: Option<Uuid>,
    #[serde(default)]
    mode: SubmitMode,
    /// Whether the run writes `*.delta` events; true by default.
    stream: Option<bool>,
    /// Tools that the client executes: the run waits for their results.
    #[serde(default)]
    client_tools: Vec<ClientTool>,
    /// A JSON object that the server stores with the run; later runs of the conversation inherit it.
    metadata: Option<Value>,
    /// Where in its application the user is; kept with the conversation.
    #[serde(default, deserialize_with = "AgentContext::of_request")]
    context: Option<AgentContext>,
}

/// A committed run with its message and conversation.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AcceptedRun {
    conversation: Conversation,
    message: Message,
    run: Run,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ListRuns {
    conversation_id: Option<Uuid>,
    status: Option<RunStatus>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    /// Longest wait, in ms; 30,000 by default.
    timeout_ms: Option<u64>,
}

const DEFAULT_WAIT_MS: u64 = 30_000;

/// Start a run, in a new conversation unless the body or a header names one. With `Accept: text/event-stream` the
/// answer is the run's stream.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = NewRunBody,
    params(StreamQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 202, body = AcceptedRun, description = "Committed; `Location` names the run."),
        (status = 200, content_type = "text/event-stream", description = "The run's events; the header `x-run-id` names the run."),
        (status = 400, body = Problem, description = "empty_content, content_too_long, agent_not_found, invalid_client_tool, invalid_metadata, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 409, body = Problem, description = "conversation_busy"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
    JsonBody(body): JsonBody<NewRunBody>,
) -> Result<Response, Problem> {
    let id_text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    let options = checked_options(&app, body.stream, body.client_tools, body.metadata, body.context)?;
    let session = caller.named_session().filter(|_| body.conversation_id.is_none()).map(str::to_owned);
    let (conversation, agent) = (session.unwrap_or_else(|| id_text(body.conversation_id)), id_text(body.agent_id));
    let input = app.content(&caller, body.input).await?;
    let fingerprint = ["run", &conversation, &agent, &fingerprint(&input), body.mode.as_str()];
    let key = idempotency_key(&headers, &fingerprint, &options)?;
    let target = match body.conversation_id {
        Some(id) => Target::Existing(id),
        None => default_target(&caller, body.agent_id),
    };
    let posting = Posting { mode: body.mode, options, key, ..Posting::new(target, MessageInput::New(input)) };
    if accepts_event_stream(&headers) {
        let (committed, subscriber) = app.post_and_follow(&caller, posting, cursor(&headers, None)?).await?;
        return stream_on(Wire::Native, &app, &committed.run, subscriber, query.stream_mode).await;
    }
    let committed = app.post(&caller, posting).await?;
    let answer = AcceptedRun { conversation: committed.conversation, message: committed.message, run: committed.run };
    Ok(accepted(answer.run.id, answer))
}

/// List runs, newest first.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(ListRuns), responses((status = 200, body = Page<Run>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListRuns>,
) -> Result<Json<Page<Run>>, Problem> {
    let size = page_size(&app, query.limit)?;
    let filter = RunFilter { conversation_id: query.conversation_id, status: query.status };
    let page = app.storage().runs(&caller.owner, filter, size, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a run.
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Run), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, RunId(id): RunId) -> Result<Json<Run>, Problem> {
    let mut run = app.storage().run(&caller.owner, id).await?.ok_or_else(|| Problem::run_not_found(id))?;
    if caller.is_operator && run.error.is_some() {
        run.error_details = app.storage().error_details(&caller.owner, id).await?;
    }
    Ok(Json(run))
}

/// Wait for the end of a run. Returns the run when it has ended, or its state at the time-out.
#[utoipa::path(get, path = "/v1/runs/{id}/wait", tag = "runs", params(("id" = Uuid, Path), WaitQuery), responses(
    (status = 200, body = Run), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn wait(
    State(app): State<Arc<App>>,
    caller: Caller,
    method: Method,
    RunId(id): RunId,
    Query(query): Query<WaitQuery>,
) -> Result<Json<Run>, Problem> {
    let timeout = Duration::from_millis(query.timeout_ms.unwrap_or(DEFAULT_WAIT_MS));
    if timeout > app.config().max_wait {
        return Err(Problem::invalid_query(format!("timeout_ms is at most {}.", app.config().max_wait.as_millis())));
    }
    let Json(run) = read(State(Arc::clone(&app)), caller.clone(), RunId(id)).await?;
    // An answer to HEAD does not depend on the run's state, so it needs no wait.
    if run.status.is_terminal() || method == Method::HEAD {
        return Ok(Json(run));
    }
    let timeout = caller.no_later_than(Instant::now() + timeout).duration_since(Instant::now());
    let (last, stream) = (run.last_event_id, app.streams().open(&caller)?);
    if let Some(subscriber) = app.relay().open(&caller.owner, &Arc::new(run), last, stream).await? {
        subscriber.await_end(timeout).await;
    }
    read(State(app), caller, RunId(id)).await
}

/// Cancel a run. Its output so far stays; an ended run stays as it is.
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 202, body = Run), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
) -> Result<(StatusCode, Json<Run>), Problem> {
    let run = app.cancel(&caller.owner, id).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

/// Take a message back that no run has read: its run ends, and the message leaves the conversation.
#[utoipa::path(post, path = "/v1/runs/{id}/take_back", operation_id = "take_back", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Run, description = "The run has ended as `cancelled`."),
    (status = 404, body = Problem, description = "run_not_found"),
    (status = 409, body = Problem, description = "run_begun: a run has read the message")
))]
pub async fn take_back(State(app): State<Arc<App>>, caller: Caller, RunId(id): RunId) -> Result<Json<Run>, Problem> {
    app.take_back(&caller.owner, id).await.map(Json)
}
