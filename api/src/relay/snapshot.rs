//! The snapshot of a run: reads its log or archive page by page, and folds it.

use holdfast_shared::{event::Event, event_id::EventId, snapshot::SnapshotBuilder};
use uuid::Uuid;

use super::Relay;
use crate::problem::Problem;

/// The fold of a run's log up to its end or its newest event.
#[derive(Default)]
pub struct RunFold {
    pub builder: SnapshotBuilder,
    /// The newest folded event.
    pub last: EventId,
    /// When the newest folded event was written, in ms since the Unix epoch.
    pub at_ms: i64,
    /// The event that ended the run; it is not folded.
    pub end: Option<Event>,
}

impl RunFold {
    /// Folds the end, too.
    pub fn including_end(mut self) -> Self {
        if let Some(end) = self.end.take() {
            self.fold(&end);
        }
        self
    }

    fn fold(&mut self, event: &Event) {
        self.builder.push(event);
        self.last = event.id;
        self.at_ms = event.at_ms;
    }
}

impl Relay {
    /// Reads and folds the events of a run, except the event that ends it.
    pub async fn fold(&self, run_id: Uuid) -> Result<RunFold, Problem> {
        let mut run_fold = RunFold::default();
        loop {
            let events = self.page(run_id, run_fold.last).await?;
            if events.is_empty() {
                return Ok(run_fold);
            }
            for event in events {
                if event.is_terminal() {
                    return Ok(RunFold { end: Some(event), ..run_fold });
                }
                run_fold.fold(&event);
            }
        }
    }
}
