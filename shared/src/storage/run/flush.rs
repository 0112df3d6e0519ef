//! FLUSH: how the holder of a claim makes events durable.
//!
//! A holder repeats FLUSH, FINISH and LEAVE after a lost answer. Each finds its own work by [`RunStateRow::has_written`],
//! before it looks at the status, because a finished run is no longer `running`.

use std::time::Duration;

use sqlx::FromRow;
use uuid::Uuid;

use super::{ArchiveChunk, Claim, attempt::held, chunk::writes_of, plain_flush::PlainFlush, tree::fit};
use crate::{
    event_id::EventId,
    run::RunStatus,
    storage::{
        Error, Storage,
        sql::{Commit, FencedWrites, RollBack, Spare, Statement, Tx, args, statements},
    },
};

/// Longest wait for a group. One slow connection must not delay the flushes of all runs.
const GROUP_WAIT: Duration = Duration::from_secs(2);

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

/// The state in the run's row.
#[derive(FromRow)]
pub struct RunStateRow {
    #[sqlx(try_from = "String")]
    pub status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    pub cancel_requested: bool,
}

statements! {
    /// Records the archived events of a held run, and extends its lease.
    EXTEND = concat!("
        update agent_runs
        set archived_to = $3,
            lease_until = {after:$4},
            checkpoint = coalesce($5, checkpoint),
            usage = coalesce($6, usage),
            finish_reason = coalesce($8, finish_reason),
            model = coalesce($9, model),
            crashes = case when $7 then 0 else crashes end,
            probation = case when $7 then null else probation end
        where ", held!(), " and archived_to < $3
        returning id
    "),
    /// Locks a run, and returns its state.
    LOCK_STATE = "
        select status, attempt, archived_to, cancel_requested_at is not null as cancel_requested
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Returns the state of a run.
    STATE = "
        select status, attempt, archived_to, cancel_requested_at is not null as cancel_requested
        from agent_runs
        where id = $1
    ",
}

impl Storage {
    /// Archives the next events of the run and extends its lease: with other runs that are flushed at this moment, or alone.
    pub async fn flush(&self, claim: &Claim, chunk: &ArchiveChunk, lease: Duration) -> Result<FlushOutcome, Error> {
        let grouped = self.groups.as_ref().zip(PlainFlush::new(claim, chunk, lease));
        let Some((groups, flush)) = grouped else { return self.flush_alone(claim, chunk, lease).await };
        let Some(_write) = groups.flushes.begin_alone() else {
            if let Ok(Ok(Some(()))) = tokio::time::timeout(GROUP_WAIT, groups.flushes.write(flush)).await {
                return Ok(FlushOutcome::Durable);
            }
            // Fenced, locked, refused, late or lost: the run's own write finds out, and costs no other run.
            return self.flush_alone(claim, chunk, lease).await;
        };
        self.flush_alone(claim, chunk, lease).await
    }

    async fn flush_alone(&self, claim: &Claim, chunk: &ArchiveChunk, lease: Duration) -> Result<FlushOutcome, Error> {
        const DOING: &str = "archive events of a run";
        if !chunk.progress.children.is_empty() {
            return match self.flush_with_children(claim, chunk, lease, Spare::Together).await {
                Err(error) if error.refuses_row() => self.flush_with_children(claim, chunk, lease, Spare::Apart).await,
                flushed => flushed,
            };
        }
        let written =
            self.database.write_without_refused_spares::<(Uuid,)>(DOING, || extension(claim, chunk, lease)).await?;
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

    /// Archives events that start children, as far as the tree has room for them. The outcome of a refused one waits for LEAVE,
    /// as that of a child that ends early.
    async fn flush_with_children(
        &self,
        claim: &Claim,
        chunk: &ArchiveChunk,
        lease: Duration,
        spare: Spare,
    ) -> Result<FlushOutcome, Error> {
        let flush = async |tx: &mut Tx| {
            match lock(tx, claim.run_id).await? {
                Some(row) if row.has_written(claim, chunk.last) => return Ok(RollBack(FlushOutcome::Durable)),
                Some(row) if row.is_mine(claim) => {}
                _ => return Ok(RollBack(FlushOutcome::Fenced)),
            }
            let (fitting, refused) = fit(tx, claim.run_id, chunk).await?;
            let written = tx.write_spares::<(Uuid,)>(extension(claim, &fitting, lease), spare).await?;
            for child in &refused {
                child.store(tx, claim.run_id, false).await?;
            }
            let Some(refusal) = &written.refused else { return Ok(Commit(FlushOutcome::Durable)) };
            log_refused_checkpoint(claim.run_id, refusal);
            Ok(Commit(FlushOutcome::WithoutCheckpoint))
        };
        self.database.transact("archive events that start children", flush).await
    }

    /// Returns the run's row. An owner's erasure may have removed it, and a failover may have lost it.
    pub async fn look(&self, doing: &'static str, run_id: Uuid) -> Result<Option<RunStateRow>, Error> {
        self.database.fetch_optional(doing, STATE, args![run_id]).await
    }
}

/// Locks the run of a claim, and returns its state.
pub async fn lock(tx: &mut Tx, run_id: Uuid) -> Result<Option<RunStateRow>, Error> {
    tx.fetch_optional(LOCK_STATE, args![run_id]).await
}

/// Returns the writes of a flush.
fn extension(claim: &Claim, chunk: &ArchiveChunk, lease: Duration) -> FencedWrites {
    let progress = &chunk.progress;
    let args = args![
        claim.run_id,
        claim.attempt,
        chunk.last,
        lease,
        progress.resume_at.map(EventId::packed),
        progress.usage_json(),
        progress.step_completed,
        progress.finish_text(),
        progress.model.clone()
    ];
    FencedWrites::new(Statement::new(EXTEND, args), writes_of(claim.run_id, chunk))
}

impl RunStateRow {
    pub fn is_mine(&self, claim: &Claim) -> bool {
        self.attempt == i64::from(claim.attempt) && self.status == RunStatus::Running
    }

    /// Returns whether this attempt's events up to `last` are durable, whatever the status is.
    pub fn has_written(&self, claim: &Claim, last: EventId) -> bool {
        self.attempt == i64::from(claim.attempt) && self.archived_to >= last
    }
}

/// Logs a missing checkpoint once. The run continues, and a later fork begins at the checkpoint before.
pub fn log_refused_checkpoint(run_id: Uuid, refusal: &Error) {
    tracing::warn!(run.id = %run_id, error = refusal as &dyn std::error::Error, "failed to store a checkpoint; the run continues without it");
}
