//! Refusals of OpenAI's wire.

use axum::http::StatusCode;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn response_not_found(id: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "response_not_found", format!("There is no response {id}."))
    }

    /// `last` is the last number that the client and the log have in common.
    pub fn response_taken_over(last: u64) -> Self {
        let detail = format!(
            "Another worker has taken the response over after event {last}, so later numbers may name other events than those that the client has. Stream it without starting_after, or after at most {last}."
        );
        Self::new(StatusCode::CONFLICT, "response_taken_over", detail)
    }

    pub fn response_in_conversation() -> Self {
        let detail = "The conversation of the response has other messages. Delete the conversation instead.";
        Self::new(StatusCode::CONFLICT, "response_in_conversation", detail)
    }

    pub fn item_not_found(id: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "item_not_found", format!("The conversation has no item {id}."))
    }

    pub fn wait_interrupted(run_id: Uuid) -> Self {
        let detail = "The server shuts down, and the run continues. Read its response by its id, or send the request again with the same Idempotency-Key.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail).about(run_id)
    }

    pub fn model_not_found(name: String) -> Self {
        let detail = format!("There is no model {name:?}; GET /openai/v1/models lists the names.");
        Self::new(StatusCode::NOT_FOUND, "model_not_found", detail)
    }
}
