//! `/v1/conversations/{id}/messages`: post, list and restore messages.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{
    context::AgentContext,
    message::Message,
    page::Page,
    run::{Run, SubmitMode},
    storage::{MessageFilter, MessageInput, Target},
    tool::ClientTool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::accepted;
use crate::{
    anonymous_limits::AdmittedWriter,
    app::{App, ContentInput, Posting, conversation_label, fingerprint},
    auth::Caller,
    event_stream::{StreamQuery, cursor, stream_on},
    extract::{self, ConversationId, JsonBody, PartOf, Query, accepts_event_stream, idempotency_key},
    page_sizes::page_size,
    problem::Problem,
    run_request::checked_options,
    wire::Wire,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessageBody {
    /// The text, or texts and files. If absent, with `replace_from`, the server makes the answer again.
    content: Option<ContentInput>,
    /// The message that this one replaces; it and all later messages are superseded.
    replace_from: Option<Uuid>,
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

/// A committed message and its run.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AcceptedMessage {
    pub message: Message,
    pub run: Run,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ListMessages {
    /// Whether the page includes superseded messages; false by default.
    #[serde(default)]
    superseded: bool,
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

impl ListMessages {
    /// Returns the page of the caller's conversation. Fails if the limit or the cursor is invalid.
    pub async fn page(
        &self,
        app: &App,
        caller: &Caller,
        conversation_id: Uuid,
    ) -> Result<Json<Page<Message>>, Problem> {
        let size = page_size(app, self.limit)?;
        let which = if self.superseded { MessageFilter::SupersededToo } else { MessageFilter::Current };
        let page = app.storage().messages(&caller.owner, conversation_id, which, size, self.cursor.as_deref()).await?;
        page.map(Json).ok_or_else(Problem::invalid_cursor)
    }
}

/// List messages, oldest first.
#[utoipa::path(get, path = "/v1/conversations/{id}/messages", tag = "messages", params(("id" = Uuid, Path), ListMessages), responses(
    (status = 200, body = Page<Message>), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Query(query): Query<ListMessages>,
) -> Result<Json<Page<Message>>, Problem> {
    if app.storage().conversation(&caller.owner, id).await?.is_none() {
        return Err(Problem::conversation_not_found(id));
    }
    query.page(&app, &caller, id).await
}

/// Post a message; the server commits it with a run. With `Accept: text/event-stream` the answer is the run's stream.
#[utoipa::path(post, path = "/v1/conversations/{id}/messages", tag = "messages", request_body = NewMessageBody,
    params(("id" = Uuid, Path), StreamQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 202, body = AcceptedMessage, description = "Committed; `Location` names the run."),
        (status = 200, content_type = "text/event-stream", description = "The run's events; the header `x-run-id` names the run."),
        (status = 400, body = Problem, description = "empty_content, content_too_long, nothing_to_answer, invalid_client_tool, invalid_metadata, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found, message_not_found"),
        (status = 409, body = Problem, description = "conversation_busy"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
    JsonBody(body): JsonBody<NewMessageBody>,
) -> Result<Response, Problem> {
    post_to(&app, &caller, Target::Existing(id), (&headers, query), body).await
}

/// Restore another version of a message. It supersedes the current version with all later messages, and the server
/// cancels their unfinished runs. A message that is already part of the conversation stays as it is.
#[utoipa::path(post, path = "/v1/conversations/{id}/messages/{message_id}/restore", operation_id = "restore", tag = "messages",
    params(("id" = Uuid, Path), ("message_id" = Uuid, Path)),
    responses(
        (status = 200, body = Message, description = "The message, which is part of the conversation."),
        (status = 404, body = Problem, description = "conversation_not_found, message_not_found"),
        (status = 429, body = Problem, description = "too_many_restores"),
        (status = 503, body = Problem, description = "restore_busy"),
        (status = 409, body = Problem, description = "message_not_restorable: no version of the message is part of the conversation now")
    )
)]
pub async fn restore(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    PartOf(ConversationId(id), message_id): PartOf<ConversationId>,
) -> Result<Json<Message>, Problem> {
    let message_id = extract::id(&message_id).map_err(|text| Problem::message_not_found(text, &id.to_string()))?;
    app.restore_message(&caller, id, message_id).await.map(Json)
}

/// Commits a message with its run. Returns both, or the run's stream if the client accepts one.
pub async fn post_to(
    app: &Arc<App>,
    caller: &Caller,
    target: Target,
    (headers, query): (&HeaderMap, StreamQuery),
    body: NewMessageBody,
) -> Result<Response, Problem> {
    let options = checked_options(app, body.stream, body.client_tools, body.metadata, body.context)?;
    let content = match body.content {
        Some(content) => Some(app.content(caller, content).await?),
        None => None,
    };
    let input = match (content, body.replace_from) {
        (Some(content), None) => MessageInput::New(content),
        (Some(content), Some(replace_from)) => MessageInput::Edit { content, replace_from },
        (None, Some(replace_from)) => MessageInput::Again { replace_from },
        (None, None) => {
            return Err(Problem::invalid_body("A message needs content, or replace_from to make an answer again."));
        }
    };
    let (conversation, replaced) = (conversation_label(&target), input.replace_from().map(|id| id.to_string()));
    let content = input.content().map(fingerprint).unwrap_or_default();
    let mut fingerprint = vec!["message", &conversation, &content, body.mode.as_str()];
    fingerprint.extend(replaced.as_deref());
    let key = idempotency_key(headers, &fingerprint, &options)?;
    let posting = Posting { mode: body.mode, options, key, ..Posting::new(target, input) };
    if accepts_event_stream(headers) {
        let (committed, subscriber) = app.post_and_follow(caller, posting, cursor(headers, None)?).await?;
        return stream_on(Wire::Native, app, &committed.run, subscriber, query.stream_mode).await;
    }
    let committed = app.post(caller, posting).await?;
    Ok(accepted(committed.run.id, AcceptedMessage { message: committed.message, run: committed.run }))
}
