//! The effects of a run's end on the runs above and below it.

use std::error::Error;

use holdfast_shared::storage::{self, AnsweredRun, Closed, EndedRun};
use uuid::Uuid;

use crate::{WorkerState, sweeper::show};

/// Publishes the answers to the runs above, and cancels the run's children.
pub async fn follow_up(shared: &WorkerState, run_id: Uuid, closed: &Closed) {
    for above in &closed.answered {
        publish(shared, above).await;
    }
    if closed.has_children {
        cancel_children(shared, run_id).await;
    }
}

/// Publishes a run that a child or a human has answered.
pub async fn publish(shared: &WorkerState, run: &AnsweredRun) {
    if run.queued {
        let _ = shared.worker.queue.wake().await;
    }
    show(shared, run.run_id, &run.events).await;
}

/// Cancels the live runs below an ended run.
pub async fn cancel_children(shared: &WorkerState, parent: Uuid) {
    follow_cancels(shared, parent, shared.worker.storage.cancel_children(parent).await).await;
}

/// Cancels the executors of a run whose steps were changed.
pub async fn cancel_replaced(shared: &WorkerState, parent: Uuid) {
    follow_cancels(shared, parent, shared.worker.storage.cancel_replaced(parent).await).await;
}

/// Publishes the ended runs, and signals the workers of the others. A failure costs time only: the sweeper does it again.
async fn follow_cancels(
    shared: &WorkerState,
    parent: Uuid,
    cancelled: Result<(Vec<EndedRun>, Vec<Uuid>), storage::Error>,
) {
    match cancelled {
        Ok((ended, requested)) => {
            for run in ended {
                metrics::counter!("holdfast_runs_ended_total", "status" => run.status.as_str()).increment(1);
                show(shared, run.run_id, &run.closed.events).await;
                for above in &run.closed.answered {
                    publish(shared, above).await;
                }
            }
            for run_id in requested {
                if let Err(error) = shared.worker.queue.signal_cancel(run_id).await {
                    tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to signal a cancel; the worker reads it with its next lease renewal");
                }
            }
        }
        Err(error) => {
            tracing::warn!(run.id = %parent, error = &error as &dyn Error, "failed to cancel runs below a run; the sweeper tries again")
        }
    }
}
