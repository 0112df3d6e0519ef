//! The snapshot of a run: its log or archive, read page by page and folded.

use holdfast_shared::{event::Event, event_id::EventId, snapshot::Folding};
use uuid::Uuid;

use super::Relay;
use crate::problem::Problem;

/// A run's log up to its end or its newest event, folded.
#[derive(Default)]
pub struct Folded {
    pub folding: Folding,
    /// The newest event that is folded.
    pub last: EventId,
    /// When that was written, in ms since the Unix epoch.
    pub at_ms: i64,
    /// The event with which the run has ended; it is not folded.
    pub end: Option<Event>,
}

impl Folded {
    /// Folds the end too.
    pub fn with_its_end(mut self) -> Self {
        if let Some(end) = self.end.take() {
            self.fold(&end);
        }
        self
    }

    fn fold(&mut self, event: &Event) {
        self.folding.push(event);
        self.last = event.id;
        self.at_ms = event.at_ms;
    }
}

impl Relay {
    /// Reads and folds what a run has so far.
    pub async fn fold(&self, run_id: Uuid) -> Result<Folded, Problem> {
        let mut folded = Folded::default();
        loop {
            let events = self.page(run_id, folded.last).await?;
            if events.is_empty() {
                return Ok(folded);
            }
            for event in events {
                if event.is_terminal() {
                    return Ok(Folded { end: Some(event), ..folded });
                }
                folded.fold(&event);
            }
        }
    }
}
