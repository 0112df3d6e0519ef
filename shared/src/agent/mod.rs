//! Agent definitions: what makes a conversation agent-backed.
//!
//! A definition is a document: it is checked here as a whole, kept as JSON, and read by the worker. It is pure data; which
//! tools a server has is found out by the worker.

mod access;
mod definition;
mod limits;
mod mcp_server;
mod secret;

pub use access::{Access, AccessGroup, ApproverGroup, Approvers, CallerRights};
pub use definition::{Agent, AgentDefinition, MIN_CONTEXT_TOKENS, ModelSettings, Origin, ReasoningEffort, StreamMode};
pub use limits::Limits;
pub use mcp_server::{McpAuth, McpServer, Transport};
pub use secret::{Secret, SecretUnavailable};

/// A definition that is refused: which field, and what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidDefinition {
    pub field: String,
    pub problem: String,
}

/// Why a text is no definition, without what it has in place of what was expected: that may be a secret.
pub fn without_quoted_text(error: &impl std::fmt::Display) -> String {
    let message = error.to_string();
    let Some((before, quoted)) = message.split_once("string \"") else { return message };
    let after = quoted.rsplit_once("\", expected").map_or("", |(_, after)| after);
    format!("{before}a text, expected{after}")
}

impl InvalidDefinition {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}
