//! Problems with the workspace.

use std::fmt::Display;

use axum::http::StatusCode;
use holdfast_workspace::{InvalidField, Kind};
use uuid::Uuid;

use super::Problem;

/// Most entities that a problem lists.
const LISTED: usize = 20;

impl Problem {
    pub fn kind_not_found(plural: &str) -> Self {
        let plurals: Vec<&str> = Kind::ALL.iter().map(|kind| kind.plural()).collect();
        let detail = format!("A workspace has no {plural:?}; it has {}.", plurals.join(", "));
        Self::new(StatusCode::NOT_FOUND, "kind_not_found", detail)
    }

    pub fn entity_not_found(kind: Kind, id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "entity_not_found", format!("There is no {} {id}.", kind.as_str()))
    }

    pub fn invalid_entity(invalid: &InvalidField) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_entity", format!("{invalid}."))
    }

    pub fn version_conflict(kind: Kind, id: Uuid, version: i64) -> Self {
        let kind = kind.as_str();
        let detail =
            format!("The {kind} {id} was changed meanwhile and has the version {version}; read it and try again.");
        Self::new(StatusCode::CONFLICT, "version_conflict", detail)
    }

    pub fn workspace_full(limit: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "workspace_full", format!("This request would exceed a limit: {limit}."))
    }

    pub fn change_too_large(limit: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "change_too_large", format!("This request would exceed a limit: {limit}."))
    }

    pub fn change_set_not_found(id: impl Display) -> Self {
        let detail = format!("There is no set of changes {id}; sets are kept for 30 days.");
        Self::new(StatusCode::NOT_FOUND, "change_set_not_found", detail)
    }

    pub fn already_undone() -> Self {
        Self::new(StatusCode::CONFLICT, "already_undone", "These changes are undone already.")
    }

    pub fn nothing_to_undo() -> Self {
        let detail = "There are no such changes in your workspace; they are kept for 30 days.";
        Self::new(StatusCode::NOT_FOUND, "change_set_not_found", detail)
    }

    pub fn run_live() -> Self {
        let detail =
            "The run, or one below it, has not ended; cancel it, or wait for its end, before you undo its changes.";
        Self::new(StatusCode::CONFLICT, "run_live", detail)
    }

    pub fn changed_since(entities: &[(Kind, Uuid)]) -> Self {
        let named: Vec<String> =
            entities.iter().take(LISTED).map(|(kind, id)| format!("{} {id}", kind.as_str())).collect();
        let more = entities.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let detail = format!(
            "These entities were changed again since, or others depend on them: {}{more}. With ?force=true they stay as they are, and the rest is undone.",
            named.join(", ")
        );
        Self::new(StatusCode::CONFLICT, "changed_since", detail)
    }
}
