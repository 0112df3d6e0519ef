//! `/v1/sessions/{session_id}`: the caller's conversation with that name, which its first message creates.
//!
//! A client needs only the name, and not even that: `-` is the default session.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{
    conversation::{Handle, Session},
    message::{Message, Role},
    page::Page,
    storage::Target,
};
use serde::Serialize;
use uuid::Uuid;

use super::messages::{self, AcceptedMessage, ListMessages, NewMessageBody};
use crate::{
    app::App,
    auth::Caller,
    event_stream::StreamQuery,
    extract::{JsonBody, Query, SessionId},
    page_sizes::{ListQuery, history_size},
    problem::Problem,
};

/// One message of a history.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Line)]
pub struct HistoryLine {
    role: HistoryRole,
    content: String,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Speaker)]
pub enum HistoryRole {
    User,
    Assistant,
}

/// List the caller's sessions, newest activity first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(ListQuery), responses(
    (status = 200, body = Page<Session>, description = "The sessions that have messages."),
    (status = 400, body = Problem, description = "invalid_query, invalid_cursor")
))]
pub async fn names(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Session>>, Problem> {
    let page = app.storage().sessions(&caller.owner, query.size(&app)?.items, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// List the messages of a session, oldest first.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/messages", tag = "sessions", params(("session_id" = String, Path, description = "`-` is the default session."), ListMessages),
    responses((status = 200, body = Page<Message>), (status = 400, body = Problem, description = "invalid_session")))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    SessionId(name): SessionId,
    Query(query): Query<ListMessages>,
) -> Result<Json<Page<Message>>, Problem> {
    let conversation = app.storage().find_conversation(&caller.owner, &Handle::Session(name)).await?;
    // No conversation has the nil id, but its query is checked like any other.
    let id = conversation.map_or(Uuid::nil(), |conversation| conversation.id);
    query.page(&app, &caller, id).await
}

/// Post a message to a session, as to a conversation.
#[utoipa::path(post, path = "/v1/sessions/{session_id}/messages", tag = "sessions", request_body = NewMessageBody,
    params(("session_id" = String, Path, description = "`-` is the default session."), StreamQuery), responses(
    (status = 202, body = AcceptedMessage, description = "Committed; `Location` names the run."),
    (status = 200, content_type = "text/event-stream", description = "The run's events; the header `x-run-id` names the run."),
    (status = 400, body = Problem, description = "invalid_session, and as for a conversation's messages"),
    (status = 404, body = Problem, description = "message_not_found"),
    (status = 409, body = Problem, description = "conversation_busy"),
    (status = 422, body = Problem, description = "idempotency_key_reused")
))]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    SessionId(name): SessionId,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
    JsonBody(body): JsonBody<NewMessageBody>,
) -> Result<Response, Problem> {
    let target = Target::Named { handle: Handle::Session(name), agent_id: None };
    messages::post_to(&app, &caller, target, (&headers, query), body).await
}

/// Read the history of a session: the newest messages, oldest first, as `[{"role": "User", "content": "…"}]`.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/history", tag = "sessions", params(("session_id" = String, Path, description = "`-` is the default session.")),
    responses((status = 200, body = Vec<HistoryLine>), (status = 400, body = Problem, description = "invalid_session")))]
pub async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    SessionId(name): SessionId,
) -> Result<Json<Vec<HistoryLine>>, Problem> {
    let Some(conversation) = app.storage().find_conversation(&caller.owner, &Handle::Session(name)).await? else {
        return Ok(Json(Vec::new()));
    };
    let newest = app.storage().newest_messages(&caller.owner, conversation.id, history_size(&app)).await?;
    Ok(Json(newest.into_iter().filter(|message| message.role != Role::System).map(HistoryLine::from).collect()))
}

impl From<Message> for HistoryLine {
    fn from(message: Message) -> Self {
        let role = if message.role == Role::User { HistoryRole::User } else { HistoryRole::Assistant };
        Self { role, content: message.content.to_stored() }
    }
}
