//! The sweeper's removals: events after their retention, and deleted conversations.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::storage::{
    Error, Storage,
    sql::{Commit, Tx, args, statements},
};
/// The removals of one sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetireOutcome {
    /// Runs whose events were removed.
    pub runs: usize,
    /// Removed conversations.
    pub conversations: usize,
    /// The runs of these conversations, whose logs the caller removes.
    pub removed_runs: Vec<Uuid>,
}

/// Most rows of one transaction, so that it never holds locks for long.
const BATCH: i64 = 100;

statements! {
    /// Marks runs whose events are removed now.
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
    /// Removes the events of runs.
    DELETE_EVENTS = "
        delete from run_events
        where run_id {in:$1}
    ",
    /// Marks conversations as deleted whose requests brought their own history.
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
    /// Locks deleted conversations whose runs have all ended, after the conversations below them are hidden.
    LOCK_DELETED_CONVERSATIONS = "
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
        {skip locked}
    ",
    /// Returns the runs of conversations.
    RUNS_OF_DELETED = "
        select id
        from agent_runs
        where conversation_id {in:$1}
    ",
    /// Removes conversations, with their messages, runs and events.
    DELETE_CONVERSATIONS = "
        delete from chat_conversations
        where id {in:$1}
    ",
    /// Removes the checkpoints of conversations.
    DELETE_CHECKPOINTS = "
        delete from agent_run_checkpoints
        where conversation_id {in:$1}
    ",
    /// Removes earlier definitions. Storage keeps one, and its secrets, while a run may need it.
    DELETE_VERSIONS = "
        delete from agent_definition_versions
        where version < (select a.version from agent_definitions a where a.id = agent_definition_id)
          and not exists (
              select 1
              from agent_runs r
              where r.agent_definition_id = agent_definition_versions.agent_definition_id
                and r.agent_version = agent_definition_versions.version
                and r.status in ('queued', 'running', 'waiting')
          )
    ",
}

impl Storage {
    /// Removes the events of runs that ended longer than `retention` ago, and deleted conversations whose runs have all
    /// ended. It also removes earlier definitions of agents that no run needs. After `budget`, it leaves the rest to
    /// the next sweep.
    pub async fn retire(&self, retention: Duration, budget: Duration) -> Result<RetireOutcome, Error> {
        let until = Instant::now() + budget;
        let mut retired = RetireOutcome::default();
        loop {
            let batch = self.retire_batch(retention).await?;
            retired.runs += batch.runs;
            retired.conversations += batch.conversations;
            retired.removed_runs.extend(batch.removed_runs);
            let is_full = batch.runs.max(batch.conversations) >= BATCH as usize;
            if !is_full || Instant::now() >= until {
                return Ok(retired);
            }
        }
    }

    async fn retire_batch(&self, retention: Duration) -> Result<RetireOutcome, Error> {
        const DOING: &str = "remove expired events and deleted conversations";
        self.hide_conversations_below().await?;
        let retire_events = async |tx: &mut Tx| {
            let runs = tx.fetch_all::<(Uuid,)>(TAKE_RETIRED_RUNS, args![retention, BATCH]);
            let runs: Vec<Uuid> = runs.await?.into_iter().map(|row| row.0).collect();
            let removed = runs.len();
            if removed > 0 {
                tx.execute(DELETE_EVENTS, args![runs]).await?;
            }
            Ok(Commit(removed))
        };
        // Order matters: conversations are locked before runs, so they cannot be in the transaction above.
        let retire_conversations = async |tx: &mut Tx| {
            tx.execute(EXPIRE, args![retention, BATCH]).await?;
            let conversations = tx.fetch_all::<(Uuid,)>(LOCK_DELETED_CONVERSATIONS, args![BATCH]);
            let conversations: Vec<Uuid> = conversations.await?.into_iter().map(|row| row.0).collect();
            let (removed, mut runs) = (conversations.len(), Vec::new());
            if removed > 0 {
                runs = tx.fetch_all::<(Uuid,)>(RUNS_OF_DELETED, args![conversations.clone()]).await?;
                tx.execute(DELETE_CONVERSATIONS, args![conversations.clone()]).await?;
                tx.execute(DELETE_CHECKPOINTS, args![conversations]).await?;
            }
            tx.execute(DELETE_VERSIONS, args![]).await?;
            Ok(Commit((removed, runs)))
        };
        let runs = self.database.transact(DOING, retire_events).await?;
        let (conversations, removed_runs) = self.database.transact(DOING, retire_conversations).await?;
        Ok(RetireOutcome { runs, conversations, removed_runs: removed_runs.into_iter().map(|row| row.0).collect() })
    }

    /// Removes deleted rows from the file's log of writes, as far as no reader needs it. PostgreSQL has none of its own.
    pub async fn truncate_log(&self) -> Result<bool, Error> {
        self.database.truncate_log().await
    }
}
