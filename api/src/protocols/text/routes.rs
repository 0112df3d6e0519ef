//! `/api/conversations/{id}/messages`: posts a message and returns the answer's text as a stream of plain chunks.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{run::SubmitMode, storage::Target};
use serde::Deserialize;

use crate::{
    app::App,
    auth::Caller,
    event_stream::{cursor, stream_on},
    extract::{ConversationId, JsonBody, Query, accepts_event_stream},
    problem::Problem,
    routes::{accepted, messages::AcceptedMessage},
    run_request::{WireQuery, plain_posting},
    wire::Wire,
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct TextMessageBody {
    content: String,
    /// The effect on an unfinished run of the conversation, as for `POST /v1/conversations/{id}/messages`.
    #[serde(default)]
    mode: SubmitMode,
}

/// Post a message. With `Accept: text/event-stream` the answer streams its text, chunk by chunk, and `[DONE]`.
#[utoipa::path(post, path = "/api/conversations/{id}/messages", operation_id = "text_stream", tag = "wires", request_body = TextMessageBody,
    params(("id" = Uuid, Path), WireQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run."),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event id that the client has, for a repeated request.")),
    responses(
        (status = 202, body = AcceptedMessage, description = "Committed; `Location` names the run."),
        (status = 200, content_type = "text/event-stream", description = "The text; the header `x-run-id` names the run."),
        (status = 204, description = "The client of a repeated request has all events."),
        (status = 400, body = Problem, description = "empty_content, content_too_long, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 422, body = Problem, description = "idempotency_key_reused"),
        (status = 500, body = Problem, description = "run_failed: the run failed before its first output; `run` links to it")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<TextMessageBody>,
) -> Result<Response, Problem> {
    let fingerprint = ["text", &id.to_string(), &body.content];
    let posting = plain_posting(&headers, &fingerprint, Target::Existing(id), body.content.clone(), body.mode)?;
    if accepts_event_stream(&headers) {
        let (committed, subscriber) = app.post_and_await_output(&caller, posting, cursor(&headers, None)?).await?;
        return stream_on(Wire::Text, &app, &committed.run, subscriber, query.stream_mode).await;
    }
    let committed = app.post(&caller, posting).await?;
    Ok(accepted(committed.run.id, AcceptedMessage { message: committed.message, run: committed.run }))
}
