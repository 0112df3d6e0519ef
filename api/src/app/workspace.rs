//! Changes of a caller's workspace. The caller is the owner and the author.

use std::time::Duration;

use holdfast_shared::{
    schema::SchemaCheckError,
    tool::{Effect, ToolError},
    turns::{NoTurn, TurnPermit, Turns},
};
use holdfast_workspace::{
    Author, Call, Entity, Found, Kind, NewEntity, Outcome, Patch, Search, ToolFailure, ToolOutput, Undo, Undone,
    Workspace, WorkspaceTool,
};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::App;
use crate::{
    auth::{Caller, CallerKind},
    in_flight::LimitKey,
    problem::Problem,
};

/// Changes of workspaces that this process makes at a time, one for each caller. A deletion may be of a whole project.
pub(super) const CHANGES: usize = 4;

/// Searches of the web that other programs make in this process at a time, one for each caller.
pub(super) const WEB_SEARCHES: usize = 4;

/// Time-out of a change that waits for others.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

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

    pub async fn create_entity(&self, caller: &Caller, new: NewEntity) -> Result<Entity, Problem> {
        let _turn = self.turn(caller).await?;
        let kind = new.kind;
        changed(self.workspace.create(self.author(caller), new).await?, kind, Uuid::nil())
    }

    pub async fn change_entity(&self, caller: &Caller, id: Uuid, patch: Patch) -> Result<Entity, Problem> {
        let _turn = self.turn(caller).await?;
        self.admit_states(caller, vec![id]).await?;
        let kind = patch.kind;
        changed(self.workspace.update(self.author(caller), id, patch).await?, kind, id)
    }

    pub async fn delete_entity(&self, caller: &Caller, kind: Kind, id: Uuid) -> Result<(), Problem> {
        let _turn = self.turn(caller).await?;
        changed(self.workspace.delete(self.author(caller), kind, id).await?, kind, id)
    }

    pub async fn restore_entity(&self, caller: &Caller, kind: Kind, id: Uuid) -> Result<Entity, Problem> {
        let _turn = self.turn(caller).await?;
        changed(self.workspace.restore(self.author(caller), kind, id).await?, kind, id)
    }

    pub async fn undo_changes(&self, caller: &Caller, undone: Undone, force: bool) -> Result<UndoneChanges, Problem> {
        let _turn = self.turn(caller).await?;
        if caller.is_unnamed {
            let bytes = self.workspace.bytes_of_undo(&caller.owner, undone).await?;
            self.anonymous_limits.admit_bytes(caller, bytes as usize).await?;
        }
        match self.workspace.undo(self.author(caller), undone, force).await? {
            Undo::Done { change_set_id, undone, left_out } => {
                Ok(UndoneChanges { change_set_id, undone: named(undone), left_out: named(left_out) })
            }
            Undo::Conflicts(entities) => Err(Problem::changed_since(&entities)),
            Undo::Live => Err(Problem::run_live()),
            Undo::AlreadyUndone => Err(Problem::already_undone()),
            Undo::NotFound => Err(Problem::nothing_to_undo()),
            Undo::Full(limit) => Err(Problem::workspace_full(&limit)),
            Undo::TooLarge(limit) => Err(Problem::change_too_large(&limit)),
        }
    }

    /// Returns the undo of what a run has changed, unless it was taken back.
    pub async fn undo_of_run(&self, caller: &Caller, run_id: Uuid) -> Result<Option<Uuid>, Problem> {
        Ok(self.workspace.undo_of(&caller.owner, Undone::Run(run_id)).await?)
    }

    /// Changes a requested or published template of any owner, for an operator.
    pub async fn change_template(&self, operator: &Caller, id: Uuid, patch: Patch) -> Result<Entity, Problem> {
        let _turn = self.turn(operator).await?;
        let not_found = || Problem::entity_not_found(Kind::Template, id);
        let owner = self.workspace.owner_of_template(id).await?.ok_or_else(not_found)?;
        let author = Author::operator(&owner, &operator.owner);
        changed(self.workspace.update(author, id, patch).await?, Kind::Template, id)
    }

    fn author<'a>(&self, caller: &'a Caller) -> Author<'a> {
        Author { is_operator: caller.is_operator, ..Author::user(&caller.owner) }
    }

    /// Finds entities of the caller. A search takes a turn too, because it reads all names of a workspace.
    pub async fn search_workspace(&self, caller: &Caller, search: Search<'_>) -> Result<Vec<Found>, Problem> {
        let _turn = self.turn(caller).await?;
        Ok(self.workspace.search(&caller.owner, search).await?)
    }

    /// Calls a tool of the workspace for another program. Returns the tool's error for the program's model.
    pub async fn call_workspace_tool(
        &self,
        caller: &Caller,
        tool: &WorkspaceTool,
        input: Value,
    ) -> Result<Result<ToolOutput, ToolError>, Problem> {
        // A search of the web waits for a provider, so it takes no turn from those who change something.
        let turns = if tool.is_web_search() { &self.web_searches } else { &self.workspace_changes };
        let _turn = self.turn_of(turns, caller).await?;
        let checked = self.check_arguments(caller, tool, &input).await;
        if let Err(problem) = checked {
            return Ok(Err(ToolError::new("invalid_arguments", problem)));
        }
        if tool.effect != Effect::ReadOnly {
            self.admit_states(caller, ids_in(&input)).await?;
        }
        let call = Call {
            workspace: &self.workspace,
            author: Author::user(&caller.owner),
            project: None,
            merger: None,
            // A search costs the operator money, so a caller must have a name.
            web_search: self.web_search.as_ref().filter(|_| caller.kind != CallerKind::Anonymous),
        };
        match tool.call(call, input).await {
            Ok(output) => Ok(Ok(output)),
            Err(ToolFailure::Refused(error)) => Ok(Err(error)),
            Err(ToolFailure::Storage(error)) => Err(error.into()),
        }
    }

    /// Admits the states of these entities before and after a change, which an anonymous caller stores with a few bytes.
    async fn admit_states(&self, caller: &Caller, ids: Vec<Uuid>) -> Result<(), Problem> {
        if !caller.is_unnamed || ids.is_empty() {
            return Ok(());
        }
        let bytes = self.workspace.bytes_of_changes(&caller.owner, &ids).await?;
        self.anonymous_limits.admit_bytes(caller, bytes as usize).await
    }

    async fn check_arguments(&self, caller: &Caller, tool: &WorkspaceTool, input: &Value) -> Result<(), String> {
        let checked = async {
            let schema = self.schemas.compile(&caller.owner, tool.input_schema.clone()).await?;
            self.schemas.validate(&caller.owner, schema, tool.checkable(input)).await
        };
        checked.await.map_err(|problem| match problem {
            SchemaCheckError::Invalid(problem) => problem,
            SchemaCheckError::Busy => "checking the arguments took too long; try again".to_owned(),
        })
    }

    /// Waits for the caller's turn. Order matters: the database orders the changes of an owner too, but a request that waits
    /// there holds a connection.
    async fn turn(&self, caller: &Caller) -> Result<TurnPermit, Problem> {
        self.turn_of(&self.workspace_changes, caller).await
    }

    async fn turn_of(&self, turns: &Turns, caller: &Caller) -> Result<TurnPermit, Problem> {
        let turn = turns.take(&LimitKey::of(caller).to_string(), TURN_TIMEOUT).await;
        turn.map_err(|no_turn| match no_turn {
            NoTurn::OfCaller => Problem::too_many_changes(),
            NoTurn::OfAll => Problem::workspace_busy(),
        })
    }
}

/// Returns the ids among the values of a tool's arguments.
fn ids_in(input: &Value) -> Vec<Uuid> {
    let values = input.as_object().into_iter().flat_map(|fields| fields.values());
    values.filter_map(|value| value.as_str()?.parse().ok()).collect()
}

fn changed<T>(outcome: Outcome<T>, kind: Kind, id: Uuid) -> Result<T, Problem> {
    match outcome {
        Outcome::Changed(result) => Ok(result),
        Outcome::NotFound => Err(Problem::entity_not_found(kind, id)),
        Outcome::Conflict(version) => Err(Problem::version_conflict(kind, id, version)),
        Outcome::Invalid(invalid) => Err(Problem::invalid_entity(&invalid)),
        Outcome::Full(limit) => Err(Problem::workspace_full(&limit)),
        Outcome::TooLarge(limit) => Err(Problem::change_too_large(&limit)),
        Outcome::Fenced => unreachable!("only the calls of runs are fenced"),
    }
}

fn named(entities: Vec<(Kind, Uuid)>) -> Vec<EntityName> {
    entities.into_iter().map(|(kind, id)| EntityName { kind, id }).collect()
}
