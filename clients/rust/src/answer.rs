//! The text of an answer, from its events.

use crate::{
    event::{Event, EventId},
    wire::RunEvent,
};

/// Folds events to the answer's text. After a worker's death, an event's `base` takes back later pieces.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pieces: Vec<(EventId, String)>,
}

impl Answer {
    pub fn apply(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.pieces.retain(|(id, _)| *id <= base);
        }
        if let RunEvent::MessageDelta(delta) = &event.body {
            self.pieces.push((event.id, delta.text.clone()));
        }
    }

    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}
