//! What a request on the agent stream says beside its message. It is kept in the run's metadata, so that whoever rejoins
//! the run is shown the same frames as whoever has started it.

use holdfast_shared::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where in its application the client was when it spoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentContext {
    /// The session's name; none where the conversation's id is the name.
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
    /// The field of a run's metadata that has it.
    const FIELD: &str = "agent_context";

    /// The metadata of a run that was started so.
    pub fn to_metadata(&self) -> Value {
        json!({ Self::FIELD: self })
    }

    /// What the run was started with; none where another route has started it.
    pub fn of(run: &Run) -> Option<Self> {
        // Metadata is the client's own on other routes: what does not fit is not ours.
        Self::deserialize(run.metadata.as_ref()?.get(Self::FIELD)?).ok()
    }
}
