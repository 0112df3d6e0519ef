//! Problems with owners: quotas that are exceeded, and another owner's data.

use axum::http::StatusCode;
use uuid::Uuid;

use super::{Problem, counted};

impl Problem {
    pub fn too_many_runs(max: usize) -> Self {
        let detail = format!(
            "You have {} that have not ended, or would have more with this; wait for one, cancel it, or answer what it asks.",
            counted(max, "run")
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", detail)
    }

    pub fn operator_needed_for_another_owner() -> Self {
        let detail = "Only a token whose role is operator may store a briefing for another owner.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn token_needed() -> Self {
        let detail =
            "Only a caller whom a JWT names may take over what an anonymous user has; send the JWT as Authorization.";
        Self::new(StatusCode::FORBIDDEN, "token_needed", detail)
    }

    pub fn no_anonymous_user() -> Self {
        let detail = "Send the anonymous user's cookie beside the JWT, or {\"anonymous_token\": \"…\"}.";
        Self::new(StatusCode::BAD_REQUEST, "no_anonymous_user", detail)
    }

    pub fn invalid_owner(max_chars: usize) -> Self {
        let detail =
            format!("An owner_id has 1 to {max_chars} characters, no control characters and no spaces around it.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_user", detail)
    }

    pub fn owner_not_admitted(owner: &str, agent_id: Uuid) -> Self {
        let detail =
            format!("Agent {agent_id} does not admit {owner}, who could not open this briefing; see its access.");
        Self::new(StatusCode::BAD_REQUEST, "owner_not_admitted", detail)
    }

    pub fn quota_exceeded(max: usize) -> Self {
        let detail =
            format!("With this, you would keep more than {max} bytes here; delete conversations or briefings first.");
        Self::new(StatusCode::FORBIDDEN, "quota_exceeded", detail)
    }
}
