//! `/v1/conversations/{id}/messages`: say something, and read what was said.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{
    message::Message,
    page::Page,
    run::{Run, SubmitMode},
    storage::{NewRun, Target},
    tool::ClientTool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{
    ListQuery, accepted, checked_options,
    events::{StreamQuery, cursor, stream, stream_mode},
};
use crate::{
    app::App,
    auth::Caller,
    extract::{Body, ConversationId, Query, accepts_event_stream, idempotency_key},
    problem::Problem,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessageBody {
    content: String,
    #[serde(default)]
    mode: SubmitMode,
    /// Whether the run writes `*.delta` events; true by default.
    stream: Option<bool>,
    /// Tools that the client executes: the run waits for their results.
    #[serde(default)]
    client_tools: Vec<ClientTool>,
    /// A JSON object, kept with the run and taken over by later runs of the conversation.
    metadata: Option<Value>,
}

/// A committed message and its run.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AcceptedMessage {
    message: Message,
    run: Run,
}

/// List messages, oldest first.
#[utoipa::path(get, path = "/v1/conversations/{id}/messages", tag = "messages", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Page<Message>), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Message>>, Problem> {
    let limit = query.limit(&app)?;
    if app.storage().conversation(&caller.owner, id).await?.is_none() {
        return Err(Problem::conversation_not_found(id));
    }
    let page = app.storage().messages(&caller.owner, id, limit, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Say something: the message is committed with a run. With `Accept: text/event-stream` the answer is the run's stream.
#[utoipa::path(post, path = "/v1/conversations/{id}/messages", tag = "messages", request_body = NewMessageBody,
    params(("id" = Uuid, Path), StreamQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run.")),
    responses(
        (status = 202, body = AcceptedMessage, description = "Committed; `Location` names the run."),
        (status = 200, content_type = "text/event-stream", description = "The run's events; the header `x-run-id` names the run."),
        (status = 400, body = Problem, description = "empty_content, content_too_long, invalid_client_tool, invalid_metadata, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found"),
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
    Body(body): Body<NewMessageBody>,
) -> Result<Response, Problem> {
    let options = checked_options(&app, body.stream, body.client_tools, body.metadata)?;
    let asked = ["message", &id.to_string(), &body.content, body.mode.as_str()];
    let key = idempotency_key(&headers, &asked, &options)?;
    let new = NewRun {
        run_id: Uuid::now_v7(),
        target: Target::Existing(id),
        content: body.content,
        mode: body.mode,
        options,
        max_metadata: app.config().max_metadata_bytes,
        key,
        max_unfinished: app.config().max_queued,
    };
    if accepts_event_stream(&headers) {
        let (posted, opened) = app.post_and_follow(&caller, new, cursor(&headers, None)?).await?;
        let mode = stream_mode(&app, &posted.run, query.stream_mode).await?;
        return Ok(stream(&posted.run, opened, mode));
    }
    let posted = app.post(&caller, new).await?;
    Ok(accepted(posted.run.id, AcceptedMessage { message: posted.message, run: posted.run }))
}
