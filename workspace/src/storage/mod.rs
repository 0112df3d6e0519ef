//! The workspace in the database. Every function works for one owner: an entity of somebody else does not exist for it.

mod change_set;
mod history;
mod owners;
mod rows;
mod tables;
mod undo;

use holdfast_shared::{
    database::{Commit, Database, Error, RollBack, Settle, Sql, Tx, args},
    page::{Page, PageSize},
    storage::{BackEnd, Storage},
};
use uuid::Uuid;

use self::{
    change_set::ChangeSet,
    rows::{EntityRow, entity, read, read_in},
    tables::table,
};
use crate::{
    entity::{Entity, id_of},
    input::{InvalidField, NewEntity, Patch},
    kind::{Form, Kind},
};

pub use owners::{erase, move_to};
pub use undo::Undo;

/// The workspace of a deployment; cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    database: Database,
    limits: WorkspaceLimits,
}

/// The limits of one owner.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceLimits {
    /// Most entities, with those deleted in the last 30 days.
    pub max_entities: usize,
    /// Most bytes of JSON of the entities and of the changes of the last 30 days, roughly.
    pub max_bytes: usize,
}

/// The entities that a list has.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those of this project.
    pub project_id: Option<Uuid>,
    /// Those in this state.
    pub state: Option<String>,
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// The change is stored.
    Changed(T),
    /// The owner has no such entity, or has deleted it.
    NotFound,
    /// The entity has this version, and the caller named another one.
    Conflict(i64),
    /// A value cannot be stored.
    Invalid(InvalidField),
    /// The owner's workspace is full.
    Full(String),
}

impl Workspace {
    /// Returns the workspace in the database of `storage`.
    pub fn new(storage: &Storage, limits: WorkspaceLimits) -> Self {
        Self { database: storage.database().clone(), limits }
    }

    /// Returns an entity that is not deleted.
    pub async fn get(&self, owner: &str, kind: Kind, id: Uuid) -> Result<Option<Entity>, Error> {
        Ok(read(&self.database, owner, kind, id).await?.filter(|entity| entity.deleted_at.is_none()))
    }

    /// Lists the entities of a kind, newest first and without bodies, after the entity `cursor`.
    pub async fn list(
        &self,
        owner: &str,
        kind: Kind,
        filter: &Filter,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Entity>, Error> {
        let args = args![owner, filter.project_id, filter.state.clone(), cursor, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list entities", table(kind).list, args).await?;
        let entities = rows.into_iter().map(|row| entity(kind, row)).collect();
        Ok(Page::of(entities, size.items, |last: &Entity| last.id.to_string()))
    }

    /// Creates an entity.
    pub async fn create(&self, owner: &str, user: &str, new: NewEntity) -> Result<Outcome<Entity>, Error> {
        let create = async |tx: &mut Tx| {
            let mut set = ChangeSet::begin(tx, owner, self.limits, None).await?;
            if let Some(project_id) = new.project_id {
                match read_in(tx, owner, Kind::Project, project_id).await? {
                    Some(project) if project.deleted_at.is_none() => {}
                    _ => return Ok(RollBack(Outcome::Invalid(no_such("project_id", Kind::Project)))),
                }
            }
            let created = Entity {
                kind: new.kind,
                id: Uuid::now_v7(),
                project_id: new.project_id,
                fields: new.fields,
                version: 0,
                created_at: set.now,
                updated_at: set.now,
                deleted_at: None,
            };
            if let Some(missing) = missing_reference(tx, owner, &created).await? {
                return Ok(RollBack(Outcome::Invalid(missing)));
            }
            let created = set.change(user, None, Some(created)).expect("it exists now");
            settle(tx, set, created).await
        };
        self.database.transact("create an entity", create).await
    }

    /// Changes fields of an entity.
    pub async fn update(&self, owner: &str, user: &str, id: Uuid, patch: Patch) -> Result<Outcome<Entity>, Error> {
        let update = async |tx: &mut Tx| {
            let mut set = ChangeSet::begin(tx, owner, self.limits, None).await?;
            let stored = read_in(tx, owner, patch.kind, id).await?.filter(|entity| entity.deleted_at.is_none());
            let Some(before) = stored else { return Ok(RollBack(Outcome::NotFound)) };
            if patch.version.is_some_and(|version| version != before.version) {
                return Ok(RollBack(Outcome::Conflict(before.version)));
            }
            let mut after = before.clone();
            after.fields.extend(patch.fields);
            if after == before {
                return Ok(RollBack(Outcome::Changed(before)));
            }
            if let Some(missing) = missing_reference(tx, owner, &after).await? {
                return Ok(RollBack(Outcome::Invalid(missing)));
            }
            let after = set.change(user, Some(before), Some(after)).expect("it still exists");
            settle(tx, set, after).await
        };
        self.database.transact("change an entity", update).await
    }

    /// Deletes an entity; a project with everything in it. It can be restored for 30 days.
    pub async fn delete(&self, owner: &str, user: &str, kind: Kind, id: Uuid) -> Result<Outcome<()>, Error> {
        let delete = async |tx: &mut Tx| {
            let mut set = ChangeSet::begin(tx, owner, self.limits, None).await?;
            let stored = read_in(tx, owner, kind, id).await?.filter(|entity| entity.deleted_at.is_none());
            let Some(entity) = stored else { return Ok(RollBack(Outcome::NotFound)) };
            let within = within(tx, owner, &entity).await?;
            let now = Some(set.now);
            for before in within.into_iter().filter(|entity| entity.deleted_at.is_none()).chain([entity]) {
                let after = Entity { deleted_at: now, ..before.clone() };
                set.change(user, Some(before), Some(after));
            }
            settle(tx, set, ()).await
        };
        self.database.transact("delete an entity", delete).await
    }

    /// Restores a deleted entity; a project with everything that was deleted with it.
    pub async fn restore(&self, owner: &str, user: &str, kind: Kind, id: Uuid) -> Result<Outcome<Entity>, Error> {
        let restore = async |tx: &mut Tx| {
            let mut set = ChangeSet::begin(tx, owner, self.limits, None).await?;
            let stored = read_in(tx, owner, kind, id).await?;
            let Some(entity) = stored.filter(|entity| entity.deleted_at.is_none_or(|at| at >= set.horizon())) else {
                return Ok(RollBack(Outcome::NotFound));
            };
            if entity.deleted_at.is_none() {
                return Ok(RollBack(Outcome::Changed(entity)));
            }
            if let Some(project_id) = entity.project_id {
                let project = read_in(tx, owner, Kind::Project, project_id).await?;
                if project.is_none_or(|project| project.deleted_at.is_some()) {
                    return Ok(RollBack(Outcome::Invalid(no_such("project_id", Kind::Project))));
                }
            }
            let deleted_at = entity.deleted_at;
            let within = within(tx, owner, &entity).await?;
            for before in within.into_iter().filter(|entity| entity.deleted_at == deleted_at) {
                let after = Entity { deleted_at: None, ..before.clone() };
                set.change(user, Some(before), Some(after));
            }
            let after = Entity { deleted_at: None, ..entity.clone() };
            let restored = set.change(user, Some(entity), Some(after)).expect("it exists again");
            settle(tx, set, restored).await
        };
        self.database.transact("restore an entity", restore).await
    }
}

/// Stores the set, unless the workspace is full.
async fn settle<T>(tx: &mut Tx, set: ChangeSet<'_>, result: T) -> Result<Settle<Outcome<T>>, Error> {
    Ok(match set.store(tx).await? {
        Some(full) => RollBack(Outcome::Full(full.0)),
        None => Commit(Outcome::Changed(result)),
    })
}

/// Returns the entities of a project, deleted or not; none for another kind.
async fn within(tx: &mut Tx, owner: &str, project: &Entity) -> Result<Vec<Entity>, Error> {
    let mut entities = Vec::new();
    if project.kind == Kind::Project {
        for kind in Kind::ALL.iter().filter(|kind| kind.is_within_project()) {
            let rows = tx.fetch_all::<EntityRow>(table(*kind).of_project, args![owner, project.id]).await?;
            entities.extend(rows.into_iter().map(|row| entity(*kind, row)));
        }
    }
    Ok(entities)
}

/// Returns the first field that names an entity which the project does not have.
async fn missing_reference(tx: &mut Tx, owner: &str, entity: &Entity) -> Result<Option<InvalidField>, Error> {
    for field in entity.kind.fields() {
        let Form::Id(kind) = field.form else { continue };
        let Some(id) = entity.fields.get(field.name).and_then(id_of) else { continue };
        let is_there = |named: &Entity| named.deleted_at.is_none() && named.project_id == entity.project_id;
        if !read_in(tx, owner, kind, id).await?.as_ref().is_some_and(is_there) {
            return Ok(Some(no_such(field.name, kind)));
        }
    }
    Ok(None)
}

fn no_such(field: &str, kind: Kind) -> InvalidField {
    let problem = match kind {
        Kind::Project => "there is no such project".to_owned(),
        _ => format!("the project has no such {}", kind.as_str()),
    };
    InvalidField { field: field.to_owned(), problem }
}

/// Returns the name of each statement of the workspace, with its text, for the test that prepares them.
pub fn statement_texts(back_end: BackEnd) -> Vec<(&'static str, String)> {
    let files = [change_set::STATEMENTS, history::STATEMENTS, owners::STATEMENTS, undo::STATEMENTS];
    let all = files.iter().chain(tables::STATEMENTS).copied().flatten();
    let text = |sql: &Sql| match back_end {
        BackEnd::Postgres => sql.for_postgres(),
        BackEnd::Sqlite | BackEnd::Memory => sql.for_sqlite(),
    };
    all.map(|sql| (sql.name(), text(sql))).collect()
}
