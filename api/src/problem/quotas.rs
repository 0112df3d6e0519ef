//! What belongs to an owner, and what an owner has too much of.

use axum::http::StatusCode;

use super::Problem;

impl Problem {
    pub fn too_many_runs(max: usize) -> Self {
        let detail = format!(
            "You have {max} runs that have not ended; wait for one of them, cancel it, or answer what it asks."
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", detail)
    }

    pub fn operator_needed_for_another_owner() -> Self {
        let detail = "Only a token whose role is operator may store a briefing for another owner.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn invalid_owner(max_chars: usize) -> Self {
        let detail = format!("An owner_id has 1 to {max_chars} characters and no control characters.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_user", detail)
    }

    pub fn quota_exceeded(max: usize) -> Self {
        let detail =
            format!("With this, you would keep more than {max} bytes here; delete conversations or briefings first.");
        Self::new(StatusCode::FORBIDDEN, "quota_exceeded", detail)
    }
}
