//! The changes of entities, newest first.
//!
//! The change of a mark has only what differs between its states. The fields come from the next change of the entity that has
//! them, or from the entity itself. Invariant: ids order the changes of an entity, and the oldest are forgotten first, the entity
//! last. So the fields of each change can be found while it is kept.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use holdfast_shared::{
    database::{Database, Error, Json, Tx, args},
    page::{Page, PageSize},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Workspace, page_of, tables::table};
use crate::{
    change::{Action, Change},
    entity::Entity,
    kind::Kind,
};

/// A row: id, set, kind, entity, action, the states before and after, user, run, time, and the bytes of the states, if they are
/// not whole.
pub type ChangeRow = (
    Uuid,
    Uuid,
    String,
    Uuid,
    String,
    Option<Json<Value>>,
    Option<Json<Value>>,
    String,
    Option<Uuid>,
    DateTime<Utc>,
    Option<i64>,
);

/// The connection that completes changes.
pub enum ChangeReader<'a> {
    /// Outside any transaction.
    Database(&'a Database),
    /// The transaction that has read them.
    Tx(&'a mut Tx),
}

holdfast_shared::statements! {
    /// Lists the ids and sizes of the changes of an owner, of one entity of a kind if given, newest first.
    CHANGE_SIZES = "
        select id, coalesce(size, bytes)
        from onto_changes
        where owner_id = $1
          and (cast($2 as uuid) is null or entity_id = $2)
          and (cast($3 as text) is null or kind = $3)
          and (cast($4 as uuid) is null or id < $4)
        order by id desc
        limit $5
    ",
    /// Returns changes, newest first.
    CHANGES = "
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at, size
        from onto_changes
        where owner_id = $1 and id {in:$2}
        order by id desc
    ",
}

impl Workspace {
    /// Lists the changes of an owner, of one entity if given, newest first, after the change `cursor`. A page has at most 20
    /// changes, because each has two states.
    pub async fn changes(
        &self,
        owner: &str,
        entity: Option<(Kind, Uuid)>,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Change>, Error> {
        const DOING: &str = "list changes";
        let size = PageSize { items: size.items.min(20), ..size };
        let (kind, id) = entity.map_or((None, None), |(kind, id)| (Some(kind.as_str().to_owned()), Some(id)));
        let args = args![owner, id, kind, cursor, size.items + 1];
        // The states may be large, so only those of the page are read.
        let sizes = self.database.fetch_all::<(Uuid, i64)>(DOING, CHANGE_SIZES, args).await?;
        let page = page_of(sizes, size, |(_, bytes)| *bytes as usize, |(last, _)| last.to_string());
        let ids: Vec<Uuid> = page.items.into_iter().map(|(id, _)| id).collect();
        let rows = self.database.fetch_all::<ChangeRow>(DOING, CHANGES, args![owner, ids]).await?;
        Ok(Page { items: changes_of(&mut ChangeReader::Database(&self.database), owner, rows).await?, next: page.next })
    }
}

/// Returns the changes of rows, with whole states.
pub async fn changes_of(
    reader: &mut ChangeReader<'_>,
    owner: &str,
    rows: Vec<ChangeRow>,
) -> Result<Vec<Change>, Error> {
    let mut marks = BTreeMap::<Kind, Vec<Uuid>>::new();
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let is_mark = row.10.is_some();
        let Some(change) = change(row) else { continue };
        if is_mark {
            marks.entry(change.kind).or_default().push(change.id);
        }
        changes.push(change);
    }
    let mut contents = BTreeMap::new();
    for (kind, ids) in marks {
        contents.extend(reader.contents(kind, owner, ids).await?);
    }
    for change in &mut changes {
        let Some(contents) = contents.get(&change.id) else { continue };
        let whole = |differing: Option<Value>| differing.map(|state| whole_state(change.kind, contents, state));
        (change.before, change.after) = (whole(change.before.take()), whole(change.after.take()));
    }
    Ok(changes)
}

impl ChangeReader<'_> {
    /// Returns the fields at changes of a kind that have none, by the ids of the changes.
    async fn contents(&mut self, kind: Kind, owner: &str, ids: Vec<Uuid>) -> Result<BTreeMap<Uuid, Value>, Error> {
        let (sql, args) = (table(kind).contents, args![owner, ids]);
        let rows = match self {
            Self::Database(database) => {
                database.fetch_all::<(Uuid, Json<Value>)>("complete changes", sql, args).await?
            }
            Self::Tx(tx) => tx.fetch_all::<(Uuid, Json<Value>)>(sql, args).await?,
        };
        Ok(rows.into_iter().map(|(id, contents)| (id, contents.0)).collect())
    }
}

/// Returns the state with these fields, as every change has it. A later version may have written something else, which stays as
/// it is.
fn whole_state(kind: Kind, contents: &Value, differing: Value) -> Value {
    let mut state = contents.clone();
    if let (Value::Object(state), Value::Object(differing)) = (&mut state, &differing) {
        state.extend(differing.clone());
    }
    let Some(mut entity) = Entity::of_state(kind, &state) else { return differing };
    entity.normalise();
    entity.state()
}

/// Returns the change of a row; `None` if a later version has written it.
fn change(row: ChangeRow) -> Option<Change> {
    let (id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at, _) = row;
    let (kind, action): (Kind, Action) = (kind.parse().ok()?, action.parse().ok()?);
    let [before, after] = [before, after].map(|state| state.map(|state| state.0).filter(|state| !state.is_null()));
    Some(Change { id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at })
}
