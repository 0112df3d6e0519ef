//! `/v1/conversations/{id}/checkpoints` and `/fork`: the checkpoints of a conversation's runs, and forks from them.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use holdfast_shared::{
    conversation::Conversation,
    page::Page,
    trace::{Checkpoint, CheckpointState},
};
use serde::Deserialize;
use uuid::Uuid;

use super::trace::visible_to;
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{self, ConversationId, JsonBody, PartOf, Query},
    page_sizes::{ListQuery, page_size},
    problem::Problem,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    checkpoint_id: Uuid,
}

/// List the checkpoints of a conversation's runs, newest first.
#[utoipa::path(get, path = "/v1/conversations/{id}/checkpoints", operation_id = "list_checkpoints", tag = "conversations", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Page<Checkpoint>), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Checkpoint>>, Problem> {
    let size = query.size(&app)?;
    expect_conversation(&app, &caller, id).await?;
    let page = app.storage().checkpoints(&caller.owner, id, size, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a checkpoint with a page of its state: the trace up to it, in order, and the tool calls in that trace.
#[utoipa::path(get, path = "/v1/conversations/{id}/checkpoints/{checkpoint_id}", operation_id = "read_checkpoint", tag = "conversations",
    params(("id" = Uuid, Path), ("checkpoint_id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = CheckpointState),
    (status = 404, body = Problem, description = "conversation_not_found, checkpoint_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    PartOf(ConversationId(id), checkpoint_id): PartOf<ConversationId>,
    Query(query): Query<ListQuery>,
) -> Result<Json<CheckpointState>, Problem> {
    let size = page_size(&app, query.limit.or(Some(app.config().max_page)))?;
    let checkpoint_id = extract::id(&checkpoint_id).map_err(Problem::checkpoint_not_found)?;
    expect_conversation(&app, &caller, id).await?;
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let checkpoint = app.storage().checkpoint(&caller.owner, id, checkpoint_id).await?;
    let checkpoint = checkpoint.ok_or_else(|| Problem::checkpoint_not_found(checkpoint_id))?;
    let state = app.storage().checkpoint_state(checkpoint, size, query.cursor.as_deref()).await?;
    let CheckpointState { checkpoint, trace, tool_calls, next } = state.ok_or_else(Problem::invalid_cursor)?;
    Ok(Json(CheckpointState { checkpoint, trace: visible_to(&caller, trace), tool_calls, next }))
}

/// Create a conversation that continues from a checkpoint; the original stays as it is.
#[utoipa::path(post, path = "/v1/conversations/{id}/fork", tag = "conversations", params(("id" = Uuid, Path)), request_body = Fork, responses(
    (status = 201, body = Conversation),
    (status = 403, body = Problem, description = "quota_exceeded"),
    (status = 404, body = Problem, description = "conversation_not_found, checkpoint_not_found"),
    (status = 429, body = Problem, description = "too_many_restores"),
    (status = 503, body = Problem, description = "restore_busy")
))]
pub async fn fork(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    ConversationId(id): ConversationId,
    JsonBody(fork): JsonBody<Fork>,
) -> Result<impl IntoResponse, Problem> {
    expect_conversation(&app, &caller, id).await?;
    let forked = app.fork_conversation(&caller, id, fork.checkpoint_id).await?;
    let forked = forked.ok_or_else(|| Problem::checkpoint_not_found(fork.checkpoint_id))?;
    let location = format!("/v1/conversations/{}", forked.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(forked)))
}

async fn expect_conversation(app: &App, caller: &Caller, id: Uuid) -> Result<(), Problem> {
    let conversation = app.storage().conversation(&caller.owner, id).await?;
    conversation.map(drop).ok_or_else(|| Problem::conversation_not_found(id))
}
