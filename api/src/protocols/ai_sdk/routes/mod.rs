//! `/api/chat`: the routes for the AI SDK's clients (`useChat` with `DefaultChatTransport`, `WorkflowChatTransport`).
//!
//! `request` reads a body, `ask` posts a user's message, and `answer` answers a waiting run. `follow` resumes a stream,
//! `stop` ends an answer, `history` returns a chat's messages, and `chat` finds the conversation of a client's id. Streams end where a run waits,
//! and clients count their chunks: `segment` names the part of a run between two waits, and `filter` leaves out
//! superseded events.

mod answer;
mod ask;
mod chat;
mod filter;
mod follow;
mod history;
mod request;
mod segment;
pub mod stop;

use std::sync::Arc;

use axum::{
    Json,
    body::Body as ResponseBody,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header::LINK},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::Stream;
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    disconnect::{DisconnectGuard, GuardedFrames},
    event_stream::event_stream,
    extract::{JsonBody, Query},
    problem::Problem,
    protocols::ai_sdk::wire::UiMessage,
    relay::TruncatedStream,
    run_request::WireQuery,
    thread::find_thread,
};
use chat::ChatTarget;
use history::{ChatHistory, HistoryQuery};
use request::{ChatAction, UiChatBody};
use segment::Segment;

/// Post a message, regenerate an answer, or answer the questions of an assistant's message. Returns a UI message
/// stream.
///
/// The server reads only the newest message of the body, because it has the history.
#[utoipa::path(post, path = "/api/chat", tag = "ai-sdk", request_body = UiChatBody,
    params(WireQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run. Without it, the ids of chat and message do.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The UI message stream; the header `x-workflow-run-id` names it."),
        (status = 400, body = Problem, description = "unsupported_part, too_many_attachments, empty_content, content_too_long, invalid_content, agent_not_found, invalid_client_tool, invalid_body, invalid_json, invalid_idempotency_key, nothing_to_answer"),
        (status = 404, body = Problem, description = "conversation_not_found: the chat has no messages"),
        (status = 409, body = Problem, description = "run_not_waiting: the answered message is not the chat's last, or its run does not wait for this answer; nothing_to_run: the newest message asks for nothing; message_changes: other requests are changing the message"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
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

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct FollowQuery {
    /// The number of chunks that the client has; if negative, counted from the newest.
    start_index: Option<i64>,
}

/// Resume a chat: its last answer from the start, then new chunks as they arrive. With `startIndex`, the chunks after
/// that many of the stream that `x-workflow-run-id` names.
#[utoipa::path(get, path = "/api/chat/{id}/stream", tag = "ai-sdk",
    params(("id" = String, Path, description = "The chat's id; with `startIndex`, the stream's."), FollowQuery),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The UI message stream."),
        (status = 204, description = "The chat has no further chunks, or does not exist."),
        (status = 409, body = Problem, description = "chunks_superseded: some of the counted chunks no longer exist; start again with `startIndex=0`"),
        (status = 410, body = Problem, description = "events_gone: the events have expired")
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

/// Read a chat: its newest messages, oldest first, with all their parts. Unfinished answers are not among them.
///
/// The header `link` with `rel="prev"` has the address of the messages before them, if there are any.
#[utoipa::path(get, path = "/api/chat/{id}/messages", tag = "ai-sdk", params(("id" = String, Path), HistoryQuery), responses(
    (status = 200, body = Vec<UiMessage>, description = "The messages; empty for a chat that has none."),
    (status = 400, body = Problem, description = "invalid_query"),
    (status = 404, body = Problem, description = "message_not_found: the chat has no message `before`")
))]
pub async fn messages(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, Problem> {
    query.size(&app)?;
    let Some(conversation) = find_thread(&app, &caller, &id).await? else {
        return Ok(Json(Vec::<UiMessage>::new()).into_response());
    };
    let ChatHistory { messages, first } = history::of(&app, &caller, conversation.id, &query).await?;
    let mut response = Json(messages).into_response();
    if let Some(first) = first {
        let earlier = format!("</api/chat/{}/messages?before={first}>; rel=\"prev\"", conversation.id);
        let earlier = HeaderValue::from_str(&earlier).expect("ids are a header value");
        response.headers_mut().insert(LINK, earlier);
    }
    Ok(response)
}

/// Returns the frames as the body of a stream. Its client may end the run by disconnecting, where the deployment says so.
fn body_of<S>(app: &Arc<App>, caller: &Caller, run_id: Uuid, frames: S) -> ResponseBody
where
    S: Stream<Item = Result<Bytes, TruncatedStream>> + Send + 'static,
{
    let guard = DisconnectGuard::of_wire(app, &caller.owner, run_id, app.config().ai_sdk_on_disconnect);
    ResponseBody::from_stream(GuardedFrames::new(frames, guard, ()))
}

/// Returns the stream of a segment.
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
