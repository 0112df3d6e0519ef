//! Problems with owners: exceeded quotas, and access to another owner's data.

use axum::http::StatusCode;
use holdfast_shared::quotas::QuotaExceeded;
use uuid::Uuid;

use super::{Problem, counted};

impl Problem {
    pub fn beyond_quota(exceeded: QuotaExceeded) -> Self {
        match exceeded {
            QuotaExceeded::Bytes(max) => Self::quota_exceeded(max),
            QuotaExceeded::Runs(max) => Self::too_many_runs(max),
            QuotaExceeded::Files(max) => Self::too_many_files(max),
            QuotaExceeded::FileBytes(max) => Self::file_quota_exceeded(max as u64),
            QuotaExceeded::Memories(max) => Self::too_many_memories(max),
            QuotaExceeded::Collections(max) => Self::too_many_collections(max),
            QuotaExceeded::Documents(max) => Self::too_many_documents(max),
            QuotaExceeded::TextBytes(max) => Self::too_much_text(max),
            QuotaExceeded::Entities(max) => Self::workspace_full(&format!("a workspace has at most {max} entities")),
            QuotaExceeded::WorkspaceBytes(max) => Self::workspace_full(&format!("a workspace has at most {max} bytes")),
        }
    }

    pub fn too_many_runs(max: usize) -> Self {
        let detail = format!(
            "An owner may have {}; wait for one, cancel it, or answer its questions.",
            counted(max, "unfinished run")
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", detail)
    }

    pub fn operator_needed_for_another_owner() -> Self {
        let detail = "Only a token with the role operator may store a briefing for another owner.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn token_needed() -> Self {
        let detail =
            "Only a caller with a JWT may take over the data of an anonymous user; send the JWT as Authorization.";
        Self::new(StatusCode::FORBIDDEN, "token_needed", detail)
    }

    pub fn no_anonymous_user() -> Self {
        let detail = "Send the anonymous user's cookie beside the JWT, or {\"anonymous_token\": \"…\"}.";
        Self::new(StatusCode::BAD_REQUEST, "no_anonymous_user", detail)
    }

    pub fn invalid_owner(max_chars: usize) -> Self {
        let detail = format!(
            "An owner_id has 1 to {max_chars} characters, one of them visible, no control characters and no spaces around it."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_user", detail)
    }

    pub fn owner_not_admitted(owner: &str, agent_id: Uuid) -> Self {
        let detail = format!(
            "Agent {agent_id} does not admit {owner}, who could not open this briefing; see the agent's access."
        );
        Self::new(StatusCode::BAD_REQUEST, "owner_not_admitted", detail)
    }

    pub fn quota_exceeded(max: usize) -> Self {
        let detail =
            format!("This request would exceed your quota of {max} bytes; delete conversations or briefings first.");
        Self::new(StatusCode::FORBIDDEN, "quota_exceeded", detail)
    }
}
