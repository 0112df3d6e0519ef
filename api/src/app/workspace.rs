//! Changes of a caller's workspace. The caller is the owner and the author.

use holdfast_workspace::{Author, Entity, Kind, NewEntity, Outcome, Patch, Undo, Undone, Workspace};
use serde::Serialize;
use uuid::Uuid;

use super::App;
use crate::problem::Problem;

/// The effect of an undo.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct UndoneChanges {
    /// The set of changes that undoes the other one.
    change_set_id: Uuid,
    /// The entities that are as before.
    undone: Vec<EntityName>,
    /// The entities that were changed again since, and stay as they are.
    left_out: Vec<EntityName>,
}

/// The kind and the id of an entity.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct EntityName {
    kind: Kind,
    id: Uuid,
}

impl App {
    pub const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub async fn create_entity(&self, owner: &str, new: NewEntity) -> Result<Entity, Problem> {
        let kind = new.kind;
        changed(self.workspace.create(Author::user(owner), new).await?, kind, Uuid::nil())
    }

    pub async fn change_entity(&self, owner: &str, id: Uuid, patch: Patch) -> Result<Entity, Problem> {
        let kind = patch.kind;
        changed(self.workspace.update(Author::user(owner), id, patch).await?, kind, id)
    }

    pub async fn delete_entity(&self, owner: &str, kind: Kind, id: Uuid) -> Result<(), Problem> {
        changed(self.workspace.delete(Author::user(owner), kind, id).await?, kind, id)
    }

    pub async fn restore_entity(&self, owner: &str, kind: Kind, id: Uuid) -> Result<Entity, Problem> {
        changed(self.workspace.restore(Author::user(owner), kind, id).await?, kind, id)
    }

    pub async fn undo_changes(&self, owner: &str, undone: Undone, force: bool) -> Result<UndoneChanges, Problem> {
        match self.workspace.undo(Author::user(owner), undone, force).await? {
            Undo::Done { change_set_id, undone, left_out } => {
                Ok(UndoneChanges { change_set_id, undone: named(undone), left_out: named(left_out) })
            }
            Undo::Conflicts(entities) => Err(Problem::changed_since(&entities)),
            Undo::AlreadyUndone => Err(Problem::already_undone()),
            Undo::NotFound => Err(Problem::nothing_to_undo()),
            Undo::Full(limit) => Err(Problem::workspace_full(&limit)),
        }
    }
}

fn changed<T>(outcome: Outcome<T>, kind: Kind, id: Uuid) -> Result<T, Problem> {
    match outcome {
        Outcome::Changed(result) => Ok(result),
        Outcome::NotFound => Err(Problem::entity_not_found(kind, id)),
        Outcome::Conflict(version) => Err(Problem::version_conflict(kind, id, version)),
        Outcome::Invalid(invalid) => Err(Problem::invalid_entity(&invalid)),
        Outcome::Full(limit) => Err(Problem::workspace_full(&limit)),
        Outcome::Fenced => unreachable!("only the calls of runs are fenced"),
    }
}

fn named(entities: Vec<(Kind, Uuid)>) -> Vec<EntityName> {
    entities.into_iter().map(|(kind, id)| EntityName { kind, id }).collect()
}
