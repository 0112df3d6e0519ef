//! The context of a message: where in its application the user was.
//!
//! A run keeps it in its metadata, so that all readers of the run receive the same frames, and later runs of the conversation
//! inherit it.

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Value, json};

/// Where in its application the client was when it sent the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentContext {
    /// The session's name; absent if the conversation's id is the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The kind of thing that the client shows: for the planner `global`, `project`, `project_create`, `project_audit` or
    /// `project_forecast`.
    pub context_type: String,
    /// The thing that the client shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    /// The kind of that thing.
    #[serde(rename = "ontologyEntityType", skip_serializing_if = "Option::is_none")]
    pub ontology_entity_type: Option<EntityType>,
    /// The part of a project that the user looks at.
    #[serde(rename = "projectFocus", skip_serializing_if = "Option::is_none")]
    pub project_focus: Option<ProjectFocus>,
}

/// A kind of thing in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityType {
    /// A task.
    Task,
    /// A plan.
    Plan,
    /// A goal.
    Goal,
    /// A document.
    Document,
    /// An output.
    Output,
}

/// The part of a project that the user looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectFocus {
    /// The kind of the part.
    pub focus_type: FocusType,
    /// The part; absent for the whole project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus_entity_id: Option<String>,
    /// The part's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus_entity_name: Option<String>,
    /// The project.
    pub project_id: String,
    /// The project's name.
    pub project_name: String,
}

/// A kind of part of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FocusType {
    /// The whole project.
    ProjectWide,
    /// A task.
    Task,
    /// A goal.
    Goal,
    /// A plan.
    Plan,
    /// A document.
    Document,
    /// An output.
    Output,
}

/// The contexts in which the planner can work.
pub const CONTEXT_TYPES: [&str; 5] = ["global", "project", "project_create", "project_audit", "project_forecast"];

/// The field of a conversation's metadata for the clarification of a project that is to be created.
pub const PROJECT_CLARIFICATION: &str = "projectClarification";

/// Returns a field of the input that was not read. A null may stand for an absent field.
fn unknown_field<'a>(input: &'a Value, read: &Value) -> Option<&'a str> {
    let fields = input.as_object()?;
    fields.iter().find_map(|(field, value)| match read.get(field) {
        None if value.is_null() => None,
        None => Some(field.as_str()),
        Some(read) => unknown_field(value, read),
    })
}

impl AgentContext {
    /// The field of a run's metadata for the context.
    pub const FIELD: &str = "agent_context";

    /// Deserializes the context of a request, which has no unknown field. A stored context may have fields of a later version.
    pub fn of_request<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        let Some(input) = Option::<Value>::deserialize(deserializer)? else { return Ok(None) };
        let context = Self::deserialize(&input).map_err(D::Error::custom)?;
        match unknown_field(&input, &json!(context)) {
            Some(field) => Err(D::Error::custom(format!("context: there is no field {field:?}"))),
            None => Ok(Some(context)),
        }
    }

    /// Returns metadata with this context.
    pub fn within(&self, metadata: Option<Value>) -> Value {
        let mut metadata = metadata.unwrap_or_else(|| json!({}));
        if let Some(fields) = metadata.as_object_mut() {
            fields.insert(Self::FIELD.to_owned(), json!(self));
        }
        metadata
    }

    /// Returns the project that the client shows, if it shows one.
    pub fn project_id(&self) -> Option<&str> {
        let focused = self.project_focus.as_ref().map(|focus| focus.project_id.as_str());
        let shown = self
            .entity_id
            .as_deref()
            .filter(|_| self.context_type.starts_with("project") && self.ontology_entity_type.is_none());
        focused.or(shown)
    }

    /// Returns the context in metadata; `None` without one, or if it has another shape, because metadata is the client's own.
    pub fn of(metadata: &Value) -> Option<Self> {
        Self::deserialize(metadata.get(Self::FIELD)?).ok()
    }
}
