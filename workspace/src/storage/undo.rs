//! UNDO: takes back a set of changes in one transaction, unless something was changed again since.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_shared::database::{Commit, Error, RollBack, Tx, args};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Workspace,
    change_set::{Beginning, ChangeSet},
    history::{ChangeRow, change},
    kept::kept_entities,
    rows::{EntityRow, entity},
    tables::table,
    too_much,
};
use crate::{author::Author, change::Change, entity::Entity, kind::Kind};

holdfast_shared::statements! {
    /// Returns the changes of a set, in order.
    CHANGES_OF_SET = "
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at
        from onto_changes
        where owner_id = $1 and change_set_id = $2
        order by id
    ",
    /// Returns the bytes of the changes of a set.
    BYTES_OF_SET = "
        select cast(coalesce(sum(bytes), 0) as bigint)
        from onto_changes
        where owner_id = $1 and change_set_id = $2
    ",
    /// Returns the bytes of the changes of a run and of the runs below it.
    BYTES_OF_RUN = "
        with recursive family as (
            select id
            from agent_runs
            where id = $2
            union all
            select r.id
            from agent_runs r
            join family f on r.parent_run_id = f.id
        )
        select cast(coalesce(sum(bytes), 0) as bigint)
        from onto_changes
        where owner_id = $1
          and run_id in (select id from family)
    ",
    /// Returns the changes of a run and of the runs below it, in order.
    CHANGES_OF_RUN = "
        with recursive family as (
            select id
            from agent_runs
            where id = $2
            union all
            select r.id
            from agent_runs r
            join family f on r.parent_run_id = f.id
        )
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at
        from onto_changes
        where owner_id = $1
          and run_id in (select id from family)
        order by created_at, id
    ",
    /// Counts the unfinished runs among a run and those below it.
    UNFINISHED = "
        with recursive family as (
            select id, finished_at
            from agent_runs
            where id = $1
            union all
            select r.id, r.finished_at
            from agent_runs r
            join family f on r.parent_run_id = f.id
        )
        select count(*)
        from family
        where finished_at is null
    ",
    /// Returns the sets that undo a set or a run.
    UNDOERS = "
        select distinct change_set_id
        from onto_changes
        where owner_id = $1 and undoes = $2
    ",
}

/// The changes to undo.
#[derive(Debug, Clone, Copy)]
pub enum Undone {
    /// Those of a set.
    Set(Uuid),
    /// Those of a run and of the runs below it.
    Run(Uuid),
}

impl Undone {
    const fn id(self) -> Uuid {
        match self {
            Self::Set(id) | Self::Run(id) => id,
        }
    }
}

/// The outcome of an undo.
#[derive(Debug, Clone, PartialEq)]
pub enum Undo {
    /// The changes are taken back.
    Done {
        /// The set of changes that does so; undoing it restores what was taken back.
        change_set_id: Uuid,
        /// The entities that are as before.
        undone: Vec<(Kind, Uuid)>,
        /// The entities that were changed again since, which stay as they are.
        left_out: Vec<(Kind, Uuid)>,
    },
    /// These entities were changed again since, and the caller does not leave them out.
    Conflicts(Vec<(Kind, Uuid)>),
    /// The set is undone already.
    AlreadyUndone,
    /// The run, or one below it, has not ended.
    Live,
    /// The owner has no such set, or it is older than 30 days.
    NotFound,
    /// The owner's workspace is full.
    Full(String),
}

/// The effect of a set on one entity: the states before its first change and after its last one.
pub(super) struct EntityEffect {
    pub kind: Kind,
    pub before: Option<Entity>,
    pub after: Option<Entity>,
}

impl Workspace {
    /// Takes back the changes of a set or of a run. With `force`, entities that were changed again are left out.
    pub async fn undo(&self, author: Author<'_>, undone: Undone, force: bool) -> Result<Undo, Error> {
        let undo = async |tx: &mut Tx| {
            let (owner, set_id) = (author.owner, undone.id());
            let Beginning::Set(mut set) = ChangeSet::begin(tx, author, self.limits, Some(set_id)).await? else {
                return Ok(RollBack(Undo::NotFound));
            };
            let (bytes_of, changes_of) = match undone {
                Undone::Set(_) => (BYTES_OF_SET, CHANGES_OF_SET),
                Undone::Run(_) => (BYTES_OF_RUN, CHANGES_OF_RUN),
            };
            // Each change has two states.
            let most = self.most_at_once();
            if tx.fetch_one::<(i64,)>(bytes_of, args![owner, set_id]).await?.0 / 2 > most as i64 {
                return Ok(RollBack(Undo::Full(too_much(most))));
            }
            let rows = tx.fetch_all::<ChangeRow>(changes_of, args![owner, set_id]).await?;
            let changes: Vec<Change> = rows.into_iter().filter_map(change).collect();
            if changes.first().is_none_or(|change| change.created_at < set.horizon()) {
                return Ok(RollBack(Undo::NotFound));
            }
            if let Undone::Run(run_id) = undone
                && tx.fetch_one::<(i64,)>(UNFINISHED, args![run_id]).await?.0 > 0
            {
                return Ok(RollBack(Undo::Live));
            }
            if is_undone(tx, owner, set_id).await? {
                return Ok(RollBack(Undo::AlreadyUndone));
            }
            let effects = effects_of(changes);
            let mut current: BTreeMap<Uuid, Option<Entity>> = effects.keys().map(|id| (*id, None)).collect();
            for kind in Kind::ALL {
                let of_kind = effects.iter().filter(|(_, effect)| effect.kind == *kind).map(|(id, _)| *id);
                for row in
                    tx.fetch_all::<EntityRow>(table(*kind).get, args![owner, of_kind.collect::<Vec<_>>()]).await?
                {
                    let found = entity(*kind, row);
                    current.insert(found.id, Some(found));
                }
            }
            let kept = kept_entities(tx, author, &effects, &current).await?;
            let (mut as_before, mut left_out) = (Vec::new(), Vec::new());
            for (id, effect) in effects {
                let current = current.remove(&id).flatten();
                if kept.contains(&id) {
                    left_out.push((effect.kind, id));
                } else if current.is_some() || effect.before.is_some() {
                    set.change(current, effect.before);
                    as_before.push((effect.kind, id));
                }
            }
            if !left_out.is_empty() && (!force || set.is_empty()) {
                return Ok(RollBack(Undo::Conflicts(left_out)));
            }
            if set.is_empty() {
                return Ok(RollBack(Undo::AlreadyUndone));
            }
            let change_set_id = set.id;
            Ok(match set.store(tx).await? {
                Some(full) => RollBack(Undo::Full(full.0)),
                None => Commit(Undo::Done { change_set_id, undone: as_before, left_out }),
            })
        };
        self.database.transact("undo changes", undo).await
    }
}

/// Returns whether a set that undoes this one is not undone itself.
async fn is_undone(tx: &mut Tx, owner: &str, set_id: Uuid) -> Result<bool, Error> {
    // Each undo in the newest chain reverses the one before it.
    let (mut of, mut is_undone, mut seen) = (set_id, false, BTreeSet::new());
    while seen.insert(of) {
        let undoers = tx.fetch_all::<(Uuid,)>(UNDOERS, args![owner, of]).await?;
        // UUIDv7: the newest one counts, because an earlier one was undone before it could be made.
        let Some(newest) = undoers.into_iter().map(|row| row.0).max() else { break };
        (of, is_undone) = (newest, !is_undone);
    }
    Ok(is_undone)
}

/// Returns whether two states of an entity differ only in what each change makes new.
pub(super) fn is_same(one: Option<&Entity>, other: Option<&Entity>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            Entity { version: other.version, updated_at: other.updated_at, ..one.clone() } == *other
        }
        _ => false,
    }
}

fn effects_of(changes: Vec<Change>) -> BTreeMap<Uuid, EntityEffect> {
    let mut effects = BTreeMap::<Uuid, EntityEffect>::new();
    for change in changes {
        let kind = change.kind;
        let read = |state: Option<Value>| state.and_then(|state| Entity::of_state(kind, &state));
        let before = read(change.before);
        let effect = effects.entry(change.entity_id).or_insert(EntityEffect { kind, before, after: None });
        effect.after = read(change.after);
    }
    effects
}
