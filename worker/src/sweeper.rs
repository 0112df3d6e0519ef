//! The sweeper: ends the runs that only can end, and removes what is past its time.
//!
//! Runs that can go on are not its concern: they are claimed again, like queued ones.

use std::{error::Error, sync::Arc};

use holdfast_shared::run_log::{Batch, Gap};
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// Sweeps until `stop`.
pub async fn sweep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(shared.worker.config.sweep);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => sweep_once(&shared).await,
        }
    }
}

async fn sweep_once(shared: &Shared) {
    let worker = &shared.worker;
    match worker.storage.end_expired(worker.config.max_crashes).await {
        Ok(ended) => {
            for run in ended {
                metrics::counter!("holdfast_runs_ended_total", "status" => run.status.as_str()).increment(1);
                tracing::warn!(run.id = %run.run_id, run.attempt = run.attempt, "ended a run whose worker is gone");
                if run.next_waits {
                    let _ = worker.queue.wake().await;
                }
                // The events are in the archive; the log only makes them arrive sooner.
                if let Some(batch) = Batch::of(&run.events)
                    && let Err(error) = worker.run_log.append(run.run_id, &batch, Gap::Archived).await
                {
                    tracing::debug!(run.id = %run.run_id, error = &error as &dyn Error, "clients see the run's end a little later");
                }
            }
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "cannot look for runs whose worker is gone"),
    }
    match worker.storage.retire(worker.archive_retention).await {
        Ok(retired) if retired.runs + retired.conversations > 0 => {
            tracing::info!(runs = retired.runs, conversations = retired.conversations, "removed what is past its time");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = &error as &dyn Error, "cannot remove what is past its time"),
    }
}
