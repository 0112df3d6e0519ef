//! CANCEL: the immediate effect of an owner's request to stop a run.

use uuid::Uuid;

use super::{EndedRun, attempt::lock_run, end::end_locked};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    run::RunStatus,
    storage::{
        Error, Storage,
        sql::{Commit, RollBack, Settle, Tx, args, statements},
    },
};

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

statements! {
    /// Returns the run, if it is this owner's.
    OWNED_RUN = "
        select id
        from agent_runs
        where id = $1 and owner_id = $2
    ",
    /// Requests that the holder ends its run.
    REQUEST_END = "
        update agent_runs
        set cancel_requested_at = coalesce(cancel_requested_at, {now})
        where id = $1
    ",
}

impl Storage {
    /// Ends a queued or waiting run, and requests the end of a running one.
    pub async fn request_cancel(&self, owner: &str, run_id: Uuid) -> Result<CancelOutcome, Error> {
        let cancel = async |tx: &mut Tx| Ok(committed(cancel(tx, owner, run_id).await?));
        self.database.transact("cancel a run", cancel).await
    }
}

/// Cancels the owner's run in the transaction.
pub async fn cancel(tx: &mut Tx, owner: &str, run_id: Uuid) -> Result<CancelOutcome, Error> {
    if tx.fetch_optional::<(Uuid,)>(OWNED_RUN, args![run_id, owner]).await?.is_none() {
        return Ok(CancelOutcome::NotFound);
    }
    let Some(run) = lock_run(tx, run_id).await? else { return Ok(CancelOutcome::NotFound) };
    if run.status.is_terminal() {
        return Ok(CancelOutcome::Over);
    }
    if run.status == RunStatus::Running {
        request_end(tx, run_id).await?;
        return Ok(CancelOutcome::Requested);
    }
    let ended = end_locked(tx, run, &Ending::Cancelled, ApprovalStatus::Cancelled).await?;
    Ok(CancelOutcome::Ended(ended))
}

/// Commits the transaction if it has an effect.
pub fn committed(outcome: CancelOutcome) -> Settle<CancelOutcome> {
    match outcome {
        CancelOutcome::Ended(_) | CancelOutcome::Requested => Commit(outcome),
        CancelOutcome::Over | CancelOutcome::NotFound => RollBack(outcome),
    }
}

/// Requests that the holder ends its run.
pub async fn request_end(tx: &mut Tx, run_id: Uuid) -> Result<(), Error> {
    tx.execute(REQUEST_END, args![run_id]).await.map(drop)
}
