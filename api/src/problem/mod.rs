//! Errors as clients receive them: problem+json (RFC 9457) with a stable lower-case `code`. Each has a constructor.
//! Those for agents, messages, events, answers, quotas and limits are in the files beside this one, those for identities in
//! `auth/refusal.rs`.

mod agents;
mod answers;
mod events;
mod files;
mod in_flight;
mod knowledge;
mod memories;
mod messages;
mod plans;
mod quotas;
mod tasks;
mod workspace;

use std::sync::Arc;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use holdfast_shared::{agent::InvalidDefinition, approval::Approval, run::RunError, storage};
use serde::Serialize;
use uuid::Uuid;

use crate::auth;

/// An answer that says what went wrong and what the client can do.
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
    /// The path of the run that the problem concerns, if the caller can read one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The first decision, for `already_decided`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// Seconds after which a retry may succeed; 1 if unknown.
    #[serde(skip)]
    pub retry_after: Option<u64>,
    /// True if a repetition of the request cannot succeed.
    #[serde(skip)]
    is_final: bool,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self {
            status,
            code,
            title,
            detail: detail.into(),
            run: None,
            approval: None,
            retry_after: None,
            is_final: false,
        }
    }

    pub fn route_not_found(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("The server has no route {path}; /openapi.json lists all routes."),
        )
    }

    pub fn method_not_allowed(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("{path} does not accept {method}; /openapi.json lists its methods."),
        )
    }

    pub fn conversation_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "conversation_not_found", format!("There is no conversation {id}."))
    }

    pub fn run_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "run_not_found", format!("There is no run {id}."))
    }

    pub fn briefing_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "briefing_not_found", format!("There is no briefing {id}."))
    }

    pub fn invalid_briefing(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_briefing", format!("{problem}."))
    }

    pub fn invalid_profiles(invalid: &InvalidDefinition) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_profiles", format!("{}: {}.", invalid.field, invalid.problem))
    }

    pub fn profiles_in_file() -> Self {
        let detail =
            "The profiles come from the file that HOLDFAST_AGENTS names; edit that file and restart the server.";
        Self::new(StatusCode::CONFLICT, "profiles_in_file", detail)
    }

    pub fn stdio_not_allowed() -> Self {
        let detail = "A stdio server is a command on the worker's host. Define such an agent in the file that HOLDFAST_AGENTS names, or set HOLDFAST_MCP_STDIO=true.";
        Self::new(StatusCode::FORBIDDEN, "stdio_not_allowed", detail)
    }

    pub fn invalid_client_tool(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_client_tool", format!("{problem}."))
    }

    pub fn schemas_busy() -> Self {
        let detail = "The server is checking as many schemas as it can. Try again in a moment; nothing was stored.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "schemas_busy", detail)
    }

    pub fn invalid_metadata(max: usize) -> Self {
        let detail = format!(
            "metadata must be a JSON object that is nested at most 64 deep; a conversation has at most {max} bytes of it in all."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_metadata", detail)
    }

    pub fn checkpoint_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "checkpoint_not_found", format!("There is no checkpoint {id}."))
    }

    pub fn chunks_superseded(run_id: Uuid) -> Self {
        let detail = "Some of the chunks that the client counted no longer exist. Start again with startIndex=0.";
        Self::new(StatusCode::CONFLICT, "chunks_superseded", detail).about(run_id)
    }

    pub fn conversation_busy(id: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conversation_busy",
            format!("Conversation {id} has an unfinished run; wait for it, or use the mode enqueue or interrupt."),
        )
    }

    pub fn key_reused() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            "Another request has used this Idempotency-Key; use a new key for a new request.",
        )
    }

    /// Names the field by which the client has identified its request, if another request has had the value before.
    pub fn about_id(mut self, field: &str, scope: &str) -> Self {
        if self.code == "idempotency_key_reused" {
            self.detail =
                format!("Another request of this {scope} has had this {field}; a new request needs a new {field}.");
        }
        self
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
            format!("X-User has 1 to {max_chars} characters, one of them visible, and no control characters."),
        )
    }

    pub fn foreign_host(host: &str) -> Self {
        let detail = format!("Development mode accepts only loopback Host names such as localhost, not {host:?}.");
        Self::new(StatusCode::MISDIRECTED_REQUEST, "foreign_host", detail)
    }

    pub fn invalid_host() -> Self {
        let detail =
            "A request must name one host: one Host header with a name and a port, and no target on another host.";
        Self::new(StatusCode::BAD_REQUEST, "invalid_host", detail)
    }

    pub fn invalid_path() -> Self {
        let detail = "A path must be UTF-8, with its percent-encoding decoded.";
        Self::new(StatusCode::BAD_REQUEST, "invalid_path", detail)
    }

    pub fn foreign_peer(peer: std::net::IpAddr) -> Self {
        let detail = format!(
            "Development mode serves this machine only, not {peer}. Set HOLDFAST_JWT_KEY, or set HOLDFAST_DEVELOPMENT=true in a container that only this machine can reach."
        );
        Self::new(StatusCode::FORBIDDEN, "foreign_peer", detail)
    }

    pub fn invalid_title(max_chars: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_title",
            format!("A title has 1 to {max_chars} characters, one of them visible; omit it or send null for none."),
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

    pub fn too_many_values(max: usize) -> Self {
        let detail =
            format!("A request body has at most {max} opening brackets, colons and commas outside of its texts.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    pub fn body_timeout() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            "The request's body did not arrive in time; nothing was stored.",
        )
    }

    pub fn connections_exhausted() -> Self {
        let detail = "The server has no free connection; try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "connections_exhausted", detail)
    }

    pub fn too_many_queued(id: impl std::fmt::Display, max: usize) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_queued",
            format!("Conversation {id} has {}; wait, or use the mode interrupt.", counted(max, "unfinished run")),
        )
    }

    pub fn unsupported_media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "Send JSON, with Content-Type: application/json.",
        )
    }

    pub fn unsupported_encoding() -> Self {
        let detail = "The body must not be compressed: send it without Content-Encoding.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", detail)
    }

    pub fn invalid_query(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
    }

    pub fn invalid_cursor() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_cursor", "The cursor must be the next of a page of this list.")
    }

    pub fn no_snapshot_on_this_wire() -> Self {
        Self::invalid_query("Only the native wire has snapshots; omit wire or snapshot.")
    }

    pub fn invalid_offset(offset: &str) -> Self {
        let offset: String = offset.chars().take(64).collect();
        let detail = format!(
            "An offset is -1 (the start), now (the end), or the Stream-Next-Offset of an answer, not {offset:?}."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_offset", detail)
    }

    pub fn missing_offset() -> Self {
        let detail = "With live, the query must have an offset; -1 is the start.";
        Self::new(StatusCode::BAD_REQUEST, "invalid_offset", detail)
    }

    /// For a run that failed before its first output, so that the answer is no stream.
    pub fn run_failed(run_id: Uuid, error: &RunError) -> Self {
        // The provider's message is for the operator; the run has it.
        let advice = match error.code.as_str() {
            "model_timeout" | "model_rate_limited" | "model_unavailable" | "model_broken_stream" | "model_failed" => {
                "Try again in a moment."
            }
            _ => "A retry may not help; the operator of this server can see the cause.",
        };
        let detail = format!("The run failed before its first output ({}). {advice}", error.code);
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "run_failed", detail).about(run_id)
    }

    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "The server failed to answer the request; its log has the cause.",
        )
    }

    pub fn database_away() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "database_away",
            "The server cannot reach the database. Try again in a moment; with the same Idempotency-Key the server does nothing twice.",
        )
    }

    pub(crate) const fn retried_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Tells clients that repeat failed requests by themselves that they need not.
    pub(crate) const fn without_retry(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Returns whether a repetition of the request cannot succeed.
    pub fn is_final(&self) -> bool {
        // The other refusals of a client's request pass by themselves.
        let passes = matches!(self.status.as_u16(), 408 | 425 | 429) || self.code == "conversation_busy";
        self.is_final || (self.status.is_client_error() && !passes)
    }

    pub fn about(mut self, run_id: Uuid) -> Self {
        self.run = Some(format!("/v1/runs/{run_id}"));
        self
    }
}

/// Returns a number with its noun: `1 run`, `2 runs`.
pub fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

impl From<storage::Error> for Problem {
    fn from(error: storage::Error) -> Self {
        if let storage::Error::Quota { exceeded, .. } = &error {
            return Self::beyond_quota(*exceeded);
        }
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "failed to answer a request: storage returned an error"
        );
        if error.is_away() { Self::database_away() } else { Self::internal() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after.unwrap_or(1));
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
        }
        if let Some(challenge) = auth::challenge(status) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}
