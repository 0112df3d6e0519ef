//! Problems with an answer to a waiting run.

use axum::http::StatusCode;
use holdfast_shared::approval::Approval;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn approval_not_found(id: impl std::fmt::Display, run_id: Uuid) -> Self {
        let detail = format!("Run {run_id} has no approval {id}.");
        Self::new(StatusCode::NOT_FOUND, "approval_not_found", detail).about(run_id)
    }

    pub fn call_not_found(call_id: &str, run_id: Uuid) -> Self {
        let call_id: String = call_id.chars().take(64).collect();
        Self::new(StatusCode::NOT_FOUND, "call_not_found", format!("Run {run_id} has no tool call {call_id}."))
            .about(run_id)
    }

    pub fn approver_needed(run_id: Uuid) -> Self {
        let detail = "The agent of this run names other users as approvers; the run waits for one of them.";
        Self::new(StatusCode::FORBIDDEN, "approver_needed", detail).about(run_id)
    }

    pub fn already_decided(first: Approval) -> Self {
        let detail = format!("Approval {} is already {}; the first decision counts.", first.id, first.status.as_str());
        let problem = Self::new(StatusCode::CONFLICT, "already_decided", detail).about(first.run_id);
        Self { approval: Some(Box::new(first)), ..problem }
    }

    pub fn already_completed(run_id: Uuid) -> Self {
        let detail = "This call already has a result; the first result counts.";
        Self::new(StatusCode::CONFLICT, "already_completed", detail).about(run_id)
    }

    pub fn answer_expired(run_id: Uuid) -> Self {
        let detail = "The deadline for this answer has passed; the run continues without it.";
        Self::new(StatusCode::CONFLICT, "expired", detail).about(run_id)
    }

    pub fn run_not_waiting(run_id: Uuid) -> Self {
        let detail = format!("Run {run_id} does not wait for this answer, or has ended.");
        Self::new(StatusCode::CONFLICT, "run_not_waiting", detail).about(run_id)
    }

    pub fn message_not_waiting(message_id: &str) -> Self {
        let message_id: String = message_id.chars().take(64).collect();
        let detail = format!("Message {message_id} is not the chat's last answer, so no run waits for its parts.");
        Self::new(StatusCode::CONFLICT, "run_not_waiting", detail)
    }

    pub fn invalid_input(problem: &str) -> Self {
        let detail = format!("edited_input is invalid, {problem}. The approval is still open.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_input", detail)
    }
}
