//! Takes a message back: its run ends, and the message leaves its conversation. A rollback takes a message back that a run has read.

use uuid::Uuid;

use super::{
    CancelOutcome, EndedRun,
    attempt::lock_run,
    cancel::{OWNED_RUN, cancel, committed},
    end::end_locked,
    supersede,
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    run::RunStatus,
    storage::{
        Error, Storage,
        sql::{Commit, RollBack, Tx, args},
    },
};

/// The outcome of taking a message back.
#[derive(Debug)]
pub enum TakeBackOutcome {
    /// The run has ended, and its message is superseded.
    TakenBack(EndedRun),
    /// A worker has begun the run, or another run has read the message.
    Begun,
    /// The owner has no such run.
    NotFound,
}

impl Storage {
    /// Ends a queued run without an attempt, and supersedes its message.
    pub async fn take_back(&self, owner: &str, run_id: Uuid) -> Result<TakeBackOutcome, Error> {
        let take_back = async |tx: &mut Tx| {
            if tx.fetch_optional::<(Uuid,)>(OWNED_RUN, args![run_id, owner]).await?.is_none() {
                return Ok(RollBack(TakeBackOutcome::NotFound));
            }
            let run = lock_run(tx, run_id).await?;
            let Some(run) = run.filter(|run| run.status == RunStatus::Queued && run.attempt == 0) else {
                return Ok(RollBack(TakeBackOutcome::Begun));
            };
            let ended = end_locked(tx, run, &Ending::Cancelled, ApprovalStatus::Cancelled).await?;
            supersede::turns_of(tx, vec![run_id], Uuid::now_v7()).await?;
            Ok(Commit(TakeBackOutcome::TakenBack(ended)))
        };
        self.database.transact("take a message back", take_back).await
    }

    /// Does what `request_cancel` does, and supersedes the run's message and its answer. A run that has ended keeps both.
    pub async fn roll_back(&self, owner: &str, run_id: Uuid) -> Result<CancelOutcome, Error> {
        let roll_back = async |tx: &mut Tx| {
            let outcome = cancel(tx, owner, run_id).await?;
            if let CancelOutcome::Ended(_) | CancelOutcome::Requested = outcome {
                // Order matters: the message of an ended run is there now, and a running one stores its message superseded.
                supersede::turns_of(tx, vec![run_id], Uuid::now_v7()).await?;
            }
            Ok(committed(outcome))
        };
        self.database.transact("roll a run back", roll_back).await
    }
}
