//! LEAVE: how the holder of a claim releases its run, for another worker or for an answer.

use uuid::Uuid;

use super::{
    ArchiveChunk, Claim,
    chunk::writes_of,
    flush::{RunStateRow, log_refused_checkpoint},
};
use crate::{
    event_id::EventId,
    run::RunStatus,
    storage::{
        Error, Storage,
        sql::{Commit, FencedWrites, RollBack, Spare, Statement, Tx, args, statements},
    },
};

/// The state of a run after its holder releases it without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The run returns to the queue, and another worker resumes it.
    Queued,
    /// The run waits for a human or a client, and no worker holds it.
    Waiting,
}

/// The outcome of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The holder has released the run.
    Released,
    /// A cancel was requested, so the holder must finish the run as cancelled.
    CancelRequested,
    /// Another attempt holds the run, or it has ended.
    Fenced,
}

statements! {
    /// Releases a locked run for another worker, or for an answer.
    RELEASE = "
        update agent_runs
        set status = $3,
            attempt_reason = case when $3 = 'queued' then 'drain' else attempt_reason end,
            waiting_since = case when $3 = 'waiting' then {now} end,
            holder = null,
            lease_until = null,
            executing = false,
            archived_to = $2,
            checkpoint = coalesce($4, checkpoint),
            usage = coalesce($5, usage),
            finish_reason = coalesce($7, finish_reason),
            model = coalesce($8, model),
            crashes = case when $6 then 0 else crashes end,
            probation = case when $6 then null else probation end
        where id = $1
        returning id
    ",
    /// Locks a run, and returns its state.
    LOCK_STATE = "
        select status, attempt, archived_to, cancel_requested_at is not null as cancel_requested
        from agent_runs
        where id = $1
        {for update}
    ",
}

impl Storage {
    /// Releases the run without charging a crash. Streamed events stay readable, and the next attempt resumes from the
    /// checkpoint.
    pub async fn release(
        &self,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        release: Release,
    ) -> Result<ReleaseOutcome, Error> {
        let doing = match release {
            Release::Queued => "hand a run over",
            Release::Waiting => "let a run wait for an answer",
        };
        match self.try_release(doing, claim, tail, last, release, Spare::Together).await {
            Err(error) if error.refuses_row() && tail.is_some() => {
                self.try_release(doing, claim, tail, last, release, Spare::Apart).await
            }
            outcome => outcome,
        }
    }

    async fn try_release(
        &self,
        doing: &'static str,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        release: Release,
        spare: Spare,
    ) -> Result<ReleaseOutcome, Error> {
        let try_release = async |tx: &mut Tx| {
            match lock(tx, claim.run_id).await? {
                Some(row) if row.is_mine(claim) && row.cancel_requested => {
                    return Ok(RollBack(ReleaseOutcome::CancelRequested));
                }
                Some(row) if row.is_mine(claim) => {}
                Some(row) if row.status == release.status() && row.has_written(claim, last) => {
                    return Ok(RollBack(ReleaseOutcome::Released));
                }
                _ => return Ok(RollBack(ReleaseOutcome::Fenced)),
            }
            let progress = tail.map(|tail| tail.progress.clone()).unwrap_or_default();
            let args = args![
                claim.run_id,
                last,
                release.status().as_str(),
                progress.resume_at.map(EventId::packed),
                progress.usage_json(),
                progress.step_completed,
                progress.finish_text(),
                progress.model.clone()
            ];
            let writes = tail.map(|tail| writes_of(claim.run_id, tail)).unwrap_or_default();
            let fenced = FencedWrites::new(Statement::new(RELEASE, args), writes);
            let written = tx.write_spares::<(Uuid,)>(fenced, spare).await?;
            if let Some(refusal) = &written.refused {
                log_refused_checkpoint(claim.run_id, refusal);
            }
            Ok(Commit(ReleaseOutcome::Released))
        };
        self.database.transact(doing, try_release).await
    }
}

impl Release {
    const fn status(self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Waiting => RunStatus::Waiting,
        }
    }
}

async fn lock(tx: &mut Tx, run_id: Uuid) -> Result<Option<RunStateRow>, Error> {
    tx.fetch_optional(LOCK_STATE, args![run_id]).await
}
