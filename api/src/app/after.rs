//! After a commit: what is shown, and whom the API wakes or tells. No request waits for it, because Redis may be away.

use std::{error::Error, sync::Arc};

use holdfast_shared::{
    ending::Ending,
    event::Event,
    run_log::{Batch, Gap},
    storage::EndedRun,
};
use uuid::Uuid;

use super::App;

impl App {
    /// What a commit brings with it: the ends that are to be shown, and the cancels that workers are to be told of. Nobody
    /// waits for it, because Redis may be away.
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

    /// Tells the run's worker, and ends the run here if the worker has not done so in time.
    async fn enforce_cancel(self: &Arc<Self>, run_id: Uuid) {
        let signal = async {
            if let Err(error) = self.queue.signal_cancel(run_id).await {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "the worker learns of a cancel with its next renewal");
            }
        };
        let grace = tokio::time::sleep(self.config.cancel_grace);
        // However long the signal takes, the grace is not longer for it.
        let _ = tokio::time::timeout(self.config.cancel_grace, signal).await;
        grace.await;
        match self.storage.end_run(run_id, &Ending::Cancelled).await {
            Ok(Some(ended)) => self.publish_end(&ended).await,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(run.id = %run_id, error = &error as &dyn Error, "a cancelled run is left to its worker's lease");
            }
        }
    }

    /// Shows the end of a run that was ended here.
    pub(super) async fn publish_end(self: &Arc<Self>, ended: &EndedRun) {
        metrics::counter!("holdfast_runs_ended_total", "status" => ended.status.as_str()).increment(1);
        if ended.next_waits {
            self.wake();
        }
        self.publish(ended.run_id, &ended.events).await;
    }

    /// Puts events that are in the archive into the log, which only makes them arrive sooner.
    pub(super) async fn publish(&self, run_id: Uuid, events: &[Event]) {
        let Some(batch) = Batch::of(events) else { return };
        if let Err(error) = self.run_log.append(run_id, &batch, Gap::Archived).await {
            tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "clients see what has happened a little later");
        }
    }

    pub(super) fn wake(self: &Arc<Self>) {
        let app = Arc::clone(self);
        self.pending.spawn(async move {
            if let Err(error) = app.queue.wake().await {
                tracing::debug!(error = &error as &dyn Error, "workers find the run with their next look");
            }
        });
    }
}
