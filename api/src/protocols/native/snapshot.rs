//! The snapshot of a run: the fold of its log so far.

use holdfast_shared::{
    event::Event,
    event_id::EventId,
    snapshot::{Snapshot, SnapshotBuilder},
};
use uuid::Uuid;

use super::wire as native;
use crate::{app::App, problem::Problem};

/// The fold of a run's log up to its newest event.
#[derive(Default)]
pub struct RunFold {
    builder: SnapshotBuilder,
    /// The newest folded event.
    pub last: EventId,
    /// When the newest folded event was written, in ms since the Unix epoch.
    at_ms: i64,
}

impl RunFold {
    /// Folds the events of a run, except the one that ends it.
    pub async fn before_end(app: &App, run_id: Uuid) -> Result<Self, Problem> {
        Self::read(app, run_id, |event| !event.is_terminal()).await
    }

    /// Folds all events of a run.
    pub async fn to_end(app: &App, run_id: Uuid) -> Result<Self, Problem> {
        Self::read(app, run_id, |_| true).await
    }

    async fn read(app: &App, run_id: Uuid, includes: impl Fn(&Event) -> bool) -> Result<Self, Problem> {
        let (mut fold, mut log) = (Self::default(), app.relay().pages(run_id, EventId::ORIGIN));
        while let Some(events) = log.next().await? {
            for event in events.iter().filter(|event| includes(event)) {
                fold.builder.push(event);
                (fold.last, fold.at_ms) = (event.id, event.at_ms);
            }
        }
        Ok(fold)
    }

    /// Returns the frame of the native wire.
    pub fn into_frame(self, run_id: Uuid) -> Vec<u8> {
        let mut frame = Vec::new();
        native::snapshot_frame(&mut frame, run_id, self.last, self.at_ms, &self.builder.into_snapshot());
        frame
    }

    pub fn into_snapshot(self) -> Snapshot {
        self.builder.into_snapshot()
    }
}
