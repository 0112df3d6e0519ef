//! Families whose processes died halfway: live children of ended runs, and executors of changed steps.

use uuid::Uuid;

use super::{EndedRun, attempt::lock_run, cancel::request_end, end::end_locked};
use crate::storage::{
    Error, Storage,
    sql::{Commit, Piece, Sql, Tx, args, statements},
};
use crate::{approval::ApprovalStatus, ending::Ending, run::RunStatus};

statements! {
    /// Returns the live children of a run.
    LIVE_CHILDREN = "
        select id
        from agent_runs
        where parent_run_id = $1 and finished_at is null
    ",
    /// Returns the live executors of a run that no step of a plan names any more.
    REPLACED_EXECUTORS = "
        select c.id
        from agent_runs c
        where c.parent_run_id = $1
          and c.finished_at is null
          and c.subagent_role = 'executor'
          and not exists (select 1 from agent_plan_steps s where s.child_run_id = c.id)
    ",
    /// Returns runs with such executors.
    PARENTS_OF_REPLACED = "
        select distinct c.parent_run_id
        from agent_runs c
        where c.parent_run_id is not null
          and c.finished_at is null
          and c.subagent_role = 'executor'
          and not exists (select 1 from agent_plan_steps s where s.child_run_id = c.id)
        limit $1
    ",
    /// Returns some conversations of the runs below deleted conversations.
    CONVERSATIONS_BELOW = "
        select below.id
        from chat_conversations c
        join agent_runs r on r.conversation_id = c.id
        join chat_conversations below on below.parent_run_id = r.id
        where c.deleted_at is not null and below.deleted_at is null
        limit $1
    ",
    /// Hides conversations.
    HIDE_CONVERSATIONS = "
        update chat_conversations
        set deleted_at = {now}
        where id {in:$1} and deleted_at is null
    ",
    /// Returns ended runs with live children.
    PARENTS_OF_ORPHANS = "
        select distinct c.parent_run_id
        from agent_runs c
        join agent_runs p on p.id = c.parent_run_id
        where c.parent_run_id is not null
          and c.finished_at is null
          and p.finished_at is not null
        limit $1
    ",
}

/// Most parents of one sweep.
const BATCH: i64 = 100;

impl Storage {
    /// Cancels the live runs below an ended run, each in a transaction. Returns the ended ones, and the ids of those whose
    /// workers the caller signals.
    pub async fn cancel_children(&self, parent: Uuid) -> Result<(Vec<EndedRun>, Vec<Uuid>), Error> {
        self.cancel_below(parent, LIVE_CHILDREN).await
    }

    /// Cancels the executors whose steps were changed, and the runs below them, like [`Self::cancel_children`].
    pub async fn cancel_replaced(&self, parent: Uuid) -> Result<(Vec<EndedRun>, Vec<Uuid>), Error> {
        self.cancel_below(parent, REPLACED_EXECUTORS).await
    }

    async fn cancel_below(&self, run: Uuid, children_of_run: Sql) -> Result<(Vec<EndedRun>, Vec<Uuid>), Error> {
        let (mut ended, mut requested, mut parents) = (Vec::new(), Vec::new(), vec![(run, children_of_run)]);
        while let Some((parent, sql)) = parents.pop() {
            let children = self.database.fetch_all::<(Uuid,)>("find the children of a run", sql, args![parent]).await?;
            for (child,) in children {
                match self.cancel_child(child).await? {
                    Some(Some(end)) => {
                        parents.push((child, LIVE_CHILDREN));
                        ended.push(end);
                    }
                    Some(None) => requested.push(child),
                    None => {}
                }
            }
        }
        Ok((ended, requested))
    }

    /// `None` if the child has ended; `Some(None)` if its worker must end it.
    async fn cancel_child(&self, child: Uuid) -> Result<Option<Option<EndedRun>>, Error> {
        let cancel = async |tx: &mut Tx| {
            let Some(run) = lock_run(tx, child).await?.filter(|run| !run.status.is_terminal()) else {
                return Ok(Commit(None));
            };
            if run.status == RunStatus::Running && !run.expired && !run.cancel_overdue {
                request_end(tx, child).await?;
                return Ok(Commit(Some(None)));
            }
            let ended = end_locked(tx, run, &Ending::Cancelled, ApprovalStatus::Cancelled).await?;
            Ok(Commit(Some(Some(ended))))
        };
        self.database.transact("cancel a run below another", cancel).await
    }

    /// Hides the conversations below deleted ones, as deep as they go.
    pub async fn hide_conversations_below(&self) -> Result<(), Error> {
        while self.hide_some_conversations_below().await? {}
        Ok(())
    }

    /// Hides a piece of the conversations below deleted ones. Returns whether there was one.
    pub(super) async fn hide_some_conversations_below(&self) -> Result<bool, Error> {
        let doing = "hide the conversations of subagents";
        let most = self.database.piece_size(HIDE_CONVERSATIONS).rows();
        // A search through all deleted conversations must not hold up the writers.
        let found = self.database.fetch_all::<(Uuid,)>(doing, CONVERSATIONS_BELOW, args![most]).await?;
        if found.is_empty() {
            return Ok(false);
        }
        let found: Vec<Uuid> = found.into_iter().map(|row| row.0).collect();
        let hide = async |tx: &mut Tx, piece: &mut Piece| {
            let hidden = tx.execute(HIDE_CONVERSATIONS, args![found]).await?;
            piece.note(HIDE_CONVERSATIONS, hidden as usize, 0);
            Ok(Commit(true))
        };
        self.database.write_piece(doing, hide).await
    }

    /// Returns ended runs with live children, for the sweeper.
    pub async fn parents_of_orphans(&self) -> Result<Vec<Uuid>, Error> {
        let rows = self
            .database
            .fetch_all::<(Uuid,)>("find live children of ended runs", PARENTS_OF_ORPHANS, args![BATCH])
            .await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Returns runs with executors whose steps were changed, for the sweeper.
    pub async fn parents_of_replaced(&self) -> Result<Vec<Uuid>, Error> {
        let rows = self
            .database
            .fetch_all::<(Uuid,)>("find executors of changed steps", PARENTS_OF_REPLACED, args![BATCH])
            .await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }
}
