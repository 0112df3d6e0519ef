//! The text of an answer or of a part of it so far, for a fold: clones are cheap, and an attempt removes what it supersedes.

use std::sync::Arc;

use holdfast_shared::{event_id::EventId, transcript::Transcript};

/// About how many bytes a piece of the text has. A piece that clones share is copied before it grows.
const PIECE_BYTES: usize = 1024;

/// The text so far. Clones share its pieces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerText {
    /// The pieces that are full, each with the first event of the next one.
    full: Arc<Vec<(Arc<Transcript>, EventId)>>,
    /// The piece that grows.
    open: Arc<Transcript>,
}

impl AnswerText {
    /// Appends the text of an event.
    pub fn push(&mut self, id: EventId, text: &str) {
        if self.open.text().len() >= PIECE_BYTES {
            let piece = std::mem::take(&mut self.open);
            Arc::make_mut(&mut self.full).push((piece, id));
        }
        Arc::make_mut(&mut self.open).push(id, text);
    }

    /// Removes the text of all events after `base`.
    pub fn supersede_after(&mut self, base: EventId) {
        while self.full.last().is_some_and(|(_, next)| *next > base) {
            let last = Arc::make_mut(&mut self.full).pop();
            self.open = last.map(|(piece, _)| piece).unwrap_or_default();
        }
        Arc::make_mut(&mut self.open).supersede_after(base);
    }

    /// Returns the text of an event.
    pub fn of(id: EventId, text: &str) -> Self {
        let mut answer = Self::default();
        answer.push(id, text);
        answer
    }

    pub fn is_empty(&self) -> bool {
        self.pieces().all(str::is_empty)
    }

    /// Replaces the text by that of an event.
    pub fn replace(&mut self, id: EventId, text: &str) {
        *self = Self::of(id, text);
    }

    /// Returns the text in one piece.
    pub fn to_text(&self) -> String {
        self.pieces().collect()
    }

    /// Returns whether the text is this one.
    pub fn is(&self, text: &str) -> bool {
        let rest = self.pieces().try_fold(text, |rest, piece| rest.strip_prefix(piece));
        rest.is_some_and(str::is_empty)
    }

    fn pieces(&self) -> impl Iterator<Item = &str> {
        self.full.iter().map(|(piece, _)| piece.text()).chain([self.open.text()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_many_pieces_loses_exactly_what_is_superseded() {
        let word = |n: u32| format!("word {n} ");
        let words = |count: u32| -> String { (1..=count).map(word).collect() };
        let mut text = AnswerText::default();
        (1..=1000).for_each(|n| text.push(EventId::new(1, n), &word(n)));
        assert!(text.is(&words(1000)) && !text.is(&words(999)) && !text.is(&words(1001)));
        for kept in [999, 500, 113, 1, 0] {
            let mut shorter = text.clone();
            shorter.supersede_after(EventId::new(1, kept));
            assert_eq!(shorter.to_text(), words(kept));
            shorter.push(EventId::new(2, 2), "end");
            assert_eq!(shorter.to_text(), words(kept) + "end");
        }
        assert_eq!(text.to_text(), words(1000), "a clone changes nothing");
    }
}
