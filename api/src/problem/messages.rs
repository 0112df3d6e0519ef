//! What can be wrong with a message, or with the one that it is said instead of.

use std::fmt::Display;

use axum::http::StatusCode;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn message_not_found(id: impl Display, conversation_id: &str) -> Self {
        let detail = format!("Conversation {conversation_id} has no message {id}, or no longer has it.");
        Self::new(StatusCode::NOT_FOUND, "message_not_found", detail)
    }

    pub fn message_not_restorable(id: Uuid, conversation_id: Uuid) -> Self {
        let detail = format!(
            "Conversation {conversation_id} has no place for message {id}: no other version of it is part of the conversation now."
        );
        Self::new(StatusCode::CONFLICT, "message_not_restorable", detail)
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

    pub fn nothing_to_regenerate() -> Self {
        let detail = "Nobody has said anything in this chat that could be answered again.";
        Self::new(StatusCode::BAD_REQUEST, "nothing_to_answer", detail)
    }

    pub fn unsupported_part(kind: &str) -> Self {
        let detail = format!("A part of type {kind} cannot be read here; say it as text.");
        Self::new(StatusCode::BAD_REQUEST, "unsupported_part", detail)
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

    pub fn invalid_content() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_content", "A text cannot have the character NUL (U+0000).")
    }
}
