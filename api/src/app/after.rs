//! Effects after a commit: events in the run log, and signals to workers. No request waits for them, because Redis may
//! be unavailable.

use std::{error::Error, sync::Arc};

use holdfast_shared::{
    ending::Ending,
    event::Event,
    run_log::{EventBatch, Gap},
    storage::{AnsweredRun, EndedRun},
};
use uuid::Uuid;

use super::App;

impl App {
    /// Publishes the ends of runs and signals cancels to workers, in tasks that no request waits for.
    pub(super) fn follow_up(self: &Arc<Self>, ended: Vec<EndedRun>, cancel_requested: Vec<Uuid>) {
        for run in ended {
            let app = Arc::clone(self);
            self.pending.spawn(async move { app.publish_end(&run).await });
        }
        for run_id in cancel_requested {
            let app = Arc::clone(self);
            self.pending.spawn(async move { app.enforce_cancel(run_id).await });
        }
    }

    /// Signals the cancel to the run's worker, and ends the run here if the worker does not within `cancel_grace`.
    async fn enforce_cancel(self: &Arc<Self>, run_id: Uuid) {
        let signal = async {
            if let Err(error) = self.queue.signal_cancel(run_id).await {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to signal a cancel; the worker reads it with its next lease renewal");
            }
        };
        let grace = tokio::time::sleep(self.config.cancel_grace);
        // The grace period includes the time for the signal.
        let _ = tokio::time::timeout(self.config.cancel_grace, signal).await;
        grace.await;
        match self.storage.end_run(run_id, &Ending::Cancelled).await {
            Ok(Some(ended)) => self.publish_end(&ended).await,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(run.id = %run_id, error = &error as &dyn Error, "failed to end a cancelled run; the expiry of its worker's lease ends it");
            }
        }
    }

    /// Publishes the end of a run that this process has ended.
    pub(super) async fn publish_end(self: &Arc<Self>, ended: &EndedRun) {
        metrics::counter!("holdfast_runs_ended_total", "status" => ended.status.as_str()).increment(1);
        if ended.closed.next_waits {
            self.wake();
        }
        self.publish(ended.run_id, &ended.closed.events).await;
        for above in &ended.closed.answered {
            self.publish_answered(above).await;
        }
        if ended.closed.has_children {
            self.cancel_children(ended.run_id).await;
        }
    }

    /// Publishes a run that waited, and wakes a worker if the run is queued again.
    pub(super) async fn publish_answered(self: &Arc<Self>, answered: &AnsweredRun) {
        if answered.queued {
            self.wake();
        }
        self.publish(answered.run_id, &answered.events).await;
    }

    /// Cancels the live runs below an ended run. A failure costs time only: the sweeper does it again.
    async fn cancel_children(self: &Arc<Self>, parent: Uuid) {
        match self.storage.cancel_children(parent).await {
            Ok((ended, requested)) => self.follow_up(ended, requested),
            Err(error) => {
                tracing::warn!(run.id = %parent, error = &error as &dyn Error, "failed to cancel the children of an ended run; the sweeper tries again");
            }
        }
    }

    /// Cancels the executors of a run whose steps were changed. A failure costs time only: the sweeper does it again.
    pub(super) async fn cancel_replaced(self: &Arc<Self>, parent: Uuid) {
        match self.storage.cancel_replaced(parent).await {
            Ok((ended, requested)) => self.follow_up(ended, requested),
            Err(error) => {
                tracing::warn!(run.id = %parent, error = &error as &dyn Error, "failed to cancel executors of changed steps; the sweeper tries again");
            }
        }
    }

    /// Appends archived events to the run log, so that clients receive them sooner.
    pub(super) async fn publish(&self, run_id: Uuid, events: &[Event]) {
        let Some(batch) = EventBatch::of(events) else { return };
        if let Err(error) = self.run_log.append(run_id, &batch, Gap::Archived).await {
            tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to append events to the run log; clients receive them later from the archive");
        }
    }

    pub(super) fn wake(self: &Arc<Self>) {
        let app = Arc::clone(self);
        self.pending.spawn(async move {
            if let Err(error) = app.queue.wake().await {
                tracing::debug!(
                    error = &error as &dyn Error,
                    "failed to wake a worker; workers find the run with their next poll"
                );
            }
        });
    }
}
