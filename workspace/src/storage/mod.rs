//! The workspace in the database. Every function works for one owner, and finds no entity of another owner.

mod change_set;
mod history;
mod rows;
mod tables;
mod undo;

use holdfast_shared::{
    database::{Commit, Database, Error, RollBack, Sql, Tx, args},
    page::{Page, PageSize},
    quotas::WorkspaceLimits,
    storage::{BackEnd, Storage},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use self::{
    change_set::{Beginning, ChangeSet},
    rows::{EntityRow, entity, read, read_in},
    tables::table,
};
use crate::{
    author::Author,
    change::Change,
    entity::{Entity, id_of},
    input::{InvalidField, NewEntity, Patch, read_value},
    kind::{Form, Kind},
};

pub use undo::{Undo, Undone};

/// The workspace of a deployment; cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    database: Database,
    limits: WorkspaceLimits,
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
    /// The attempt does not hold its run any more.
    Fenced,
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
        Ok(page_of(entities, size, |entity| entity.state().to_string().len(), |last| last.id.to_string()))
    }

    /// Creates an entity.
    pub async fn create(&self, author: Author<'_>, new: NewEntity) -> Result<Outcome<Entity>, Error> {
        let created = self.create_all(author, vec![new]).await?;
        Ok(created.map(|mut entities| entities.pop().expect("one was created")))
    }

    /// Creates a project with its first tasks, plans, goals, documents and outputs, in one transaction. Returns the project
    /// first.
    pub async fn create_project(
        &self,
        author: Author<'_>,
        project: NewEntity,
        contents: Vec<NewEntity>,
    ) -> Result<Outcome<Vec<Entity>>, Error> {
        self.create_all(author, std::iter::once(project).chain(contents).collect()).await
    }

    /// Creates entities. One without a project belongs to the project before it.
    async fn create_all(&self, author: Author<'_>, new: Vec<NewEntity>) -> Result<Outcome<Vec<Entity>>, Error> {
        let repeated = |changes: Vec<Change>| {
            let state = |change: Change| Entity::of_state(change.kind, &change.after?);
            changes.into_iter().filter_map(state).collect()
        };
        self.change("create entities", author, repeated, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let mut created = Vec::<Entity>::new();
            for NewEntity { kind, project_id, fields } in new {
                let first = created.first().map(|project| project.id);
                let project_id = project_id.or(first.filter(|_| kind.is_within_project()));
                if let Some(project_id) = project_id.filter(|id| Some(*id) != first) {
                    let project = read_in(tx, author.owner, Kind::Project, project_id).await?;
                    if project.is_none_or(|project| project.deleted_at.is_some()) {
                        return Ok(Outcome::Invalid(no_such("project_id", Kind::Project)));
                    }
                }
                let (now, id) = (set.now, Uuid::now_v7());
                let entity = Entity {
                    kind,
                    id,
                    project_id,
                    fields,
                    version: 0,
                    created_at: now,
                    updated_at: now,
                    deleted_at: None,
                };
                if let Some(missing) = missing_reference(tx, author.owner, None, &entity).await? {
                    return Ok(Outcome::Invalid(missing));
                }
                created.extend(set.change(None, Some(entity)));
            }
            Ok(Outcome::Changed(created))
        })
        .await
    }

    /// Changes fields of an entity.
    pub async fn update(&self, author: Author<'_>, id: Uuid, patch: Patch) -> Result<Outcome<Entity>, Error> {
        self.change("change an entity", author, the_entity, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let Some(before) = live(read_in(tx, author.owner, patch.kind, id).await?) else {
                return Ok(Outcome::NotFound);
            };
            if patch.version.is_some_and(|version| version != before.version) {
                return Ok(Outcome::Conflict(before.version));
            }
            let mut after = before.clone();
            let fields = if patch.appends { appended(&before, patch.fields) } else { Ok(patch.fields) };
            match fields {
                Ok(fields) => after.fields.extend(fields),
                Err(invalid) => return Ok(Outcome::Invalid(invalid)),
            }
            if after == before {
                return Ok(Outcome::Changed(Some(before)));
            }
            if let Some(missing) = missing_reference(tx, author.owner, Some(&before), &after).await? {
                return Ok(Outcome::Invalid(missing));
            }
            Ok(Outcome::Changed(set.change(Some(before), Some(after))))
        })
        .await
        .map(existing)
    }

    /// Deletes an entity; a project with everything in it. It can be restored for 30 days.
    pub async fn delete(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<()>, Error> {
        self.change("delete an entity", author, drop, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let Some(entity) = live(read_in(tx, author.owner, kind, id).await?) else { return Ok(Outcome::NotFound) };
            let now = Some(set.now);
            let within = match within(tx, author.owner, &entity, self.most_at_once()).await? {
                Ok(within) => within,
                Err(limit) => return Ok(Outcome::Full(limit)),
            };
            for before in within.into_iter().filter(|entity| entity.deleted_at.is_none()).chain([entity]) {
                let after = Entity { deleted_at: now, ..before.clone() };
                set.change(Some(before), Some(after));
            }
            Ok(Outcome::Changed(()))
        })
        .await
    }

    /// Restores a deleted entity; a project with everything that was deleted with it.
    pub async fn restore(&self, author: Author<'_>, kind: Kind, id: Uuid) -> Result<Outcome<Entity>, Error> {
        self.change("restore an entity", author, the_entity, async |tx: &mut Tx, set: &mut ChangeSet<'_>| {
            let stored = read_in(tx, author.owner, kind, id).await?;
            let Some(entity) =
                stored.filter(|entity| entity.deleted_at.is_none() || entity.updated_at >= set.horizon())
            else {
                return Ok(Outcome::NotFound);
            };
            if entity.deleted_at.is_none() {
                return Ok(Outcome::Changed(Some(entity)));
            }
            if let Some(project_id) = entity.project_id
                && live(read_in(tx, author.owner, Kind::Project, project_id).await?).is_none()
            {
                return Ok(Outcome::Invalid(no_such("project_id", Kind::Project)));
            }
            let deleted_at = entity.deleted_at;
            let within = match within(tx, author.owner, &entity, self.most_at_once()).await? {
                Ok(within) => within,
                Err(limit) => return Ok(Outcome::Full(limit)),
            };
            for before in within.into_iter().filter(|entity| entity.deleted_at == deleted_at) {
                let after = Entity { deleted_at: None, ..before.clone() };
                set.change(Some(before), Some(after));
            }
            let after = Entity { deleted_at: None, ..entity.clone() };
            Ok(Outcome::Changed(set.change(Some(entity), Some(after))))
        })
        .await
        .map(existing)
    }

    /// Returns the most bytes of entities that one change may be about: a quarter of those that a workspace keeps. A change has
    /// them in memory, some times over.
    const fn most_at_once(&self) -> usize {
        self.limits.max_bytes / 4
    }

    /// Makes the changes of an author in one transaction. If the author's call has made them before, `repeated` makes the
    /// result of their records.
    async fn change<T>(
        &self,
        doing: &'static str,
        author: Author<'_>,
        repeated: impl FnOnce(Vec<Change>) -> T,
        body: impl AsyncFnOnce(&mut Tx, &mut ChangeSet<'_>) -> Result<Outcome<T>, Error>,
    ) -> Result<Outcome<T>, Error> {
        let change = async |tx: &mut Tx| {
            let mut set = match ChangeSet::begin(tx, author, self.limits, None).await? {
                Beginning::Set(set) => set,
                Beginning::Repeated(changes) => return Ok(RollBack(Outcome::Changed(repeated(changes)))),
                Beginning::Fenced => return Ok(RollBack(Outcome::Fenced)),
            };
            let outcome = body(tx, &mut set).await?;
            if !matches!(outcome, Outcome::Changed(_)) || set.is_empty() {
                return Ok(RollBack(outcome));
            }
            Ok(match set.store(tx).await? {
                Some(full) => RollBack(Outcome::Full(full.0)),
                None => Commit(outcome),
            })
        };
        self.database.transact(doing, change).await
    }
}

impl<T> Outcome<T> {
    /// Returns the outcome with another result.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Changed(result) => Outcome::Changed(make(result)),
            Self::NotFound => Outcome::NotFound,
            Self::Conflict(version) => Outcome::Conflict(version),
            Self::Invalid(invalid) => Outcome::Invalid(invalid),
            Self::Full(limit) => Outcome::Full(limit),
            Self::Fenced => Outcome::Fenced,
        }
    }
}

/// Returns the entity as the last change has left it.
fn the_entity(mut changes: Vec<Change>) -> Option<Entity> {
    let last = changes.pop()?;
    Entity::of_state(last.kind, &last.after?)
}

/// Returns the outcome of a change whose entity exists afterwards.
fn existing(outcome: Outcome<Option<Entity>>) -> Outcome<Entity> {
    outcome.map(|entity| entity.expect("the entity exists"))
}

fn live(entity: Option<Entity>) -> Option<Entity> {
    entity.filter(|entity| entity.deleted_at.is_none())
}

/// Returns the new values, each long text behind the one that the entity has.
fn appended(before: &Entity, new: Map<String, Value>) -> Result<Map<String, Value>, InvalidField> {
    let append = |(name, value): (String, Value)| {
        let Some(field) = before.kind.field(&name).filter(|field| field.is_long()) else { return Ok((name, value)) };
        let stored = before.fields.get(&name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let joined = match (stored, value.as_str()) {
            (Some(stored), Some(text)) => Value::String(format!("{stored}\n\n{text}")),
            _ => value,
        };
        read_value(field, joined).map(|joined| (name, joined))
    };
    new.into_iter().map(append).collect()
}

/// Returns the entities of a project, deleted or not; none for another kind. Returns the limit if they have more bytes.
async fn within(tx: &mut Tx, owner: &str, project: &Entity, most: usize) -> Result<Result<Vec<Entity>, String>, Error> {
    let kinds = || Kind::ALL.iter().filter(|kind| project.kind == Kind::Project && kind.is_within_project());
    let mut bytes = 0;
    for kind in kinds() {
        bytes += tx.fetch_one::<(i64,)>(table(*kind).bytes_of_project, args![owner, project.id]).await?.0;
    }
    if bytes > most as i64 {
        return Ok(Err(too_much(most)));
    }
    let mut entities = Vec::new();
    for kind in kinds() {
        let rows = tx.fetch_all::<EntityRow>(table(*kind).of_project, args![owner, project.id]).await?;
        entities.extend(rows.into_iter().map(|row| entity(*kind, row)));
    }
    Ok(Ok(entities))
}

fn too_much(most: usize) -> String {
    format!(
        "one change is about at most {most} bytes of entities, a quarter of a workspace; delete documents one by one first"
    )
}

/// Returns the first changed field that names an entity which the project does not have.
async fn missing_reference(
    tx: &mut Tx,
    owner: &str,
    before: Option<&Entity>,
    entity: &Entity,
) -> Result<Option<InvalidField>, Error> {
    for field in entity.kind.fields() {
        let Form::Id(kind) = field.form else { continue };
        if before.is_some_and(|before| before.fields.get(field.name) == entity.fields.get(field.name)) {
            continue;
        }
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

/// Returns a page of a query for one item more than the page has at most. It ends after the item that fills its bytes.
fn page_of<T>(
    items: Vec<T>,
    size: PageSize,
    bytes_of: impl Fn(&T) -> usize,
    cursor: impl FnOnce(&T) -> String,
) -> Page<T> {
    let mut bytes = 0;
    let fits = |item: &&T| {
        let has_room = bytes < size.bytes;
        bytes += bytes_of(item);
        has_room
    };
    let fitting = items.iter().take_while(fits).count();
    Page::of(items, size.items.min(fitting.max(1)), cursor)
}

/// Returns the name of each statement of the workspace, with its text, for the test that prepares them.
pub fn statement_texts(back_end: BackEnd) -> Vec<(&'static str, String)> {
    let files = [change_set::STATEMENTS, history::STATEMENTS, undo::STATEMENTS];
    let all = files.iter().chain(tables::STATEMENTS).copied().flatten();
    let text = |sql: &Sql| match back_end {
        BackEnd::Postgres => sql.for_postgres(),
        BackEnd::Sqlite | BackEnd::Memory => sql.for_sqlite(),
    };
    all.map(|sql| (sql.name(), text(sql))).collect()
}
