//! Problems with a message, or with the message that it replaces.

use std::fmt::Display;

use axum::http::StatusCode;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn message_not_found(id: impl Display, conversation_id: &str) -> Self {
        let detail = format!("Conversation {conversation_id} has no message {id}, or has it no longer.");
        Self::new(StatusCode::NOT_FOUND, "message_not_found", detail)
    }

    pub fn message_not_restorable(id: Uuid, conversation_id: Uuid) -> Self {
        let detail = format!(
            "Conversation {conversation_id} cannot restore message {id}: no other version of it is part of the conversation now."
        );
        Self::new(StatusCode::CONFLICT, "message_not_restorable", detail)
    }

    pub fn run_begun(id: Uuid) -> Self {
        let detail =
            format!("A run has read the message of run {id}; while it answers, a cancel of that run stops it.");
        Self::new(StatusCode::CONFLICT, "run_begun", detail)
    }

    pub fn message_exists(conversation_id: &str) -> Self {
        let detail = format!("Conversation {conversation_id} has another message with this id.");
        Self::new(StatusCode::CONFLICT, "message_exists", detail)
    }

    pub fn message_changes(id: &str) -> Self {
        let detail = format!("Other requests are changing message {id}; send it again.");
        Self::new(StatusCode::CONFLICT, "message_changes", detail)
    }

    pub fn nothing_to_answer(id: Uuid) -> Self {
        let detail = format!(
            "Message {id} does not follow a user's message, so no answer can be made again; send content with replace_from."
        );
        Self::new(StatusCode::BAD_REQUEST, "nothing_to_answer", detail)
    }

    /// For a request whose newest message asks for nothing, in a conversation that waits for nothing.
    pub fn nothing_to_run(detail: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "nothing_to_run", detail)
    }

    pub fn nothing_to_regenerate() -> Self {
        let detail = "This chat has no user's message, so no answer can be made again.";
        Self::new(StatusCode::BAD_REQUEST, "nothing_to_answer", detail)
    }

    pub fn unsupported_part(kind: &str) -> Self {
        let detail = format!("This route does not support parts of type {kind}; send text.");
        Self::new(StatusCode::BAD_REQUEST, "unsupported_part", detail)
    }

    pub fn empty_content() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "empty_content",
            "The content of a message must not be empty or only white space.",
        )
    }

    pub fn content_too_long(bytes: usize, max: usize) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "content_too_long",
            format!("The content has {bytes} bytes; at most {max} are allowed."),
        )
    }

    pub fn invalid_content() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_content", "A text must not contain the character NUL (U+0000).")
    }

    /// Refuses a context in which the planner cannot work.
    pub fn invalid_context_type(context_type: &str, known: &[&str]) -> Self {
        let detail = format!("context_type is one of {}, not {context_type:?}.", known.join(", "));
        Self::new(StatusCode::BAD_REQUEST, "invalid_context_type", detail)
    }

    /// Reports a setting that names no agent.
    pub fn stream_agent_not_found(name: &str) -> Self {
        let detail = format!("HOLDFAST_STREAM_AGENT names the agent {name:?}, which does not exist.");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "stream_agent_not_found", detail)
    }

    /// Refuses a user's profile.
    pub fn invalid_profile(most: usize) -> Self {
        let detail = format!("A profile has at most {most} bytes, and no NUL.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_profile", detail)
    }
}
