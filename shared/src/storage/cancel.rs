//! CANCEL: the immediate effect of an owner's request to stop a run.

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    end::{self, EndedRun},
    sql::{Commit, RollBack, Tx, args},
};
use crate::{approval::ApprovalStatus, run::RunStatus};

/// The outcome of a cancel.
#[derive(Debug)]
pub enum CancelOutcome {
    /// No worker held the run, so it has ended.
    Ended(EndedRun),
    /// A worker holds the run and must end it. The caller signals the worker.
    Requested,
    /// The run had ended before.
    Over,
    /// There is no such run.
    NotFound,
}

impl Storage {
    /// Ends a queued or waiting run, and requests the end of a running one.
    pub async fn request_cancel(&self, owner: &str, run_id: Uuid) -> Result<CancelOutcome, Error> {
        #[derive(FromRow)]
        struct Row {
            #[sqlx(try_from = "String")]
            status: RunStatus,
        }
        let cancel = async |tx: &mut Tx| {
            let sql = "select conversation_id from agent_runs where id = $1 and owner_id = $2";
            let conversation = tx.fetch_optional::<(Uuid,)>(sql, args![run_id, owner]).await?;
            let Some((conversation_id,)) = conversation else { return Ok(RollBack(CancelOutcome::NotFound)) };
            end::lock_conversation(tx, conversation_id).await?;
            let sql = "select status from agent_runs where id = $1 {for update}";
            let row = tx.fetch_optional::<Row>(sql, args![run_id]).await?;
            Ok(match row.map(|row| row.status) {
                None => RollBack(CancelOutcome::NotFound),
                Some(status) if status.is_terminal() => RollBack(CancelOutcome::Over),
                Some(RunStatus::Running) => {
                    let sql = "update agent_runs set cancel_requested_at = coalesce(cancel_requested_at, {now}) where id = $1";
                    tx.execute(sql, args![run_id]).await?;
                    Commit(CancelOutcome::Requested)
                }
                Some(_) => match end::cancel_locked(tx, run_id, ApprovalStatus::Cancelled).await? {
                    Some(ended) => Commit(CancelOutcome::Ended(ended)),
                    None => RollBack(CancelOutcome::Over),
                },
            })
        };
        self.database.transact("cancel a run", cancel).await
    }
}
