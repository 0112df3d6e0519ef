//! `/api/chat`: what the AI SDK's clients talk to (`useChat` with `DefaultChatTransport`, `WorkflowChatTransport`).
//!
//! A body is read in `request`; a question is put in `ask`, what a waiting run has asked is answered in `answer`. A chat is
//! taken up again in `follow`, and `history` is what a page begins with. `chat` finds what the client's ids mean.

mod answer;
mod ask;
mod chat;
mod follow;
mod history;
mod request;
mod segment;

use std::sync::Arc;

use axum::{
    Json,
    body::Body as ResponseBody,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::{WireQuery, events::event_stream};
use crate::{
    app::App,
    auth::Caller,
    extract::{JsonBody, Query},
    problem::Problem,
    wire::ai_sdk::UiMessage,
};
use chat::ChatTarget;
use request::{ChatAction, UiChatBody};
use segment::Segment;

/// Say something, have an answer made again, or answer what the assistant's message asks; the answer is a UI message stream.
///
/// Only the newest message of the body counts: the history is the server's.
#[utoipa::path(post, path = "/api/chat", tag = "ai-sdk", request_body = UiChatBody,
    params(WireQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run. Without it, the ids of chat and message do.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The UI message stream; the header `x-workflow-run-id` names it."),
        (status = 400, body = Problem, description = "unsupported_part, empty_content, content_too_long, invalid_content, agent_not_found, invalid_client_tool, invalid_body, invalid_json, invalid_idempotency_key, nothing_to_answer"),
        (status = 404, body = Problem, description = "conversation_not_found: nothing was ever said in the chat"),
        (status = 409, body = Problem, description = "run_not_waiting: the answered message is not the chat's last, has not asked this, or will not act on it any more; message_changes: others are changing the message"),
        (status = 422, body = Problem, description = "idempotency_key_reused"),
        (status = 500, body = Problem, description = "run_failed: the run failed before its first output")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<UiChatBody>,
) -> Result<Response, Problem> {
    let action = body.action()?;
    let chat = ChatTarget::of_body(&app, &caller, &body).await?;
    match action {
        ChatAction::Ask(question) => ask::ask(&app, &caller, &headers, chat, body, question, query.stream_mode).await,
        ChatAction::Regenerate { question } => {
            ask::regenerate(&app, &caller, &headers, chat, body, question, query.stream_mode).await
        }
        ChatAction::Answer { message_id, answers } => {
            answer::answer(&app, &caller, chat, &message_id, answers, query.stream_mode).await
        }
    }
}

/// Fields that are not known are ignored here.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct FollowQuery {
    /// How many chunks the client has; from the newest, if negative.
    start_index: Option<i64>,
}

/// Take a chat up again: all of its last answer, then what comes. With `startIndex`, what comes behind that many chunks of the
/// stream that `x-workflow-run-id` has named.
#[utoipa::path(get, path = "/api/chat/{id}/stream", tag = "ai-sdk",
    params(("id" = String, Path, description = "Of the chat; with `startIndex`, of the stream."), FollowQuery),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The UI message stream."),
        (status = 204, description = "There is nothing to come, or no such chat."),
        (status = 409, body = Problem, description = "chunks_superseded: some that were counted are gone; begin again with `startIndex=0`"),
        (status = 410, body = Problem, description = "events_gone: past their time")
    )
)]
pub async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    method: Method,
    Query(query): Query<FollowQuery>,
) -> Result<Response, Problem> {
    if method == Method::HEAD {
        return follow::head(&app, &caller, &id).await;
    }
    match query.start_index {
        None => follow::last_answer(&app, &caller, &id).await,
        Some(start) => follow::from_index(&app, &caller, &id, start).await,
    }
}

/// What a stop was.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Stopped)]
pub struct StopResult {
    success: bool,
}

/// Cancel what is at work in a chat, and what waits for its turn there. What the body says does not matter.
#[utoipa::path(post, path = "/api/chat/{id}/stop", tag = "ai-sdk", params(("id" = String, Path)), responses(
    (status = 200, body = StopResult), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<StopResult>, Problem> {
    let found = chat::find(&app, &caller, &id).await?;
    let conversation = found.ok_or_else(|| Problem::conversation_not_found(chat::truncated_id(&id)))?;
    for run_id in app.storage().unfinished_runs(&caller.owner, conversation.id).await? {
        app.cancel(&caller.owner, run_id).await?;
    }
    Ok(Json(StopResult { success: true }))
}

/// Read a chat: its newest messages, oldest first, with all of their parts. What is being answered is not among them.
#[utoipa::path(get, path = "/api/chat/{id}/messages", tag = "ai-sdk", params(("id" = String, Path)), responses(
    (status = 200, body = Vec<UiMessage>, description = "Empty for a chat in which nothing was said.")
))]
pub async fn messages(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<UiMessage>>, Problem> {
    match chat::find(&app, &caller, &id).await? {
        Some(conversation) => history::of(&app, &caller, conversation.id).await.map(Json),
        None => Ok(Json(Vec::new())),
    }
}

/// Answers with frames of a segment.
fn answer_with(segment: Segment, frames: ResponseBody) -> Response {
    let mut response = event_stream(segment.run_id, frames);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));
    let name = HeaderValue::from_str(&segment.to_string()).expect("a segment's id is a header value");
    headers.insert(HeaderName::from_static("x-workflow-run-id"), name);
    response
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
