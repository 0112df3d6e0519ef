//! Errors as clients see them: problem+json (RFC 9457) with a stable lower-case `code`.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use holdfast_shared::{agent::Invalid, approval::Approval, event_id, run::RunError, storage};
use serde::Serialize;
use uuid::Uuid;

use crate::auth;

/// An answer that says what was wrong and what to do about it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// The HTTP status code.
    #[serde(serialize_with = "number")]
    #[schema(value_type = u16)]
    pub status: StatusCode,
    /// Stable and lower-case, for programs.
    pub code: &'static str,
    /// The status in words.
    pub title: &'static str,
    /// A sentence for people.
    pub detail: String,
    /// The run that the problem is about, where there is one to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The answer that was first, where there can be only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// Seconds after which another try may succeed, where that is known better than "in a moment".
    #[serde(skip)]
    retry_after: Option<u64>,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { status, code, title, detail: detail.into(), run: None, approval: None, retry_after: None }
    }

    pub fn route_not_found(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("There is nothing at {path}; /openapi.json lists what there is."),
        )
    }

    pub fn method_not_allowed(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("{path} does not take {method}; /openapi.json lists what it takes."),
        )
    }

    pub fn conversation_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "conversation_not_found", format!("There is no conversation {id}."))
    }

    pub fn run_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "run_not_found", format!("There is no run {id}."))
    }

    pub fn message_not_found(id: Uuid, conversation_id: &str) -> Self {
        let detail = format!("Conversation {conversation_id} has no message {id}, or no longer has it.");
        Self::new(StatusCode::NOT_FOUND, "message_not_found", detail)
    }

    pub fn message_exists(conversation_id: &str) -> Self {
        let detail = format!("Conversation {conversation_id} has another message of this id.");
        Self::new(StatusCode::CONFLICT, "message_exists", detail)
    }

    pub fn message_changes(id: &str) -> Self {
        let detail = format!("Others are changing message {id} at this moment; send it again.");
        Self::new(StatusCode::CONFLICT, "message_changes", detail)
    }

    pub fn nothing_to_answer(id: Uuid) -> Self {
        let detail = format!(
            "Nobody has said anything just before message {id} that could be answered again; send content with replace_from."
        );
        Self::new(StatusCode::BAD_REQUEST, "nothing_to_answer", detail)
    }

    pub fn nobody_has_asked() -> Self {
        let detail = "Nobody has said anything in this chat that could be answered again.";
        Self::new(StatusCode::BAD_REQUEST, "nothing_to_answer", detail)
    }

    pub fn briefing_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "briefing_not_found", format!("There is no briefing {id}."))
    }

    pub fn invalid_briefing(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_briefing", format!("{problem}."))
    }

    pub fn agent_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "agent_not_found", format!("There is no agent {id}; nothing was created."))
    }

    /// Where the agent is what is asked for, and not what something else refers to.
    pub fn no_such_agent(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "agent_not_found", format!("There is no agent {id}."))
    }

    pub fn invalid_agent(invalid: &Invalid) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_agent", format!("{}: {}.", invalid.field, invalid.problem))
    }

    pub fn agent_in_file(id: Uuid) -> Self {
        let detail =
            format!("Agent {id} comes from the file that HOLDFAST_AGENTS names; change it there, and start again.");
        Self::new(StatusCode::CONFLICT, "agent_in_file", detail)
    }

    pub fn stdio_not_allowed() -> Self {
        let detail = "A stdio server is a command on the worker's host: such agents come from the file that HOLDFAST_AGENTS names, or need HOLDFAST_MCP_STDIO=true.";
        Self::new(StatusCode::FORBIDDEN, "stdio_not_allowed", detail)
    }

    pub fn invalid_client_tool(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_client_tool", format!("{problem}."))
    }

    pub fn invalid_metadata(max: usize) -> Self {
        let detail = format!(
            "metadata is a JSON object that is not nested deeper than 64; a conversation has at most {max} bytes of it in all."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_metadata", detail)
    }

    pub fn checkpoint_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "checkpoint_not_found", format!("There is no checkpoint {id}."))
    }

    pub fn approval_not_found(id: impl std::fmt::Display, run_id: Uuid) -> Self {
        let detail = format!("Run {run_id} has asked for no approval {id}.");
        Self::new(StatusCode::NOT_FOUND, "approval_not_found", detail).about(run_id)
    }

    pub fn call_not_found(call_id: &str, run_id: Uuid) -> Self {
        let call_id: String = call_id.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, "call_not_found", format!("Run {run_id} has no tool call {call_id}."))
            .about(run_id)
    }

    pub fn already_decided(first: Approval) -> Self {
        let detail = format!("Approval {} is {} already; the first decision counts.", first.id, first.status.as_str());
        let problem = Self::new(StatusCode::CONFLICT, "already_decided", detail).about(first.run_id);
        Self { approval: Some(Box::new(first)), ..problem }
    }

    pub fn already_completed(run_id: Uuid) -> Self {
        let detail = "The result of this call is known already; the first one counts.";
        Self::new(StatusCode::CONFLICT, "already_completed", detail).about(run_id)
    }

    pub fn answer_expired(run_id: Uuid) -> Self {
        let detail = "The time for this answer is over; the run goes on without it.";
        Self::new(StatusCode::CONFLICT, "expired", detail).about(run_id)
    }

    pub fn run_not_waiting(run_id: Uuid) -> Self {
        let detail = format!("Run {run_id} does not wait for this answer, or has ended.");
        Self::new(StatusCode::CONFLICT, "run_not_waiting", detail).about(run_id)
    }

    pub fn message_not_waiting(message_id: &str) -> Self {
        let shown: String = message_id.chars().take(64).collect();
        let detail = format!("Message {shown} is not the chat's last answer, so nothing waits for what it says.");
        Self::new(StatusCode::CONFLICT, "run_not_waiting", detail)
    }

    pub fn chunks_superseded(run_id: Uuid) -> Self {
        let detail = "Some of the chunks that were counted are no longer there. Begin again with startIndex=0.";
        Self::new(StatusCode::CONFLICT, "chunks_superseded", detail).about(run_id)
    }

    pub fn unsupported_part(kind: &str) -> Self {
        let detail = format!("A part of type {kind} cannot be read here; say it as text.");
        Self::new(StatusCode::BAD_REQUEST, "unsupported_part", detail)
    }

    pub fn invalid_input(problem: &str) -> Self {
        let detail = format!("edited_input is refused, {problem}. Nothing was decided.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_input", detail)
    }

    pub fn conversation_busy(id: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conversation_busy",
            format!(
                "Conversation {id} has a run that has not ended; wait for it, or use the mode enqueue or interrupt."
            ),
        )
    }

    pub fn key_reused() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            "This Idempotency-Key was used for another request; use a new key for a new request.",
        )
    }

    pub fn invalid_key(max_chars: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_idempotency_key",
            format!("An Idempotency-Key has 1 to {max_chars} visible ASCII characters."),
        )
    }

    pub fn invalid_user(max_chars: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_user",
            format!("X-User has 1 to {max_chars} characters and no control characters."),
        )
    }

    pub fn foreign_host(host: &str) -> Self {
        let detail =
            format!("In development mode only loopback Host names are answered, such as localhost, not {host:?}.");
        Self::new(StatusCode::MISDIRECTED_REQUEST, "foreign_host", detail)
    }

    pub fn empty_content() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "empty_content",
            "A message must say something: its content is empty or only white space.",
        )
    }

    pub fn content_too_long(bytes: usize, max: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "content_too_long",
            format!("The content has {bytes} bytes; at most {max} are taken."),
        )
    }

    pub fn invalid_title(max_chars: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_title",
            format!("A title has 1 to {max_chars} characters; leave it out or null for none."),
        )
    }

    pub fn invalid_json(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", detail)
    }

    pub fn invalid_body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_body", detail)
    }

    pub fn body_too_large(max: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("A request body has at most {max} bytes."))
    }

    pub fn body_timeout() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            "The request's body took too long to arrive; nothing was stored.",
        )
    }

    pub fn invalid_content() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_content", "A text cannot have the character NUL (U+0000).")
    }

    pub fn too_many_queued(id: impl std::fmt::Display, max: usize) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_queued",
            format!("Conversation {id} has {max} runs that have not ended; wait for them, or use the mode interrupt."),
        )
    }

    pub fn unsupported_media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "Send JSON, with Content-Type: application/json.",
        )
    }

    pub fn invalid_query(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
    }

    pub fn invalid_cursor() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_cursor",
            "The cursor is not one that a page of this list gave out as next.",
        )
    }

    pub fn no_snapshot_on_this_wire() -> Self {
        Self::invalid_query("There are snapshots on the native wire only; leave out wire or snapshot.")
    }

    pub fn invalid_offset(offset: &str) -> Self {
        let offset: String = offset.chars().take(64).collect();
        let detail = format!(
            "An offset is -1 (the start), now (the end), or what an answer gave out as Stream-Next-Offset, not {offset:?}."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_offset", detail)
    }

    pub fn missing_offset() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_offset", "With live, the offset must be said: -1 is the start.")
    }

    pub fn malformed_event_id(error: &event_id::Malformed) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_event_id", format!("{error}."))
    }

    pub fn foreign_event_id(id: impl std::fmt::Display, run_id: Uuid) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_event_id", format!("Run {run_id} never had an event {id}."))
            .about(run_id)
    }

    pub fn events_gone(run_id: Uuid) -> Self {
        Self::new(
            StatusCode::GONE,
            "events_gone",
            format!("The events of run {run_id} are past their time; its result is kept at /v1/runs/{run_id}."),
        )
        .about(run_id)
    }

    /// The run has failed before it had anything to show, so that there is no stream.
    pub fn run_failed(run_id: Uuid, error: &RunError) -> Self {
        // What the provider says is for the operator, and in the run.
        let advice = match error.code.as_str() {
            "model_timeout" | "model_rate_limited" | "model_unavailable" | "model_broken_stream" | "model_failed" => {
                "Try again in a moment."
            }
            _ => "Trying again may not help; whoever runs this server can see why.",
        };
        let detail = format!("The assistant could not answer, and nothing was said ({}). {advice}", error.code);
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", detail).about(run_id)
    }

    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something went wrong here; the server's log says what.",
        )
    }

    pub fn database_away() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "database_away",
            "The database cannot be reached. Try again in a moment; with the same Idempotency-Key nothing is done twice.",
        )
    }

    pub(crate) const fn retried_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    fn about(mut self, run_id: Uuid) -> Self {
        self.run = Some(format!("/v1/runs/{run_id}"));
        self
    }
}

impl From<storage::Error> for Problem {
    fn from(error: storage::Error) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "request failed");
        if error.is_away() { Self::database_away() } else { Self::internal() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after.unwrap_or(1));
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
        }
        if let Some(challenge) = auth::challenge(status) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
