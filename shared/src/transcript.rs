//! The fold of a run's events into its answer: what a client that applied them all would show.

use crate::{
    event::{Event, MESSAGE_DELTA},
    event_id::EventId,
};

/// The text of a run so far, without what later attempts have superseded.
#[derive(Debug, Default)]
pub struct Transcript {
    text: String,
    /// Where in `text` each delta ends.
    ends: Vec<(EventId, usize)>,
}

impl Transcript {
    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        if event.kind() == MESSAGE_DELTA {
            #[derive(serde::Deserialize)]
            struct Delta {
                text: String,
            }
            if let Ok(delta) = serde_json::from_slice::<Delta>(event.payload()) {
                self.push_text(event.id, &delta.text);
            }
        }
    }

    /// Applies a delta whose text is at hand.
    pub fn push_text(&mut self, id: EventId, text: &str) {
        self.text.push_str(text);
        self.ends.push((id, self.text.len()));
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn into_text(self) -> String {
        self.text
    }

    /// Takes back what came after an event.
    pub fn supersede_after(&mut self, base: EventId) {
        let kept = self.ends.partition_point(|(id, _)| *id <= base);
        self.ends.truncate(kept);
        self.text.truncate(self.ends.last().map_or(0, |(_, end)| *end));
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::event::{AttemptReason, EventBody};

    #[test]
    fn a_new_attempt_drops_what_came_after_its_base() {
        let delta = |attempt, n, text: &str| {
            let body = EventBody::MessageDelta { message_id: Uuid::nil(), text: text.into() };
            Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &body)
        };
        let attempt = |attempt, base| {
            let body = EventBody::AttemptStarted {
                attempt,
                base,
                reason: AttemptReason::LeaseExpired,
                crashes: 1,
                max_crashes: 3,
            };
            Event::new(EventId::first_of(attempt), DateTime::UNIX_EPOCH, &body)
        };
        let mut transcript = Transcript::default();
        for event in [
            attempt(1, EventId::new(0, 1)),
            delta(1, 2, "kept "),
            delta(1, 3, "lost "),
            attempt(2, EventId::new(1, 2)),
            delta(2, 2, "new"),
        ] {
            transcript.push(&event);
        }
        assert_eq!(transcript.text(), "kept new");
    }
}
