//! The text of an answer or of a part of it so far, for a fold: clones are cheap, and an attempt removes what it supersedes.

use std::sync::Arc;

use holdfast_shared::{event_id::EventId, transcript::Transcript};

/// Most pieces of the end of a text before they become one block.
const MAX_PIECES: usize = 64;

/// The text so far. Clones share its pieces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerText {
    /// The blocks before the end, each with the first event after it.
    blocks: Arc<Vec<(Arc<Transcript>, EventId)>>,
    end: TextEnd,
}

/// The newest pieces of a text. A clone that grows copies none of them.
#[derive(Debug, Clone, Default, PartialEq)]
struct TextEnd {
    last: Option<Arc<EventText>>,
    pieces: usize,
}

/// The text of one event.
#[derive(Debug, PartialEq)]
struct EventText {
    before: Option<Arc<EventText>>,
    id: EventId,
    text: Box<str>,
}

impl TextEnd {
    fn push(&mut self, id: EventId, text: &str) {
        let before = self.last.take();
        self.last = Some(Arc::new(EventText { before, id, text: text.into() }));
        self.pieces += 1;
    }

    fn supersede_after(&mut self, base: EventId) {
        while let Some(piece) = self.last.take_if(|piece| piece.id > base) {
            self.last.clone_from(&piece.before);
            self.pieces -= 1;
        }
    }

    /// Returns the pieces, oldest first.
    fn pieces(&self) -> impl Iterator<Item = &EventText> {
        let newest_first = std::iter::successors(self.last.as_deref(), |piece| piece.before.as_deref());
        let mut pieces: Vec<&EventText> = newest_first.collect();
        pieces.reverse();
        pieces.into_iter()
    }

    fn of_block(block: &Transcript) -> Self {
        let mut end = Self::default();
        block.pieces().for_each(|(id, text)| end.push(id, text));
        end
    }

    fn to_block(&self) -> Transcript {
        let mut block = Transcript::default();
        self.pieces().for_each(|piece| block.push(piece.id, &piece.text));
        block
    }
}

impl AnswerText {
    /// Appends the text of an event.
    pub fn push(&mut self, id: EventId, text: &str) {
        if self.end.pieces >= MAX_PIECES {
            let block = std::mem::take(&mut self.end).to_block();
            Arc::make_mut(&mut self.blocks).push((Arc::new(block), id));
        }
        self.end.push(id, text);
    }

    /// Removes the text of all events after `base`.
    pub fn supersede_after(&mut self, base: EventId) {
        while self.blocks.last().is_some_and(|(_, next)| *next > base) {
            let last = Arc::make_mut(&mut self.blocks).pop();
            self.end = last.map(|(block, _)| TextEnd::of_block(&block)).unwrap_or_default();
        }
        self.end.supersede_after(base);
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
        let blocks = self.blocks.iter().map(|(block, _)| block.text());
        blocks.chain(self.end.pieces().map(|piece| &*piece.text))
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
