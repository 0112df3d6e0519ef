//! The events about the workspace of the run's user.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::context::ProjectFocus;

/// An entity of the workspace that a call was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EntityAccessed<'a> {
    /// Its kind, such as `task`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// The entity.
    pub id: Uuid,
    /// Its name; empty if the call has only its id.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
}

impl EntityAccessed<'_> {
    /// Returns the entity without a borrow from its event.
    pub fn into_owned(self) -> EntityAccessed<'static> {
        EntityAccessed { kind: self.kind.into_owned().into(), id: self.id, name: self.name.into_owned().into() }
    }
}

/// The turn, and the conversation after it, are about another project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextShifted<'a> {
    /// The new context type.
    #[serde(borrow)]
    pub context_type: Cow<'a, str>,
    /// The project.
    pub entity_id: Uuid,
    /// Its name.
    #[serde(borrow)]
    pub entity_name: Cow<'a, str>,
    /// The shift in a sentence.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// The turn is about another part of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FocusChanged {
    /// The new focus.
    pub focus: ProjectFocus,
}

/// The model has a project of the workspace before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OntologyLoaded<'a> {
    /// The project.
    pub project_id: Uuid,
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Entities of the project by kind.
    pub counts: EntityCounts,
    /// Tasks that are neither done nor cancelled.
    pub open_tasks: i64,
}

/// Entities of a project by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct EntityCounts {
    /// Tasks.
    pub tasks: i64,
    /// Goals.
    pub goals: i64,
    /// Plans.
    pub plans: i64,
    /// Documents.
    pub documents: i64,
    /// Outputs.
    pub outputs: i64,
    /// Relations.
    pub edges: i64,
}

/// A template of projects was requested from the operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateRequested<'a> {
    /// The template, whose state tells what became of the request.
    pub template_id: Uuid,
    /// The sort of project.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Why it is needed.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// Wishes for its contents.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Cow<'a, str>>,
}

/// A template is suggested to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateSuggested<'a> {
    /// The sort of project.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Why it would help.
    #[serde(borrow)]
    pub rationale: Cow<'a, str>,
}
