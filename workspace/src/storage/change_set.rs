//! The changes of one transaction: they lock the owner, and storage writes them with their effects.
//!
//! Each owner has a row that counts their entities and bytes. Its lock orders all changes of the owner, so no two transactions
//! of one owner can deadlock.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use holdfast_shared::database::{Error, Tx, args};
use holdfast_shared::quotas::WorkspaceLimits;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    history::{ChangeReader, ChangeRow, changes_of},
    rows::{EntityRow, entity},
    tables::table,
};
use crate::{
    author::{Author, AuthorCall},
    change::{Action, Change},
    entity::{Entity, text_of},
    kind::Kind,
};

macro_rules! forget_changes {
    ($bytes:literal) => {
        concat!(
            "delete from onto_changes
            where id in (
                select id
                from (
                    select id, sum(bytes) over (order by created_at, id) - bytes as before_it
                    from (
                        select id, created_at, ",
            $bytes,
            " as bytes
                        from onto_changes
                        where owner_id = $1 and created_at < $2
                        order by created_at, id
                        limit 100
                    ) oldest
                ) piece
                where before_it < $3
            )
            returning bytes"
        )
    };
}

holdfast_shared::statements! {
    /// Makes the row of an owner.
    MAKE_OWNER = "
        insert into onto_owners (owner_id, entities, bytes)
        values ($1, 0, 0)
        on conflict (owner_id) do nothing
    ",
    /// Locks the row of an owner.
    LOCK_OWNER = "
        select entities, bytes, {now} as now
        from onto_owners
        where owner_id = $1
        {for update}
    ",
    /// Locks a run, if an attempt holds it.
    HOLD = "
        select id
        from agent_runs
        where id = $1 and attempt = $2 and owner_id = $3 and status = 'running'
        {for update}
    ",
    /// Returns the changes that a call has made, in order.
    CHANGES_OF_CALL = "
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at, size
        from onto_changes
        where owner_id = $1 and run_id = $2 and call_id = $3
        order by number
    ",
    /// Counts the entities and bytes of an owner.
    COUNT = "
        update onto_owners
        set entities = entities + $2,
            bytes = bytes + $3
        where owner_id = $1
    ",
    /// Stores changes.
    INSERT_CHANGES = "
        insert into onto_changes (
            id, owner_id, change_set_id, kind, entity_id, action, before, after, bytes, user_id, undoes,
            run_id, call_id, number, created_at
        )
        select {uuid:value->>'id'}, value->>'owner_id', {uuid:value->>'change_set_id'}, value->>'kind',
            {uuid:value->>'entity_id'}, value->>'action', value->'before', value->'after',
            cast(value->>'bytes' as bigint), value->>'user_id', {uuid:value->>'undoes'},
            {uuid:value->>'run_id'}, value->>'call_id', cast(value->>'number' as bigint),
            {time:value->>'created_at'}
        from {each:$1}
    ",
    /// Removes old changes of an owner, the oldest first, until they have the bytes `$3`. Returns their bytes. SQLite would read
    /// the states to get at the column after them.
    FORGET_CHANGES {
        postgres = forget_changes!("bytes"),
        sqlite = forget_changes!("coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)"),
    },
}

/// How long a deleted entity and a change are kept.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Most bytes of states that a change of an owner has in memory at a time, or forgets, roughly. One state may have more.
pub const PIECE: usize = 4 << 20;

/// The bytes of a change that keeps only what differs, with its entries in the indexes.
const MARK_BYTES: i64 = 400;

/// The bytes of the time of a deletion in a state.
const DELETED_AT_BYTES: i64 = 22;

/// The deletion of a live entity, or its reversal. No field of the entity changes, so the database makes the change out of the
/// row.
#[derive(Debug, Clone, Copy)]
pub struct DeletionMark {
    pub id: Uuid,
    /// Whether the entity was deleted before.
    pub was_deleted: bool,
    /// The time of the deletion; `None` makes the entity live.
    pub deleted_at: Option<DateTime<Utc>>,
}

/// The changes of one transaction.
pub struct ChangeSet<'a> {
    /// UUIDv7.
    pub id: Uuid,
    /// Time of the transaction, by the database's clock.
    pub now: DateTime<Utc>,
    author: Author<'a>,
    limits: WorkspaceLimits,
    /// The set that this one undoes.
    undoes: Option<Uuid>,
    entities: i64,
    bytes: i64,
    /// The entities and bytes that the changes add.
    added: (i64, i64),
    /// The number of the changes.
    count: usize,
    /// The changes that are not stored yet.
    changes: Vec<Value>,
    /// Whether all changes are deletions, or undo others.
    only_takes_away: bool,
    stored: BTreeMap<Kind, Vec<Value>>,
    removed: BTreeMap<Kind, Vec<Uuid>>,
}

/// A limit that a change would exceed, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full(pub String);

/// The beginning of a set.
pub enum Beginning<'a> {
    /// The author may make changes.
    Set(Box<ChangeSet<'a>>),
    /// The author's call has made these changes before.
    Repeated(Vec<Change>),
    /// The author's attempt does not hold its run any more.
    Fenced,
}

impl<'a> ChangeSet<'a> {
    /// Locks the owner and the run of a call, and removes expired records.
    pub async fn begin(
        tx: &mut Tx,
        author: Author<'a>,
        limits: WorkspaceLimits,
        undoes: Option<Uuid>,
    ) -> Result<Beginning<'a>, Error> {
        let owner = author.owner;
        tx.execute(MAKE_OWNER, args![owner]).await?;
        let (entities, bytes, now) = tx.fetch_one::<(i64, i64, DateTime<Utc>)>(LOCK_OWNER, args![owner]).await?;
        if let Some(AuthorCall { run_id, attempt, call_id }) = author.call {
            if tx.fetch_optional::<(Uuid,)>(HOLD, args![run_id, attempt, owner]).await?.is_none() {
                return Ok(Beginning::Fenced);
            }
            let rows = tx.fetch_all::<ChangeRow>(CHANGES_OF_CALL, args![owner, run_id, call_id]).await?;
            if !rows.is_empty() {
                return Ok(Beginning::Repeated(changes_of(&mut ChangeReader::Tx(tx), owner, rows).await?));
            }
        }
        let mut set = Self {
            id: Uuid::now_v7(),
            now,
            author,
            limits,
            undoes,
            entities,
            bytes,
            added: (0, 0),
            count: 0,
            changes: Vec::new(),
            only_takes_away: true,
            stored: BTreeMap::new(),
            removed: BTreeMap::new(),
        };
        set.forget(tx).await?;
        Ok(Beginning::Set(Box::new(set)))
    }

    /// Returns the time before which deletions and changes are forgotten.
    pub fn horizon(&self) -> DateTime<Utc> {
        self.now - TimeDelta::from_std(KEPT).expect("30 days fit")
    }

    /// Removes at most 100 old changes, and as many entities of each kind that were deleted long ago, a piece of them at a
    /// time. Each change of an owner removes some records of earlier ones.
    async fn forget(&mut self, tx: &mut Tx) -> Result<(), Error> {
        let (owner, horizon) = (self.author.owner, Some(self.horizon()));
        let freed = tx.fetch_all::<(i64,)>(FORGET_CHANGES, args![owner, horizon, PIECE]).await?;
        self.added.1 -= freed.into_iter().map(|row| row.0).sum::<i64>();
        for kind in Kind::ALL {
            let expired = tx.fetch_all::<(Uuid, i64)>(table(*kind).expired, args![owner, horizon]).await?;
            let mut bytes = 0;
            let fits = |(_, of_entity): &(Uuid, i64)| {
                let has_room = bytes < PIECE as i64;
                bytes += of_entity;
                has_room
            };
            let ids: Vec<Uuid> = expired.into_iter().take_while(fits).map(|(id, _)| id).collect();
            if ids.is_empty() {
                continue;
            }
            for row in tx.fetch_all::<EntityRow>(table(*kind).get, args![owner, ids.clone()]).await? {
                self.added = (self.added.0 - 1, self.added.1 - size(&entity(*kind, row).state()));
            }
            tx.execute(table(*kind).remove, args![owner, ids]).await?;
        }
        Ok(())
    }

    /// Adds a change from one state to another. The new state gets its version and its time here.
    pub fn change(&mut self, before: Option<Entity>, after: Option<Entity>) -> Option<Entity> {
        let version = before.iter().chain(&after).map(|entity| entity.version).max().unwrap_or_default() + 1;
        let after = after.map(|after| Entity { version, updated_at: self.now, ..after });
        let entity = after.as_ref().or(before.as_ref()).expect("a change has a state");
        let (kind, id) = (entity.kind, entity.id);
        let is_deleted = |entity: &Entity| entity.deleted_at.is_some();
        let action = Action::between(before.as_ref().map(is_deleted), after.as_ref().map(is_deleted));
        self.only_takes_away &= self.undoes.is_some() || action == Action::Delete;
        let states = [before.as_ref().map(Entity::state), after.as_ref().map(Entity::state)];
        let sizes = states.each_ref().map(|state| state.as_ref().map_or(0, size));
        let bytes = sizes[0] + sizes[1];
        let [old, new] = states;
        let number = self.next_number();
        self.changes.push(json!({
            "id": Uuid::now_v7().simple().to_string(),
            "owner_id": self.author.owner,
            "change_set_id": self.id.simple().to_string(),
            "kind": kind,
            "entity_id": id.simple().to_string(),
            "action": action,
            "before": old,
            "after": new,
            "bytes": bytes,
            "user_id": self.author.user,
            "run_id": self.author.call.map(|call| call.run_id.simple().to_string()),
            "call_id": self.author.call.map(|call| call.call_id),
            "number": number,
            "undoes": self.undoes.map(|id| id.simple().to_string()),
            "created_at": text_of(self.now),
        }));
        let count = |state: bool| i64::from(state);
        self.added.0 += count(after.is_some()) - count(before.is_some());
        self.added.1 += sizes[1] - sizes[0] + bytes;
        match &after {
            Some(after) => self.stored.entry(kind).or_default().push(after.row(self.author.owner)),
            None => self.removed.entry(kind).or_default().push(id),
        }
        after
    }

    /// Marks entities of a kind as deleted, or as live. The process has no state of them.
    pub async fn mark(&mut self, tx: &mut Tx, kind: Kind, marks: &[DeletionMark]) -> Result<(), Error> {
        if marks.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(marks.len());
        for DeletionMark { id, was_deleted, deleted_at } in marks {
            let action = Action::between(Some(*was_deleted), Some(deleted_at.is_some()));
            self.only_takes_away &= self.undoes.is_some() || action == Action::Delete;
            self.added.1 += MARK_BYTES + DELETED_AT_BYTES * (i64::from(deleted_at.is_some()) - i64::from(*was_deleted));
            rows.push(json!({
                "id": id.simple().to_string(),
                "change_id": Uuid::now_v7().simple().to_string(),
                "number": self.next_number(),
                "action": action,
                "deleted_at": deleted_at.map(text_of),
            }));
        }
        let (rows, now, call) = (Value::from(rows), text_of(self.now), self.author.call);
        let (run_id, call_id) = (call.map(|call| call.run_id), call.map(|call| call.call_id.to_owned()));
        let Author { owner, user, .. } = self.author;
        let (table, kind) = (table(kind), kind.as_str());
        // Order matters: the changes have the states before the marks.
        let record =
            args![owner, rows.clone(), self.id, now.clone(), MARK_BYTES, user, self.undoes, run_id, call_id, kind];
        tx.execute(table.record, record).await?;
        tx.execute(table.mark, args![owner, rows, now]).await?;
        Ok(())
    }

    /// Returns the number of the next change within the set.
    const fn next_number(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }

    /// Returns whether nothing has changed.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Stores the changes so far with their effects, and frees their memory.
    pub async fn flush(&mut self, tx: &mut Tx) -> Result<(), Error> {
        for (kind, rows) in std::mem::take(&mut self.stored) {
            tx.execute(table(kind).put, args![Value::from(rows)]).await?;
        }
        for (kind, ids) in std::mem::take(&mut self.removed) {
            tx.execute(table(kind).remove, args![self.author.owner, ids]).await?;
        }
        if !self.changes.is_empty() {
            tx.execute(INSERT_CHANGES, args![Value::from(std::mem::take(&mut self.changes))]).await?;
        }
        Ok(())
    }

    /// Stores the changes and their effects. Returns the limit that they would exceed; the caller rolls back then.
    pub async fn store(mut self, tx: &mut Tx) -> Result<Option<Full>, Error> {
        let (entities, bytes) = (self.entities + self.added.0, self.bytes + self.added.1);
        let WorkspaceLimits { max_entities, max_bytes, .. } = self.limits;
        if self.added.0 > 0 && entities > max_entities as i64 {
            return Ok(Some(Full(format!(
                "a workspace has at most {max_entities} entities, with deleted ones of the last 30 days"
            ))));
        }
        // A full workspace can still be emptied and put in order.
        let max_bytes = if self.only_takes_away { max_bytes * 2 } else { max_bytes };
        if self.added.1 > 0 && bytes > max_bytes as i64 {
            return Ok(Some(Full(format!(
                "a workspace keeps at most {max_bytes} bytes, with the changes of the last 30 days"
            ))));
        }
        self.flush(tx).await?;
        tx.execute(COUNT, args![self.author.owner, self.added.0, self.added.1]).await?;
        Ok(None)
    }
}

fn size(state: &Value) -> i64 {
    state.to_string().len() as i64
}
