//! The sweeper: ends the runs that only can end, answers in the place of people who did not, and removes what is past its
//! time.
//!
//! Runs that can go on are not its concern: they are claimed again, like queued ones.

use std::{error::Error, sync::Arc};

use holdfast_shared::{
    event::Event,
    run::RunStatus,
    run_log::{Batch, Gap},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{WorkerState, forgotten};

/// Sweeps until `stop`.
pub async fn sweep(shared: Arc<WorkerState>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(shared.worker.config.sweep);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => sweep_once(&shared).await,
        }
    }
}

async fn sweep_once(shared: &WorkerState) {
    let worker = &shared.worker;
    match worker.storage.end_expired(&shared.claim_terms()).await {
        Ok(ended) => {
            for run in ended {
                metrics::counter!("holdfast_runs_ended_total", "status" => run.status.as_str()).increment(1);
                if run.status == RunStatus::Failed {
                    metrics::counter!("holdfast_run_failures_total", "code" => "max_attempts").increment(1);
                }
                tracing::warn!(run.id = %run.run_id, run.attempt = run.attempt, "ended a run whose worker is gone");
                if run.next_waits {
                    let _ = worker.queue.wake().await;
                }
                show(shared, run.run_id, &run.events).await;
            }
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "cannot look for runs whose worker is gone"),
    }
    match worker.storage.expire_questions().await {
        Ok(answered) => {
            for run in answered {
                tracing::info!(run.id = %run.run_id, "a run was not answered in time");
                if run.queued {
                    let _ = worker.queue.wake().await;
                }
                show(shared, run.run_id, &[run.event]).await;
            }
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "cannot look for questions that nobody has answered")
        }
    }
    match worker.storage.retire(worker.archive_retention, worker.config.sweep).await {
        Ok(retired) if retired.runs + retired.conversations > 0 => {
            tracing::info!(runs = retired.runs, conversations = retired.conversations, "removed what is past its time");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = &error as &dyn Error, "cannot remove what is past its time"),
    }
    forgotten::forget(shared).await;
}

/// Puts events that are in the archive into the log, which only makes them arrive sooner.
pub async fn show(shared: &WorkerState, run_id: Uuid, events: &[Event]) {
    if let Some(batch) = Batch::of(events)
        && let Err(error) = shared.worker.run_log.append(run_id, &batch, Gap::Archived).await
    {
        tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "clients see what was swept a little later");
    }
}
