//! The workspace in the database. Every function works for one owner, and finds no entity of another owner.

#[macro_use]
mod columns;

mod change_set;
mod creation;
mod deletion;
mod effects;
mod filter;
mod history;
mod kept;
mod ordered;
mod reads;
mod references;
mod rows;
mod search;
mod tables;
mod templates;
mod undo;

use std::sync::Arc;

use holdfast_shared::{
    database::{Commit, Database, Error, RollBack, Sql, Tx, args},
    page::{Page, PageSize},
    quotas::WorkspaceLimits,
    storage::{BackEnd, Storage},
};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use self::{
    change_set::{Beginning, ChangeSet},
    references::missing_reference,
    rows::{EntityRow, entity, read, read_in},
    tables::{EDGES_OF_ENTITY, table},
    templates::refused_publication,
};
use crate::{
    author::Author,
    change::Change,
    entity::Entity,
    input::{InvalidField, Patch, read_value},
    kind::Kind,
};

pub use filter::{Filter, filter_name};
pub use ordered::TaskOrder;
pub use search::{Found, Search};
pub use undo::{Undo, Undone};

/// The workspace of a deployment; cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    database: Database,
    limits: WorkspaceLimits,
    /// Deletions, restorations and undoes use SQLite's writer longest. One at a time waits for it, so another writer waits for one
    /// of them at most. `None` on PostgreSQL.
    long_changes: Option<Arc<Semaphore>>,
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
    /// The change is about more entities or bytes than one change may be.
    TooLarge(String),
    /// The attempt does not hold its run any more.
    Fenced,
}

impl Workspace {
    /// Returns the workspace in the database of `storage`.
    pub fn new(storage: &Storage, limits: WorkspaceLimits) -> Self {
        let database = storage.database().clone();
        let long_changes = (!database.is_postgres()).then(|| Arc::new(Semaphore::new(1)));
        Self { database, limits, long_changes }
    }

    /// Waits for the permit of a change that may be long.
    async fn long_change(&self) -> Option<SemaphorePermit<'_>> {
        Some(self.long_changes.as_ref()?.acquire().await.expect("nothing closes the semaphore"))
    }

    /// Returns an entity that is not deleted.
    pub async fn get(&self, owner: &str, kind: Kind, id: Uuid) -> Result<Option<Entity>, Error> {
        let entity = live(read(&self.database, owner, kind, id).await?);
        match kind {
            Kind::Template if entity.is_none() => self.public_template(id).await,
            _ => Ok(entity),
        }
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
        let (table, within) = match filter.entity_id {
            Some(entity) if kind == Kind::Edge => (EDGES_OF_ENTITY, Some(entity)),
            _ => (table(kind), filter.project_id),
        };
        let args = args![owner, within, filter.json(), cursor, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list entities", table.list, args).await?;
        let entities = rows.into_iter().map(|row| entity(kind, row)).collect();
        Ok(page_of(entities, size, |entity| entity.state().to_string().len(), |last| last.id.to_string()))
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
            if let Some(refused) = refused_publication(author, Some(&before), &patch) {
                return Ok(Outcome::Invalid(refused));
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
            if let Some(missing) = missing_reference(tx, author.owner, Some(&before), &after, &[]).await? {
                return Ok(Outcome::Invalid(missing));
            }
            Ok(Outcome::Changed(set.change(Some(before), Some(after))))
        })
        .await
        .map(existing)
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
            Self::TooLarge(limit) => Outcome::TooLarge(limit),
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
    entity.filter(Entity::is_live)
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
    let files = [
        change_set::STATEMENTS,
        effects::STATEMENTS,
        history::STATEMENTS,
        kept::STATEMENTS,
        ordered::STATEMENTS,
        reads::STATEMENTS,
        templates::STATEMENTS,
        undo::STATEMENTS,
    ];
    let all = files.iter().chain(tables::STATEMENTS).copied().flatten();
    let text = |sql: &Sql| match back_end {
        BackEnd::Postgres => sql.for_postgres(),
        BackEnd::Sqlite | BackEnd::Memory => sql.for_sqlite(),
    };
    all.map(|sql| (sql.name(), text(sql))).collect()
}
