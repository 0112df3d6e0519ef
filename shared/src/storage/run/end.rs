//! The end of a run by a writer without a claim.

use uuid::Uuid;

use super::{
    attempt::{LockedRun, TakenAttempt, lock_run, lock_run_in_conversation, take_attempt},
    closing::{Answer, Closed, RunEnd, write_closing},
    durable::durable_answer,
    forwarded,
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    event::{ApprovalResolved, EventBody},
    event_id::EventId,
    run::RunStatus,
    storable::storable,
    storage::{
        Error, Storage,
        sql::{Commit, RollBack, Spare, Tx, args, statements},
    },
};

/// A run that a writer without a claim ended. The caller publishes its last events, because they are committed.
#[derive(Debug, Clone)]
pub struct EndedRun {
    /// The ended run.
    pub run_id: Uuid,
    /// The attempt of the closing events.
    pub attempt: u32,
    /// The terminal status.
    pub status: RunStatus,
    /// The effects of the end.
    pub closed: Closed,
}

statements! {
    /// Settles the open questions of a run.
    SETTLE_APPROVALS = "
        update agent_run_approvals
        set status = $2, decided_at = {now}
        where run_id = $1 and status = 'pending'
        returning id, call_id
    ",
}

impl Storage {
    /// Ends an unfinished run, with or without a holder. It takes an attempt, which fences the holder. `None` if the
    /// run has ended or is gone.
    pub async fn end_run(&self, run_id: Uuid, ending: &Ending) -> Result<Option<EndedRun>, Error> {
        self.end_when(run_id, |_| Some(ending.clone())).await
    }

    /// Ends an unfinished run as the function says, which sees the locked run.
    pub async fn end_when(
        &self,
        run_id: Uuid,
        ending: impl FnOnce(&LockedRun) -> Option<Ending>,
    ) -> Result<Option<EndedRun>, Error> {
        let end = async |tx: &mut Tx| {
            let run = lock_run(tx, run_id).await?.filter(|run| !run.status.is_terminal());
            match run.and_then(|run| ending(&run).map(|ending| (run, ending))) {
                Some((run, ending)) => Ok(Commit(Some(end_locked(tx, run, &ending, ApprovalStatus::Cancelled).await?))),
                None => Ok(RollBack(None)),
            }
        };
        self.database.transact("end a run", end).await
    }
}

/// Cancels the run, in a transaction that has locked the conversation. It settles the run's open questions as
/// `unanswered`. `None` if the run has ended or is gone.
pub async fn cancel_in_conversation(
    tx: &mut Tx,
    run_id: Uuid,
    unanswered: ApprovalStatus,
) -> Result<Option<EndedRun>, Error> {
    match lock_run_in_conversation(tx, run_id).await? {
        Some(run) if !run.status.is_terminal() => Ok(Some(end_locked(tx, run, &Ending::Cancelled, unanswered).await?)),
        _ => Ok(None),
    }
}

/// Ends a locked run with its archived text, and settles its open questions as `unanswered`.
pub async fn end_locked(
    tx: &mut Tx,
    run: LockedRun,
    ending: &Ending,
    unanswered: ApprovalStatus,
) -> Result<EndedRun, Error> {
    let end = async |tx: &mut Tx, attempt: TakenAttempt| {
        let run = &attempt.run;
        let (text, parts) = durable_answer(tx, run.id, run.stream).await?;
        let usage = run.usage.as_ref().map(|usage| usage.0).unwrap_or_default();
        let answer = Answer { text: storable(text), parts, usage, finish_reason: None };
        let before = match run.status {
            RunStatus::Waiting => settle_approvals(tx, run.id, run.archived_to, unanswered).await?,
            _ => Vec::new(),
        };
        let closing = RunEnd {
            run_id: run.id,
            conversation_id: run.conversation_id,
            output_message_id: run.output_message_id,
            first: attempt.first_event(),
            base: before.is_empty().then_some(run.archived_to),
            before,
            tail: None,
            position: None,
            answer: &answer,
            ending,
        };
        let closed = write_closing(tx, closing, Spare::Together).await?;
        let closed = closed.ok_or_else(|| tx.no_row())?;
        Ok(EndedRun { run_id: run.id, attempt: attempt.number, status: ending.status(), closed })
    };
    take_attempt(tx, run, end).await
}

/// Settles the open questions of a waiting run. Returns the events that report this, the first with `base`.
async fn settle_approvals(
    tx: &mut Tx,
    run_id: Uuid,
    base: EventId,
    unanswered: ApprovalStatus,
) -> Result<Vec<EventBody<'static>>, Error> {
    let settled = tx.fetch_all::<(Uuid, String)>(SETTLE_APPROVALS, args![run_id, unanswered.as_str()]).await?;
    let own = settled.into_iter().map(|(approval_id, call_id)| ApprovalResolved {
        base: None,
        approval_id,
        call_id: call_id.into(),
        child_run_id: None,
        decision: unanswered,
        reason: None,
        edited_input: None,
    });
    let mut resolved: Vec<_> = own.collect();
    resolved.extend(forwarded::unanswered(tx, run_id, unanswered).await?);
    Ok(forwarded::answers(resolved, base))
}
