//! The sweeper's removals: events after their retention, and deleted conversations.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::storage::{
    Error, Storage,
    sql::{Commit, Tx, args, statements},
};
/// The numbers of one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetireCounts {
    /// Runs whose events were removed.
    pub runs: usize,
    /// Removed conversations.
    pub conversations: usize,
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
    /// Removes deleted conversations whose runs have all ended, after the conversations below them are hidden.
    DELETE_CONVERSATIONS = "
        delete from chat_conversations
        where id in (
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
        )
        returning id
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
    pub async fn retire(&self, retention: Duration, budget: Duration) -> Result<RetireCounts, Error> {
        let until = Instant::now() + budget;
        let mut retired = RetireCounts { runs: 0, conversations: 0 };
        loop {
            let batch = self.retire_batch(retention).await?;
            retired.runs += batch.runs;
            retired.conversations += batch.conversations;
            let is_full = batch.runs.max(batch.conversations) >= BATCH as usize;
            if !is_full || Instant::now() >= until {
                return Ok(retired);
            }
        }
    }

    async fn retire_batch(&self, retention: Duration) -> Result<RetireCounts, Error> {
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
            let conversations = tx.fetch_all::<(Uuid,)>(DELETE_CONVERSATIONS, args![BATCH]);
            let removed: Vec<Uuid> = conversations.await?.into_iter().map(|row| row.0).collect();
            let conversations = removed.len();
            if conversations > 0 {
                tx.execute(DELETE_CHECKPOINTS, args![removed]).await?;
            }
            tx.execute(DELETE_VERSIONS, args![]).await?;
            Ok(Commit(conversations))
        };
        Ok(RetireCounts {
            runs: self.database.transact(DOING, retire_events).await?,
            conversations: self.database.transact(DOING, retire_conversations).await?,
        })
    }
}
