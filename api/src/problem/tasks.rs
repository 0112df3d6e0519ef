//! Problems of tasks, as the clients of A2A know them.

use std::fmt::Display;

use axum::http::StatusCode;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn task_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "task_not_found", format!("There is no task {id}."))
    }

    pub fn task_not_cancelable(id: Uuid) -> Self {
        Self::new(StatusCode::CONFLICT, "task_not_cancelable", format!("Task {id} has ended."))
    }

    pub fn task_ended(id: Uuid) -> Self {
        let detail = format!("Task {id} has ended. GetTask returns it; a new message has no taskId.");
        Self::new(StatusCode::CONFLICT, "task_ended", detail)
    }

    pub fn task_waits(id: Uuid) -> Self {
        let detail = format!(
            "Task {id} waits for an answer. Send a data part such as {{\"decision\": \"approve\"}}, {{\"decision\": \"deny\", \"reason\": \"…\"}} or {{\"callId\": \"…\", \"result\": …}}."
        );
        Self::new(StatusCode::CONFLICT, "task_waits", detail)
    }

    pub fn push_notifications_unsupported() -> Self {
        let detail = "This server sends no push notifications; use SubscribeToTask or GetTask.";
        Self::new(StatusCode::BAD_REQUEST, "push_notifications_unsupported", detail)
    }

    pub fn no_extended_card() -> Self {
        let detail = "There is no extended agent card; the public one has everything.";
        Self::new(StatusCode::BAD_REQUEST, "no_extended_card", detail)
    }

    pub fn unsupported_version(version: &str) -> Self {
        let detail = format!("This server speaks A2A 1.0 and 0.3, not {version}.");
        Self::new(StatusCode::BAD_REQUEST, "unsupported_version", detail)
    }

    pub fn unknown_method(method: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_method", format!("There is no method {method}."))
    }

    pub fn invalid_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }
}
