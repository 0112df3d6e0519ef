//! Refusals of OpenAI's wire.

use axum::http::StatusCode;
use holdfast_shared::run::RunError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::problem::Problem;

/// Returns a problem as the clients of OpenAI read it.
pub fn form(problem: &Problem) -> Value {
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let param = match problem.code {
        "model_not_found" => Some("model"),
        "context_length_exceeded" => Some("messages"),
        _ => None,
    };
    json!({ "error": { "message": problem.detail, "type": kind, "param": param, "code": problem.code } })
}

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

    /// `own` is the model of the conversation.
    pub fn conversation_of_another_model(own: &str) -> Self {
        let detail = format!(
            "The conversation has the model {own:?} since its first response. Send that as model, or \"default\", or begin another conversation."
        );
        Self::new(StatusCode::BAD_REQUEST, "conversation_of_another_model", detail)
    }

    /// For a run that failed before it could answer. Clients decide by the status whether they repeat the request.
    pub fn run_refused(run_id: Uuid, error: &RunError) -> Self {
        let (status, code) = match error.code.as_str() {
            "model_context_exceeded" => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            "model_refused" => (StatusCode::BAD_REQUEST, "model_refused"),
            "file_refused" => (StatusCode::BAD_REQUEST, "file_refused"),
            "tool_not_available" => (StatusCode::BAD_REQUEST, "tool_not_available"),
            "model_not_found" => (StatusCode::NOT_FOUND, "model_not_found"),
            "model_rate_limited" => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            "model_unreachable" => (StatusCode::SERVICE_UNAVAILABLE, "model_unreachable"),
            "model_timeout" => (StatusCode::SERVICE_UNAVAILABLE, "model_timeout"),
            "model_unavailable" => (StatusCode::SERVICE_UNAVAILABLE, "model_unavailable"),
            "model_broken_stream" => (StatusCode::SERVICE_UNAVAILABLE, "model_broken_stream"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "run_failed"),
        };
        let detail = match code {
            // Clients look for these words.
            "context_length_exceeded" => {
                format!("The request exceeds the model's maximum context limit: {}.", error.message)
            }
            "run_failed" => format!("The run failed ({}): {}.", error.code, error.message),
            _ => format!("The model did not answer: {}.", error.message),
        };
        let mut problem = Self::new(status, code, detail).about(run_id);
        problem.retry_after = error.retry_after;
        if LASTING.contains(&error.code.as_str()) { problem.without_retry() } else { problem }
    }
}

/// Failures of a run that a repetition of its request does not mend, beside the refusals of the request itself.
const LASTING: [&str; 8] = [
    "agent_gone",
    "answer_too_long",
    "limit_exceeded",
    "model_key_refused",
    "model_no_credit",
    "model_not_configured",
    "model_region_refused",
    "scripted_failure",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_has_the_status_by_which_clients_decide_whether_they_repeat_it() {
        let check = |code: &str, status: u16, as_code: &str, is_final: bool| {
            let error = RunError { retry_after: Some(7), ..RunError::new(code, "so it is") };
            let problem = Problem::run_refused(Uuid::nil(), &error);
            assert_eq!((problem.status.as_u16(), problem.code, problem.is_final()), (status, as_code, is_final));
            assert_eq!(problem.retry_after, Some(7));
            assert!(problem.detail.ends_with("so it is."), "{}", problem.detail);
        };
        check("model_context_exceeded", 400, "context_length_exceeded", true);
        check("model_refused", 400, "model_refused", true);
        check("file_refused", 400, "file_refused", true);
        check("tool_not_available", 400, "tool_not_available", true);
        check("model_not_found", 404, "model_not_found", true);
        check("model_rate_limited", 429, "rate_limit_exceeded", false);
        for away in ["model_unreachable", "model_timeout", "model_unavailable", "model_broken_stream"] {
            check(away, 503, away, false);
        }
        check("model_key_refused", 500, "run_failed", true);
        check("scripted_failure", 500, "run_failed", true);
        check("model_failed", 500, "run_failed", false);
        check("max_attempts", 500, "run_failed", false);
    }
}
