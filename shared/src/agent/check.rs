//! The check of a definition before it is stored: the request to a worker, and the worker's findings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::AgentDefinition;

/// Longest wait for the worker's report.
pub const CHECK_PATIENCE: Duration = Duration::from_secs(10);

/// Longest time of one try, which leaves time for the report.
pub const TRY_LIMIT: Duration = Duration::from_secs(9);

/// A definition that a worker tries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckRequest {
    /// Names the check to the process that waits for the report.
    pub id: Uuid,
    /// The definition in its stored form, with its secrets.
    pub definition: Box<AgentDefinition>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentCheck {
    /// True if there are no problems.
    pub ok: bool,
    /// The model's first, then those of the servers in their order.
    pub problems: Vec<CheckProblem>,
}

/// Something of a definition that does not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckProblem {
    /// The part of the definition: `model`, or `mcp_servers.` with the name of a server.
    pub field: String,
    /// Stable and lower-case, for programs: the code of a run, or of a tool call, that fails for this reason.
    pub code: String,
    /// The reason for operators, with the words of the provider or server. It has no secrets.
    pub message: String,
}

impl AgentCheck {
    /// Returns the result with these problems.
    pub const fn new(problems: Vec<CheckProblem>) -> Self {
        Self { ok: problems.is_empty(), problems }
    }
}
