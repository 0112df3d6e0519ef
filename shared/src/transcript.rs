//! A text that grows with each event. An attempt removes the part that it supersedes.

use crate::{
    event::{Event, EventBody, EventKind},
    event_id::EventId,
};

/// The text so far, without superseded parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    text: String,
    /// For each delta, the offset in `text` at which it ends.
    ends: Vec<(EventId, usize)>,
}

impl Transcript {
    /// Applies the next event of the log to the answer's text. It parses only deltas.
    pub fn apply(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        if event.kind() == EventKind::MessageDelta
            && let EventBody::MessageDelta(delta) = event.body()
        {
            self.push(event.id, &delta.text);
        }
    }

    /// Appends the text of an event.
    pub fn push(&mut self, id: EventId, text: &str) {
        self.text.push_str(text);
        self.ends.push((id, self.text.len()));
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of each event.
    pub fn pieces(&self) -> impl Iterator<Item = (EventId, &str)> {
        self.ends.iter().scan(0, |start, (id, end)| Some((*id, &self.text[std::mem::replace(start, *end)..*end])))
    }

    /// Returns the text so far, without a copy.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Removes the text of all events after `base`.
    pub fn supersede_after(&mut self, base: EventId) {
        let kept = self.ends.partition_point(|(id, _)| *id <= base);
        self.ends.truncate(kept);
        self.text.truncate(self.ends.last().map_or(0, |(_, end)| *end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_attempt_drops_the_text_after_its_base() {
        let mut transcript = Transcript::default();
        transcript.push(EventId::new(1, 2), "kept ");
        transcript.push(EventId::new(1, 3), "lost ");
        transcript.supersede_after(EventId::new(1, 2));
        transcript.push(EventId::new(2, 2), "new");
        let pieces: Vec<_> = transcript.pieces().collect();
        assert_eq!(pieces, [(EventId::new(1, 2), "kept "), (EventId::new(2, 2), "new")]);
        assert_eq!(transcript.into_text(), "kept new");
    }
}
