//! `/api/chat/stream`: posts a message to a conversation or a new one, and returns the chat stream.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{run::SubmitMode, storage::Target};
use serde::Deserialize;

use crate::{
    app::App,
    auth::Caller,
    event_stream::{cursor, stream_on},
    extract::{self, JsonBody, Query},
    problem::Problem,
    run_request::{WireQuery, default_target, plain_posting},
    wire::Wire,
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatBody {
    message: String,
    /// A new conversation if absent.
    conversation_id: Option<String>,
    /// The agent of a new conversation; an existing one keeps its agent.
    agent_definition_id: Option<String>,
    /// The effect on an unfinished run of the conversation, as for `POST /v1/conversations/{id}/messages`.
    #[serde(default)]
    mode: SubmitMode,
}

/// Post a message. The answer streams `meta`, then `token` and `mcp_tool` as they occur, perhaps `error`, and `done`.
#[utoipa::path(post, path = "/api/chat/stream", operation_id = "chat_stream", tag = "wires", request_body = ChatBody,
    params(WireQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run."),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event id that the client has, for a repeated request.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The chat stream; the header `x-run-id` names the run."),
        (status = 204, description = "The client of a repeated request has all events."),
        (status = 400, body = Problem, description = "agent_not_found, empty_content, content_too_long, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<ChatBody>,
) -> Result<Response, Problem> {
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let conversation = body.conversation_id.clone().or_else(|| caller.named_session().map(str::to_owned));
    let fingerprint = ["chat", &or_empty(&conversation), &or_empty(&body.agent_definition_id), &body.message];
    let posting = plain_posting(&headers, &fingerprint, target(&caller, &body)?, body.message.clone(), body.mode)?;
    let (committed, subscriber) = app.post_and_follow(&caller, posting, cursor(&headers, None)?).await?;
    stream_on(Wire::Chat, &app, &committed.run, subscriber, query.stream_mode).await
}

/// Returns the target that the body's ids name. Fails if a text is no id.
fn target(caller: &Caller, body: &ChatBody) -> Result<Target, Problem> {
    if let Some(id) = &body.conversation_id {
        return extract::id(id).map(Target::Existing).map_err(Problem::conversation_not_found);
    }
    let agent_id = body.agent_definition_id.as_deref().map(extract::id).transpose();
    Ok(default_target(caller, agent_id.map_err(Problem::agent_not_found)?))
}
