//! `/langgraph/threads/{thread_id}/state` and `/history`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::conversation::Conversation;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    history::{ThreadState, state_of},
    state::StateView,
    thread_named,
};
use crate::{
    app::App,
    auth::Caller,
    extract::{self, JsonBody},
    page_sizes::page_up_to,
    problem::Problem,
    thread::truncated_id,
};

/// Read the state of a thread.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/state", operation_id = "read_state", tag = "langgraph", params(("thread_id" = String, Path)),
    responses((status = 200, body = Object, description = "The state."), (status = 404, body = Problem, description = "conversation_not_found")))]
pub async fn state(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    let (thread, state) = thread_and_state(&app, &caller, &thread_id).await?;
    Ok(Json(StateView { thread: &thread, thread_id: &thread_id, state: &state }.newest()))
}

/// Read an earlier state of a thread.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/state/{checkpoint_id}", operation_id = "read_state_at", tag = "langgraph",
    params(("thread_id" = String, Path), ("checkpoint_id" = String, Path)),
    responses((status = 200, body = Object, description = "The state."), (status = 404, body = Problem, description = "conversation_not_found, checkpoint_not_found")))]
pub async fn state_at(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, checkpoint_id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    at(&app, &caller, &thread_id, &checkpoint_id).await.map(Json)
}

/// A checkpoint of a thread.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphStateRequest)]
pub struct StateRequest {
    #[schema(value_type = Object)]
    checkpoint: Map<String, Value>,
}

/// Read an earlier state of a thread, or the newest if the checkpoint has no id.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/state/checkpoint", operation_id = "read_state_of_checkpoint", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = StateRequest,
    responses((status = 200, body = Object, description = "The state."), (status = 404, body = Problem, description = "conversation_not_found, checkpoint_not_found")))]
pub async fn state_of_checkpoint(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    JsonBody(body): JsonBody<StateRequest>,
) -> Result<Json<Value>, Problem> {
    let _turn = app.read_limit().begin(&caller).await?;
    match body.checkpoint.get("checkpoint_id").and_then(Value::as_str) {
        Some(id) => at(&app, &caller, &thread_id, id).await.map(Json),
        None => state(State(app), caller, Path(thread_id)).await,
    }
}

async fn at(app: &App, caller: &Caller, thread_id: &str, checkpoint_id: &str) -> Result<Value, Problem> {
    let unknown = || Problem::checkpoint_not_found(truncated_id(checkpoint_id));
    let id = extract::id(checkpoint_id).map_err(|_| unknown())?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let (thread, state) = thread_and_state(app, caller, thread_id).await?;
    let view = StateView { thread: &thread, thread_id, state: &state };
    let count = view.count_at(id).ok_or_else(unknown)?;
    Ok(if count == state.entries.len() { view.newest() } else { view.after(count) })
}

/// The states that a client wants.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphHistory)]
pub struct HistoryRequest {
    /// 10 by default.
    limit: Option<usize>,
    /// A checkpoint, or its id: only states before it.
    #[serde(default)]
    #[schema(value_type = Value)]
    before: Value,
}

/// Read the states of a thread, newest first: after each message of a user, and after each answer.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/history", operation_id = "history", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = HistoryRequest,
    responses(
        (status = 200, body = Vec<Object>, description = "A list of states."),
        (status = 400, body = Problem, description = "invalid_query"),
        (status = 404, body = Problem, description = "conversation_not_found")
    )
)]
pub async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    JsonBody(body): JsonBody<HistoryRequest>,
) -> Result<Json<Value>, Problem> {
    let size = page_up_to(&app, Some(body.limit.unwrap_or(10)))?;
    let before = [&body.before, &body.before["checkpoint_id"], &body.before["configurable"]["checkpoint_id"]];
    let before = before.into_iter().find_map(|id| extract::id(id.as_str()?).ok());
    let _turn = app.read_limit().begin(&caller).await?;
    let _assembled = app.unread_answers().assemble(&caller, size.bytes.saturating_mul(2))?;
    let (thread, state) = thread_and_state(&app, &caller, &thread_id).await?;
    let view = StateView { thread: &thread, thread_id: &thread_id, state: &state };
    Ok(Json(view.history(size.items, before, size.bytes).into()))
}

async fn thread_and_state(app: &App, caller: &Caller, id: &str) -> Result<(Conversation, ThreadState), Problem> {
    let thread = thread_named(app, caller, id).await?;
    let state = state_of(app, caller, &thread).await?;
    Ok((thread, state))
}
