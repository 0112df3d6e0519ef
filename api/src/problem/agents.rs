//! Problems of requests that define agents, or name one.

use axum::http::StatusCode;
use holdfast_shared::agent::{DelegationCycle, InvalidDefinition};
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn agent_not_found(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "agent_not_found", format!("There is no agent {id}; nothing was created."))
    }

    /// For a conversation whose agent no longer admits the caller.
    pub fn agent_of_conversation_not_found() -> Self {
        let detail = "The agent of this conversation no longer exists; nothing was created.";
        Self::new(StatusCode::BAD_REQUEST, "agent_not_found", detail)
    }

    /// For a request about the agent itself, which ends with 404; `agent_not_found` is for a reference to an agent.
    pub fn no_such_agent(id: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "agent_not_found", format!("There is no agent {id}."))
    }

    pub fn invalid_agent(invalid: &InvalidDefinition) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_agent", format!("{}: {}.", invalid.field, invalid.problem))
    }

    pub fn cyclic_agents(cycle: &DelegationCycle) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_agent", format!("subagents: {cycle}."))
    }

    pub fn agent_in_file(id: Uuid) -> Self {
        let detail = format!(
            "Agent {id} comes from the file that HOLDFAST_AGENTS names; edit that file and restart the server."
        );
        Self::new(StatusCode::CONFLICT, "agent_in_file", detail)
    }

    pub fn agent_builtin(id: Uuid) -> Self {
        let detail =
            format!("Agent {id} is a part of the program. Create an agent of kind planner to have one of your own.");
        Self::new(StatusCode::CONFLICT, "agent_builtin", detail)
    }

    pub fn too_many_checks() -> Self {
        let detail =
            "Another check of this model is running, or the server makes as many as it can; try again in a moment.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_checks", detail)
    }

    /// For a check that no worker has reported in time.
    pub fn no_worker() -> Self {
        let detail = "No worker has made the check within 10 s: there is none, or each is busy with other checks. Nothing was stored.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_worker", detail)
    }
}
