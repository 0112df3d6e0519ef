//! Families whose processes died halfway: live children of ended runs, executors of changed steps, and ended children without
//! an answer.

use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    AnsweredRun, EndedRun,
    attempt::lock_run,
    cancel::request_end,
    end::end_locked,
    outcomes::{ChildEnd, ParentCall, answer_ancestors},
};
use crate::storage::{
    Error, Storage,
    sql::{Commit, Piece, RollBack, Sql, Tx, args, statements},
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    run::{RunError, RunStatus},
    subagent::SubagentRole,
    usage::Usage,
};

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
    /// Returns ended children without an outcome in their parents.
    UNANSWERED = "
        select t.child_run_id
        from agent_run_tool_calls t
        join agent_runs c on c.id = t.child_run_id
        where t.child_run_id is not null
          and t.status = 'called'
          and t.completed_at is null
          and c.finished_at is not null
        limit $1
    ",
    /// Returns the end of a child.
    ENDED_CHILD = "
        select r.parent_run_id, r.parent_call_id, r.top_run_id, r.subagent_role as role,
            r.status, r.error_code, r.error_message, r.usage, r.children_usage, m.content
        from agent_runs r
        left join chat_messages m on m.id = r.output_message_id
        where r.id = $1
          and r.parent_run_id is not null
          and r.finished_at is not null
    ",
}

/// Most parents and calls of one sweep.
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

    /// Answers the parents of ended children that an earlier version of this program has ended, which does not answer.
    /// Returns the parents that were waiting.
    pub async fn answer_forgotten(&self) -> Result<Vec<AnsweredRun>, Error> {
        let rows =
            self.database.fetch_all::<(Uuid,)>("find children without an answer", UNANSWERED, args![BATCH]).await?;
        let mut answered = Vec::new();
        for (child,) in rows {
            match self.answer_for(child).await {
                Ok(parents) => answered.extend(parents),
                Err(error) if error.is_away() => return Err(error),
                // A failure for one child must not stop the answers of the others.
                Err(error) => {
                    tracing::error!(run.id = %child, error = &error as &dyn std::error::Error, "failed to answer the parent of an ended run");
                }
            }
        }
        Ok(answered)
    }

    async fn answer_for(&self, child: Uuid) -> Result<Vec<AnsweredRun>, Error> {
        let answer = async |tx: &mut Tx| {
            lock_run(tx, child).await?;
            let Some(row) = tx.fetch_optional::<EndedChildRow>(ENDED_CHILD, args![child]).await? else {
                return Ok(RollBack(Vec::new()));
            };
            let ending = row.ending();
            let call = ParentCall { run_id: row.parent_run_id, call_id: row.parent_call_id, role: row.role };
            let usages = [row.usage, row.children_usage].into_iter().flatten().map(|usage| usage.0);
            let answer = row.content.unwrap_or_default();
            let end = ChildEnd { run_id: child, ending: &ending, answer: &answer, usage: usages.sum() };
            Ok(Commit(answer_ancestors(tx, &call, row.top_run_id, end, Vec::new()).await?))
        };
        self.database.transact("answer the parent of an ended run", answer).await
    }
}

#[derive(FromRow)]
struct EndedChildRow {
    parent_run_id: Uuid,
    parent_call_id: String,
    top_run_id: Uuid,
    #[sqlx(try_from = "String")]
    role: SubagentRole,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    error_code: Option<String>,
    error_message: Option<String>,
    usage: Option<Json<Usage>>,
    children_usage: Option<Json<Usage>>,
    content: Option<String>,
}

impl EndedChildRow {
    fn ending(&self) -> Ending {
        match self.status {
            RunStatus::Completed => Ending::Completed,
            RunStatus::Failed => Ending::Failed(RunError::new(
                self.error_code.clone().unwrap_or_default(),
                self.error_message.clone().unwrap_or_default(),
            )),
            _ => Ending::Cancelled,
        }
    }
}
