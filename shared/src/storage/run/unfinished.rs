//! The runs of a conversation that have not ended, and their cancellation together.

use sqlx::FromRow;
use uuid::Uuid;

use super::{EndedRun, cancel::request_end, end::cancel_in_conversation};
use crate::storage::{
    Error,
    sql::{Tx, args, statements},
};
use crate::{approval::ApprovalStatus, run::RunStatus};

/// A run that has not ended.
#[derive(FromRow)]
pub struct UnfinishedRun {
    pub id: Uuid,
    pub position: i64,
    #[sqlx(try_from = "String")]
    pub status: RunStatus,
    /// True if the run waits for a human or a client, and not for its children alone.
    pub awaits_human: bool,
}

statements! {
    /// Locks the unfinished runs of a conversation.
    LOCK_UNFINISHED = "
        select id, position, status,
            status = 'waiting' and coalesce(awaits, 'human') <> 'children' as awaits_human
        from agent_runs
        where conversation_id = $1
          and status in ('queued', 'running', 'waiting')
        order by position
        {for update}
    ",
    /// Locks the running runs of conversations.
    LOCK_RUNNING = "
        select id
        from agent_runs
        where conversation_id {in:$1} and status = 'running'
        order by id
        {for update}
    ",
}

/// Locks the running runs of conversations. Order matters: the settlement of a worker's death also locks runs in the
/// order of their ids, so the two cannot deadlock.
pub async fn lock_running(tx: &mut Tx, conversations: Vec<Uuid>) -> Result<(), Error> {
    tx.fetch_all::<(Uuid,)>(LOCK_RUNNING, args![conversations]).await.map(drop)
}

/// Locks the conversation's unfinished runs, and returns them in the order of its queue.
pub async fn unfinished_runs(tx: &mut Tx, conversation_id: Uuid) -> Result<Vec<UnfinishedRun>, Error> {
    tx.fetch_all(LOCK_UNFINISHED, args![conversation_id]).await
}

/// Ends runs without a holder, and requests the end of running ones. Returns both.
pub async fn cancel_all(
    tx: &mut Tx,
    runs: Vec<UnfinishedRun>,
    unanswered: ApprovalStatus,
) -> Result<(Vec<EndedRun>, Vec<Uuid>), Error> {
    let (mut ended, mut requested) = (Vec::new(), Vec::new());
    for UnfinishedRun { id: run_id, status, .. } in runs {
        if status == RunStatus::Running {
            request_end(tx, run_id).await?;
            requested.push(run_id);
        } else {
            ended.extend(cancel_in_conversation(tx, run_id, unanswered).await?);
        }
    }
    Ok((ended, requested))
}
