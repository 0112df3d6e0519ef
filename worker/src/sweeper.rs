//! The sweeper: ends runs that cannot continue, answers questions that have expired, and removes data past its
//! retention.
//!
//! Runs that can continue are claimed again like queued ones, without the sweeper. Each of its sweeps has its own intervals, so
//! a large removal holds up no end of a run.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use holdfast_shared::{
    event::Event,
    run::RunStatus,
    run_log::{EventBatch, Gap},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{WorkerState, executor, family, forgotten, memories, missing_vectors};

/// Sweeps at each interval until `stop`.
pub async fn sweep(shared: Arc<WorkerState>, stop: CancellationToken) {
    let interval = shared.worker.config.sweep;
    let sweeps = async {
        tokio::join!(
            at_each(interval, || end_runs(&shared)),
            at_each(interval, || end_waits(&shared)),
            at_each(interval, || missing_vectors::sweep(&shared)),
            at_each(interval, || executor::sweep_due_summaries(&shared)),
            at_each(interval, || remove(&shared)),
        )
    };
    // A sweep under way ends too, because it would wait for a database that is away. It may stop after any of its
    // transactions, as with the process.
    stop.run_until_cancelled(sweeps).await;
}

/// Sweeps at each interval for ever.
pub async fn at_each<F: Future<Output = ()>>(interval: Duration, sweep: impl Fn() -> F) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sweep().await;
    }
}

/// Ends runs whose workers are gone, and those whose families are.
async fn end_runs(shared: &WorkerState) {
    let worker = &shared.worker;
    match worker.storage.end_expired(&shared.claim_terms()).await {
        Ok(ended) => {
            for run in ended {
                metrics::counter!("holdfast_runs_ended_total", "status" => run.status.as_str()).increment(1);
                if run.status == RunStatus::Failed {
                    metrics::counter!("holdfast_run_failures_total", "code" => "max_attempts").increment(1);
                }
                tracing::warn!(run.id = %run.run_id, run.attempt = run.attempt, "ended a run whose worker is gone");
                if run.closed.next_waits {
                    let _ = worker.queue.wake().await;
                }
                show(shared, run.run_id, &run.closed.events).await;
                family::follow_up(shared, run.run_id, &run.closed).await;
            }
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to end runs whose worker is gone"),
    }
    sweep_families(shared).await;
}

/// Ends delays whose time has come, and questions that have expired.
async fn end_waits(shared: &WorkerState) {
    let worker = &shared.worker;
    match worker.storage.end_delays(worker.config.sweep).await {
        Ok(0) => {}
        Ok(_) => {
            let _ = worker.queue.wake().await;
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to end the delay of runs"),
    }
    match worker.storage.expire_questions().await {
        Ok(answered) => {
            for run in answered {
                tracing::info!(run.id = %run.run_id, "the question of a run expired");
                family::publish(shared, &run).await;
            }
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to expire unanswered questions")
        }
    }
}

/// Removes data past its retention, each kind in its part of the interval, and then the log of writes that still has it.
async fn remove(shared: &WorkerState) {
    let worker = &shared.worker;
    let share = worker.config.sweep / 2;
    retire(shared).await;
    memories::sweep(shared, Instant::now() + share).await;
    forgotten::forget(shared, Instant::now() + share).await;
    match worker.storage.truncate_log().await {
        Ok(true) => {}
        Ok(false) => tracing::debug!("a reader still needs the log of writes; the next sweep truncates it"),
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to truncate the log of writes"),
    }
}

/// Removes events past their retention, and deleted conversations with the logs of their runs.
async fn retire(shared: &WorkerState) {
    let worker = &shared.worker;
    let retired = match worker.storage.retire(worker.archive_retention, worker.config.sweep).await {
        Ok(retired) => retired,
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to remove data past its retention");
            return;
        }
    };
    if let Err(error) = worker.run_log.remove(&retired.removed_runs).await {
        tracing::debug!(
            error = &error as &dyn Error,
            "failed to remove the logs of deleted runs; they expire by themselves"
        );
    }
    if retired.runs + retired.conversations > 0 {
        tracing::info!(runs = retired.runs, conversations = retired.conversations, "removed data past its retention");
    }
}

/// Cancels children of ended runs and executors of changed steps, where no other process did.
async fn sweep_families(shared: &WorkerState) {
    match shared.worker.storage.parents_of_orphans().await {
        Ok(parents) => {
            for parent in parents {
                family::cancel_children(shared, parent).await;
            }
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to find live children of ended runs"),
    }
    match shared.worker.storage.parents_of_replaced().await {
        Ok(parents) => {
            for parent in parents {
                family::cancel_replaced(shared, parent).await;
            }
        }
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to find executors of changed steps"),
    }
}

/// Appends archived events to the run log, so that clients receive them sooner.
pub async fn show(shared: &WorkerState, run_id: Uuid, events: &[Event]) {
    if let Some(batch) = EventBatch::of(events)
        && let Err(error) = shared.worker.run_log.append(run_id, &batch, Gap::Archived).await
    {
        tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to append swept events; clients receive them from the archive");
    }
}
