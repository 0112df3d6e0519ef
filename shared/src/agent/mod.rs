//! Agent definitions: the settings of a conversation that an agent answers.
//!
//! A definition is one JSON document. This module checks it, storage keeps it, and the worker reads it. The definition
//! is pure data; the worker asks each server for its tools.

mod access;
mod builtin;
mod check;
mod definition;
mod delegation;
mod limits;
mod mcp_server;
mod model_options;
mod profile;
mod secret;

pub use access::{Access, AccessGroup, ApproverGroup, Approvers, CallerRights};
pub use builtin::{PLANNER_ID, builtin_agents};
pub use check::{AgentCheck, CHECK_PATIENCE, CheckProblem, CheckRequest, TRY_LIMIT};
pub use definition::{
    Agent, AgentDefinition, AgentKind, MAX_COLLECTIONS, MIN_CONTEXT_TOKENS, ModelSettings, Origin, ReasoningEffort,
    StreamMode,
};
pub use delegation::{DelegationCycle, Delegations, Delegator};
pub use limits::Limits;
pub use mcp_server::{McpAuth, McpServer, ServerScope, Transport};
pub use model_options::{ModelDialect, ModelOptions, ReasoningPlace};
pub use profile::{Fallback, FallbackModel, ModelRole, Profile, ProfileModel, Profiles};
pub use secret::{Secret, SecretUnavailable};

/// The reason why the API refuses a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidDefinition {
    /// Path of the refused field, such as `limits.max_steps`.
    pub field: String,
    /// The accepted values, as a phrase without a full stop.
    pub problem: String,
}

/// Returns a parser's error without the quoted input, which may be a secret.
pub fn without_quoted_text(error: &impl std::fmt::Display) -> String {
    let message = error.to_string();
    let Some((before, quoted)) = message.split_once("string \"") else { return message };
    let after = quoted.rsplit_once("\", expected").map_or("", |(_, after)| after);
    format!("{before}a text, expected{after}")
}

impl InvalidDefinition {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}
