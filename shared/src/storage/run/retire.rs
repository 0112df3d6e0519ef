//! The sweeper's removals: events after their retention, and deleted conversations.
//!
//! Each kind of rows goes in pieces, and has its share of the time of a sweep.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::storage::{
    Error, Storage,
    conversation_removal::{REMOVE_CONVERSATIONS, RemovedConversations, remove_conversations, remove_events},
    sql::{Commit, Piece, RollBack, Tx, args, statements},
};

/// The removals of one sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetireOutcome {
    /// Runs whose events are removed.
    pub runs: usize,
    /// Removed conversations.
    pub conversations: usize,
    /// The runs of removed conversations, whose logs the caller removes.
    pub removed_runs: Vec<Uuid>,
}

/// Kinds of rows that share the time of a sweep.
const KINDS: u32 = 5;

const DOING: &str = "remove expired events and deleted conversations";

statements! {
    /// Marks runs whose events go. No reader sees them from then on.
    TAKE_RETIRED_RUNS = "
        update agent_runs
        set events_removed_at = {now}
        where id in (
            select id
            from agent_runs
            where finished_at < {before:$1} and events_removed_at is null
            order by finished_at
            limit $2
            {skip locked}
        )
        returning id
    ",
    /// Notes runs whose events are to be removed.
    NOTE_REMOVALS = "
        insert into event_removals (run_id)
        select id
        from agent_runs
        where id {in:$1}
        on conflict (run_id) do nothing
    ",
    /// Locks some of them.
    LOCK_REMOVALS = "
        select run_id
        from event_removals
        limit $1
        {skip locked}
    ",
    /// Forgets runs whose last event is removed.
    FORGET_REMOVALS = "
        delete from event_removals
        where run_id {in:$1}
    ",
    /// Marks some conversations as deleted whose requests brought their own history.
    EXPIRE = "
        update chat_conversations
        set deleted_at = {now}
        where id in (
            select c.id
            from chat_conversations c
            where c.expires
              and c.deleted_at is null
              and c.activity_at < {before:$1}
              and not exists (
                  select 1
                  from agent_runs r
                  where r.conversation_id = c.id
                    and (r.finished_at is null or r.finished_at >= {before:$1})
              )
            order by c.activity_at
            limit $2
            {skip locked}
        )
    ",
    /// Returns some deleted conversations whose runs have all ended, after the conversations below them are hidden. A conversation
    /// that is found once can always be removed, because no run begins in it.
    DELETED_CONVERSATIONS = "
        select c.id
        from chat_conversations c
        where c.deleted_at is not null
          and not exists (
              select 1
              from agent_runs r
              where r.conversation_id = c.id
                and r.status in ('queued', 'running', 'waiting')
          )
          and not exists (
              select 1
              from agent_runs r
              join chat_conversations below on below.parent_run_id = r.id
              where r.conversation_id = c.id and below.deleted_at is null
          )
        limit $1
    ",
    /// Locks conversations.
    LOCK_CONVERSATIONS = "
        select id
        from chat_conversations
        where id {in:$1}
        order by id
        {skip locked}
    ",
    /// Removes some earlier definitions. Storage keeps one, and its secrets, while a run may need it.
    DELETE_VERSIONS = "
        delete from agent_definition_versions
        where (agent_definition_id, version) in (
            select v.agent_definition_id, v.version
            from agent_definition_versions v
            join agent_definitions a on a.id = v.agent_definition_id
            where v.version < a.version
              and not exists (
                  select 1
                  from agent_runs r
                  where r.agent_definition_id = v.agent_definition_id
                    and r.agent_version = v.version
                    and r.status in ('queued', 'running', 'waiting')
              )
            limit $1
        )
    ",
}

impl Storage {
    /// Removes the events of runs that ended longer than `retention` ago, and deleted conversations whose runs have all
    /// ended. It also removes earlier definitions of agents that no run needs. After about `budget`, it leaves the rest to
    /// the next sweep, but it removes a piece of each kind at least.
    pub async fn retire(&self, retention: Duration, budget: Duration) -> Result<RetireOutcome, Error> {
        let share = budget / KINDS;
        let mut retired = RetireOutcome::default();
        let until = Instant::now() + share;
        while self.hide_some_conversations_below().await? && Instant::now() < until {}
        let until = Instant::now() + share;
        while self.retire_runs(retention, &mut retired).await? && Instant::now() < until {}
        let until = Instant::now() + share;
        while self.remove_retired_events().await? && Instant::now() < until {}
        self.expire_conversations(retention, share).await?;
        let until = Instant::now() + share;
        while self.remove_deleted_conversations(&mut retired).await? && Instant::now() < until {}
        self.database.write_piece_of(DOING, &[DELETE_VERSIONS], args![]).await?;
        Ok(retired)
    }

    /// Marks a piece of the runs whose events go. Returns whether there may be more.
    async fn retire_runs(&self, retention: Duration, retired: &mut RetireOutcome) -> Result<bool, Error> {
        let take = async |tx: &mut Tx, piece: &mut Piece| {
            let most = piece.size(TAKE_RETIRED_RUNS).rows();
            let runs = tx.fetch_all::<(Uuid,)>(TAKE_RETIRED_RUNS, args![retention, most]).await?;
            let runs: Vec<Uuid> = runs.into_iter().map(|row| row.0).collect();
            let taken = runs.len();
            if taken == 0 {
                return Ok(RollBack(0));
            }
            tx.execute(NOTE_REMOVALS, args![runs]).await?;
            piece.note(TAKE_RETIRED_RUNS, taken, 0);
            Ok(Commit(taken))
        };
        let taken = self.database.write_piece(DOING, take).await?;
        retired.runs += taken;
        Ok(taken > 0)
    }

    /// Removes a piece of the events of marked runs. Returns whether there may be more.
    async fn remove_retired_events(&self) -> Result<bool, Error> {
        let remove = async |tx: &mut Tx, piece: &mut Piece| {
            let most = piece.size(FORGET_REMOVALS).rows();
            let runs = tx.fetch_all::<(Uuid,)>(LOCK_REMOVALS, args![most]).await?;
            let runs: Vec<Uuid> = runs.into_iter().map(|row| row.0).collect();
            if runs.is_empty() {
                return Ok(RollBack(false));
            }
            if !remove_events(tx, piece, &runs).await? {
                piece.note(FORGET_REMOVALS, runs.len(), 0);
                tx.execute(FORGET_REMOVALS, args![runs]).await?;
            }
            Ok(Commit(true))
        };
        self.database.write_piece(DOING, remove).await
    }

    async fn expire_conversations(&self, retention: Duration, budget: Duration) -> Result<(), Error> {
        let until = Instant::now() + budget;
        while self.database.write_piece_of(DOING, &[EXPIRE], args![retention]).await? && Instant::now() < until {}
        Ok(())
    }

    /// Removes a piece of the deleted conversations. Returns whether there may be more.
    async fn remove_deleted_conversations(&self, retired: &mut RetireOutcome) -> Result<bool, Error> {
        // A search through the runs of a large conversation must not hold up the writers.
        let most = self.database.piece_size(REMOVE_CONVERSATIONS).rows();
        let found = self.database.fetch_all::<(Uuid,)>(DOING, DELETED_CONVERSATIONS, args![most]).await?;
        if found.is_empty() {
            return Ok(false);
        }
        let found: Vec<Uuid> = found.into_iter().map(|row| row.0).collect();
        // Order matters: conversations are locked before runs.
        let remove = async |tx: &mut Tx, piece: &mut Piece| {
            let conversations = tx.fetch_all::<(Uuid,)>(LOCK_CONVERSATIONS, args![found]).await?;
            let conversations: Vec<Uuid> = conversations.into_iter().map(|row| row.0).collect();
            let is_free = !conversations.is_empty();
            Ok(Commit((is_free, remove_conversations(tx, piece, conversations).await?)))
        };
        let (is_free, removed) = self.database.write_piece(DOING, remove).await?;
        let RemovedConversations { runs, conversations } = removed;
        retired.removed_runs.extend(runs);
        retired.conversations += conversations.len();
        Ok(is_free)
    }

    /// Removes deleted rows from the file's log of writes, as far as no reader needs it. PostgreSQL has none of its own.
    pub async fn truncate_log(&self) -> Result<bool, Error> {
        self.database.truncate_log().await
    }
}
