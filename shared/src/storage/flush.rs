//! FLUSH, FINISH and RELEASE: how the holder of a claim makes events durable, and how it releases the run.
//!
//! Each is idempotent: after a lost answer, the holder repeats the call, which finds its own work. It checks this
//! before the status, because a finished run is no longer `running`.

use std::time::Duration;

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    ArchiveChunk, Claim, Error, Storage,
    archive::writes_of,
    end::{Answer, RunEnd, leaves_message, lock_conversation, take_position, write_closing},
    sql::{Commit, RollBack, Tx, args},
    sql::{FencedWrites, Spare, Statement},
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    event::{ApprovalResolved, Event, EventBody},
    event_id::EventId,
    run::RunStatus,
};

/// The outcome of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushOutcome {
    /// The events and rows are stored.
    Durable,
    /// The database refused a checkpoint and stored the rest.
    WithoutCheckpoint,
    /// Another attempt holds the run, or it has ended. The worker drops its state and writes nothing more.
    Fenced,
}

/// The outcome of a finish.
#[derive(Debug)]
pub enum FinishOutcome {
    /// The run has ended. The caller publishes its last events, because they are committed.
    Ended {
        /// The closing events, in order.
        events: Vec<Event>,
        /// True if a run of the conversation was waiting for this end.
        next_waits: bool,
    },
    /// Another attempt holds the run, or it has ended.
    Fenced,
}

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

/// The state in the run's row.
#[derive(FromRow)]
struct RunStateRow {
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    cancel_requested: bool,
}

impl Storage {
    /// Archives the next events of the run and extends its lease.
    pub async fn flush(&self, claim: &Claim, chunk: &ArchiveChunk, lease: Duration) -> Result<FlushOutcome, Error> {
        const DOING: &str = "archive events of a run";
        let sql = "update agent_runs set archived_to = $3, lease_until = {after:$4}, checkpoint = coalesce($5, checkpoint), \
                   usage = coalesce($6, usage), finish_reason = coalesce($8, finish_reason), \
                   crashes = case when $7 then 0 else crashes end, \
                   probation = case when $7 then null else probation end \
                   where id = $1 and attempt = $2 and status = 'running' and archived_to < $3 returning id";
        let (progress, resume_at) = (&chunk.progress, chunk.progress.resume_at.map(EventId::packed));
        let fenced = || {
            let args = args![
                claim.run_id,
                claim.attempt,
                chunk.last,
                lease,
                resume_at,
                progress.usage_json(),
                progress.step_completed,
                progress.finish_text()
            ];
            FencedWrites::new(Statement::new(sql, args), writes_of(claim.run_id, chunk))
        };
        let written = self.database.write_without_refused_spares::<(Uuid,)>(DOING, fenced).await?;
        if let Some(refusal) = &written.refused {
            log_refused_checkpoint(claim.run_id, refusal);
            return Ok(FlushOutcome::WithoutCheckpoint);
        }
        let is_written = if written.rows.is_empty() {
            self.look(DOING, claim.run_id).await?.is_some_and(|row| row.has_written(claim, chunk.last))
        } else {
            true
        };
        Ok(if is_written { FlushOutcome::Durable } else { FlushOutcome::Fenced })
    }

    /// Ends the run: archives the tail and the closing events, and stores the answer. `last` is the attempt's newest
    /// event, and `tail` its events that are not archived yet.
    pub async fn finish(
        &self,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        answer: &Answer,
        ending: &Ending,
    ) -> Result<FinishOutcome, Error> {
        const DOING: &str = "finish a run";
        let closing = RunEnd {
            run_id: claim.run_id,
            conversation_id: claim.conversation_id,
            output_message_id: claim.output_message_id,
            first: last.next(),
            base: None,
            before: tail.map(withdrawn_questions).unwrap_or_default(),
            tail,
            position: None,
            answer,
            ending,
        };
        if let Some(events) = self.complete(claim, &closing).await? {
            return Ok(FinishOutcome::Ended { events, next_waits: false });
        }
        let closed = match self.close(DOING, &closing, Spare::Together).await {
            Err(error) if error.refuses_row() && tail.is_some() => self.close(DOING, &closing, Spare::Apart).await,
            closed => closed,
        };
        if let Some((events, next_waits)) = closed? {
            return Ok(FinishOutcome::Ended { events, next_waits });
        }
        let row = self.look(DOING, claim.run_id).await?;
        if row.is_some_and(|row| row.status.is_terminal() && row.has_written(claim, last.next())) {
            // The repeated call cannot tell whether a run waits. One unneeded wake-up does no harm.
            Ok(FinishOutcome::Ended { events: self.events_after(claim.run_id, last).await?, next_waits: true })
        } else {
            Ok(FinishOutcome::Fenced)
        }
    }

    /// Ends the run in a transaction that reads the conversation too.
    async fn close(
        &self,
        doing: &'static str,
        closing: &RunEnd<'_>,
        spare: Spare,
    ) -> Result<Option<(Vec<Event>, bool)>, Error> {
        let close = async |tx: &mut Tx| {
            let position = if leaves_message(closing.ending, &closing.answer.text) {
                let (run_id, bytes) = (Some(closing.run_id), closing.answer.bytes());
                let position = take_position(tx, closing.conversation_id, run_id, bytes).await?;
                if position.is_none() {
                    // The conversation is gone, and so is the run.
                    return Ok(RollBack(None));
                }
                position
            } else {
                lock_conversation(tx, closing.conversation_id).await?;
                None
            };
            let closed = write_closing(tx, RunEnd { position, ..closing.clone() }, spare).await?;
            Ok(if closed.is_some() { Commit(closed) } else { RollBack(None) })
        };
        self.database.transact(doing, close).await
    }

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
        let sql = "update agent_runs set status = $3, attempt_reason = case when $3 = 'queued' then 'drain' else attempt_reason end, \
                   waiting_since = case when $3 = 'waiting' then {now} end, holder = null, lease_until = null, executing = false, \
                   archived_to = $2, checkpoint = coalesce($4, checkpoint), usage = coalesce($5, usage), \
                   finish_reason = coalesce($7, finish_reason), crashes = case when $6 then 0 else crashes end, \
                   probation = case when $6 then null else probation end where id = $1 returning id";
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
                progress.finish_text()
            ];
            let writes = tail.map(|tail| writes_of(claim.run_id, tail)).unwrap_or_default();
            let fenced = FencedWrites::new(Statement::new(sql, args), writes);
            let written = tx.write_spares::<(Uuid,)>(fenced, spare).await?;
            if let Some(refusal) = &written.refused {
                log_refused_checkpoint(claim.run_id, refusal);
            }
            Ok(Commit(ReleaseOutcome::Released))
        };
        self.database.transact(doing, try_release).await
    }

    /// Returns the run's row. An owner's erasure may have removed it, and a failover may have lost it.
    async fn look(&self, doing: &'static str, run_id: Uuid) -> Result<Option<RunStateRow>, Error> {
        let sql = "select status, attempt, archived_to, cancel_requested_at is not null as cancel_requested from agent_runs where id = $1";
        self.database.fetch_optional(doing, sql, args![run_id]).await
    }

    async fn events_after(&self, run_id: Uuid, after: EventId) -> Result<Vec<Event>, Error> {
        let (mut cursor, mut events) = (after, Vec::new());
        // One read returns one row of the archive, and the closing events may be in two.
        while let Some(archived) = self.read_archive(run_id, cursor).await? {
            let fresh = archived.events.into_iter().filter(|event| event.id > cursor);
            events.extend(fresh);
            match events.last().map(|event: &Event| event.id) {
                Some(last) if last > cursor => cursor = last,
                _ => break,
            }
        }
        Ok(events)
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

impl RunStateRow {
    fn is_mine(&self, claim: &Claim) -> bool {
        self.attempt == i64::from(claim.attempt) && self.status == RunStatus::Running
    }

    /// Returns whether this attempt's events up to `last` are durable, whatever the status is.
    fn has_written(&self, claim: &Claim, last: EventId) -> bool {
        self.attempt == i64::from(claim.attempt) && self.archived_to >= last
    }
}

/// Returns events that settle the tail's questions, because no caller can answer them after the end.
fn withdrawn_questions(tail: &ArchiveChunk) -> Vec<EventBody<'static>> {
    let settled = tail.progress.approvals.iter().map(|approval| {
        EventBody::ApprovalResolved(ApprovalResolved {
            base: None,
            approval_id: approval.id,
            call_id: approval.call_id.clone().into(),
            decision: ApprovalStatus::Cancelled,
            reason: None,
            edited_input: None,
        })
    });
    settled.collect()
}

/// Logs a missing checkpoint once. The run continues, and a later fork begins at the checkpoint before.
pub(super) fn log_refused_checkpoint(run_id: Uuid, refusal: &Error) {
    tracing::warn!(run.id = %run_id, error = refusal as &dyn std::error::Error, "failed to store a checkpoint; the run continues without it");
}

async fn lock(tx: &mut Tx, run_id: Uuid) -> Result<Option<RunStateRow>, Error> {
    let sql = "select status, attempt, archived_to, cancel_requested_at is not null as cancel_requested from agent_runs where id = $1 {for update}";
    tx.fetch_optional(sql, args![run_id]).await
}
