//! A text that grows. Clones share what they have in common, so the states of a fold after each of many batches take little memory.

use std::sync::Arc;

use holdfast_shared::event_id::EventId;

/// The text.
#[derive(Debug, Clone, Default)]
pub struct SharedText(Option<Arc<SharedPiece>>);

#[derive(Debug)]
struct SharedPiece {
    before: SharedText,
    /// The event that has brought the piece.
    event: EventId,
    text: Box<str>,
}

impl SharedText {
    pub fn of(event: EventId, text: &str) -> Self {
        let mut shared = Self::default();
        shared.push(event, text);
        shared
    }

    pub fn push(&mut self, event: EventId, text: &str) {
        let before = std::mem::take(self);
        self.0 = Some(Arc::new(SharedPiece { before, event, text: text.into() }));
    }

    /// Drops the pieces of events after `base`.
    pub fn truncate(&mut self, base: EventId) {
        while let Some(before) = self.0.as_ref().filter(|piece| piece.event > base).map(|piece| piece.before.clone()) {
            *self = before;
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the whole text.
    pub fn text(&self) -> String {
        let pieces = std::iter::successors(self.0.as_ref(), |piece| piece.before.0.as_ref());
        let mut pieces: Vec<&str> = pieces.map(|piece| &*piece.text).collect();
        pieces.reverse();
        pieces.concat()
    }
}

/// A long text would overflow the stack if each piece dropped the one before it.
impl Drop for SharedText {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut piece) = next.and_then(Arc::into_inner) {
            next = piece.before.0.take();
        }
    }
}
