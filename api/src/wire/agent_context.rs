//! The context of a request on the agent stream, beside its message. The run's metadata keeps it, so that all clients
//! of the run receive equal frames.

use holdfast_shared::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where in its application the client was when it sent the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentContext {
    /// The session's name; `None` if the conversation's id is the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub context_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    #[serde(rename = "ontologyEntityType", skip_serializing_if = "Option::is_none")]
    pub ontology_entity_type: Option<String>,
    #[serde(rename = "projectFocus", skip_serializing_if = "Option::is_none")]
    pub project_focus: Option<Value>,
}

impl AgentContext {
    /// The field of a run's metadata for the context.
    const FIELD: &str = "agent_context";

    /// Returns the metadata of a run with this context.
    pub fn to_metadata(&self) -> Value {
        json!({ Self::FIELD: self })
    }

    /// Returns the context of a run; `None` if another route has started it.
    pub fn of(run: &Run) -> Option<Self> {
        // On other routes the metadata is the client's own, so it may have another shape.
        Self::deserialize(run.metadata.as_ref()?.get(Self::FIELD)?).ok()
    }
}
