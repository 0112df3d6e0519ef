//! UNDO: takes back a set of changes in one transaction, unless something was changed again since.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_shared::database::{Commit, Error, RollBack, Tx, args};
use uuid::Uuid;

use super::{
    Workspace,
    change_set::{Beginning, ChangeSet, DeletionMark},
    deletion::too_large,
    effects::{Effects, OutlineRow, effects_of, pieces, states_of},
    kept::kept_entities,
};
use crate::{author::Author, kind::Kind};

/// The columns of an outline of a change.
macro_rules! outline {
    () => {
        "id, kind, entity_id, created_at, bytes, size,
            case when size is not null then before->>'deleted_at' end,
            case when size is not null then after->>'deleted_at' end"
    };
}

/// The run `$2` and the runs below it.
macro_rules! family {
    () => {
        "with recursive family as (
            select id
            from agent_runs
            where id = $2
            union all
            select r.id
            from agent_runs r
            join family f on r.parent_run_id = f.id
        )"
    };
}

holdfast_shared::statements! {
    /// Counts the changes of a set, and the bytes of their entities. Whole states count twice, because the process reads and writes
    /// them.
    WEIGHT_OF_SET = "
        select count(*), cast(coalesce(sum(coalesce(size / 2, 2 * bytes)), 0) as bigint)
        from onto_changes
        where owner_id = $1 and change_set_id = $2
    ",
    /// Counts the changes of a run and of the runs below it, and the bytes of their entities.
    WEIGHT_OF_RUN = concat!(family!(), "
        select count(*), cast(coalesce(sum(coalesce(size / 2, 2 * bytes)), 0) as bigint)
        from onto_changes
        where owner_id = $1
          and run_id in (select id from family)
    "),
    /// Returns the outlines of the changes of a set, in order.
    OUTLINES_OF_SET = concat!("
        select ", outline!(), "
        from onto_changes
        where owner_id = $1 and change_set_id = $2
        order by id
    "),
    /// Returns the outlines of the changes of a run and of the runs below it, in order.
    OUTLINES_OF_RUN = concat!(family!(), "
        select ", outline!(), "
        from onto_changes
        where owner_id = $1
          and run_id in (select id from family)
        order by created_at, id
    "),
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

/// Most undoes of undoes that a read follows.
const MOST_UNDOS: usize = 100;

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
    /// The set has more changes, or more bytes, than one undo may be about.
    TooLarge(String),
}

impl Workspace {
    /// Returns the newest undo of changes, unless it is undone itself. After very many undoes of undoes, it returns none.
    pub async fn undo_of(&self, owner: &str, undone: Undone) -> Result<Option<Uuid>, Error> {
        let (mut of, mut undo) = (undone.id(), None);
        for _ in 0..MOST_UNDOS {
            let undoers = self.database.fetch_all("look for an undo", UNDOERS, args![owner, of]).await?;
            let Some(newest) = newest_of(undoers) else { return Ok(undo) };
            undo = if undo.is_none() { Some(newest) } else { None };
            of = newest;
        }
        Ok(None)
    }

    /// Returns the bytes of the states that an undo stores, roughly.
    pub async fn bytes_of_undo(&self, owner: &str, undone: Undone) -> Result<u64, Error> {
        Ok(self.weight_of(owner, undone).await?.1.max(0) as u64)
    }

    /// Returns the number of changes, and the bytes of their entities.
    async fn weight_of(&self, owner: &str, undone: Undone) -> Result<(i64, i64), Error> {
        let sql = match undone {
            Undone::Set(_) => WEIGHT_OF_SET,
            Undone::Run(_) => WEIGHT_OF_RUN,
        };
        let weight = self.database.fetch_optional("measure changes", sql, args![owner, undone.id()]).await?;
        Ok(weight.unwrap_or_default())
    }

    /// Takes back the changes of a set or of a run. With `force`, entities that were changed again are left out.
    pub async fn undo(&self, author: Author<'_>, undone: Undone, force: bool) -> Result<Undo, Error> {
        const DOING: &str = "undo changes";
        let (owner, set_id) = (author.owner, undone.id());
        let outlines_of = match undone {
            Undone::Set(_) => OUTLINES_OF_SET,
            Undone::Run(_) => OUTLINES_OF_RUN,
        };
        // A set never grows, and a run that lives is refused later, so this need not hold the writer.
        let ((changes, bytes), limits) = (self.weight_of(owner, undone).await?, self.limits);
        if changes > limits.max_change_entities as i64 || bytes > limits.max_change_bytes as i64 {
            return Ok(Undo::TooLarge(too_large(limits)));
        }
        let _permit = self.long_change().await;
        let undo = async |tx: &mut Tx| {
            let Beginning::Set(mut set) = ChangeSet::begin(tx, author, limits, Some(set_id)).await? else {
                return Ok(RollBack(Undo::NotFound));
            };
            let outlines = tx.fetch_all::<OutlineRow>(outlines_of, args![owner, set_id]).await?;
            if outlines.first().is_none_or(|outline| outline.3 < set.horizon()) {
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
            let effects = effects_of(tx, owner, outlines).await?;
            let kept = kept_entities(tx, author, &effects).await?;
            let (mut as_before, mut left_out) = (Vec::new(), Vec::new());
            for (id, effect) in &effects {
                if kept.contains(id) {
                    left_out.push((effect.kind, *id));
                } else if effect.current.is_some() || effect.before.is_some() {
                    as_before.push((effect.kind, *id));
                }
            }
            if !left_out.is_empty() && (!force || as_before.is_empty()) {
                return Ok(RollBack(Undo::Conflicts(left_out)));
            }
            if as_before.is_empty() {
                return Ok(RollBack(Undo::AlreadyUndone));
            }
            take_back(tx, &mut set, owner, &effects, &as_before).await?;
            let change_set_id = set.id;
            Ok(match set.store(tx).await? {
                Some(full) => RollBack(Undo::Full(full.0)),
                None => Commit(Undo::Done { change_set_id, undone: as_before, left_out }),
            })
        };
        self.database.transact(DOING, undo).await
    }
}

/// Gives entities the states that they had before: the database does it where only their deletion has changed, and the process
/// does it for the others, a piece of them at a time.
async fn take_back(
    tx: &mut Tx,
    set: &mut ChangeSet<'_>,
    owner: &str,
    effects: &Effects,
    entities: &[(Kind, Uuid)],
) -> Result<(), Error> {
    let mut marks = BTreeMap::<Kind, Vec<DeletionMark>>::new();
    let mut whole = BTreeSet::new();
    for (kind, id) in entities {
        match effects[id].marks {
            Some([before, after]) => {
                let mark = DeletionMark { id: *id, was_deleted: after.is_some(), deleted_at: before };
                marks.entry(*kind).or_default().push(mark);
            }
            None => {
                whole.insert(*id);
            }
        }
    }
    for (kind, marks) in marks {
        set.mark(tx, kind, &marks).await?;
    }
    for piece in pieces(effects, &whole) {
        for states in states_of(tx, owner, effects, &piece).await?.into_values() {
            set.change(states.current, states.before);
        }
        set.flush(tx).await?;
    }
    Ok(())
}

/// Returns whether a set that undoes this one is not undone itself.
async fn is_undone(tx: &mut Tx, owner: &str, set_id: Uuid) -> Result<bool, Error> {
    // Each undo in the newest chain reverses the one before it.
    let (mut of, mut is_undone, mut seen) = (set_id, false, BTreeSet::new());
    while seen.insert(of) {
        let Some(newest) = newest_of(tx.fetch_all(UNDOERS, args![owner, of]).await?) else { break };
        (of, is_undone) = (newest, !is_undone);
    }
    Ok(is_undone)
}

/// Returns the undo that counts: UUIDv7 sorts by time, and an earlier one was undone before the newest could be made.
fn newest_of(undoers: Vec<(Uuid,)>) -> Option<Uuid> {
    undoers.into_iter().map(|row| row.0).max()
}
