//! The texts that this worker has extracted for models, so that the later turns of a conversation start no child.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use holdfast_extraction::ExtractionError;
use uuid::Uuid;

/// Bytes of all texts together. The oldest leave first.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Bytes that an entry has beside its text, roughly.
const ENTRY_BYTES: usize = 256;

/// The text of a document as models get it, or the reason why it has none.
pub type ExtractedText = Result<Arc<str>, ExtractionError>;

/// Texts by the contents that they are from. Contents never change, and a deleted file's contents are never asked for.
#[derive(Default)]
pub struct DocumentTexts(Mutex<CachedTexts>);

#[derive(Default)]
struct CachedTexts {
    texts: HashMap<Uuid, ExtractedText>,
    /// The contents in the order of their first extraction.
    order: VecDeque<Uuid>,
    bytes: usize,
}

impl DocumentTexts {
    /// Returns the text of contents, if it is known.
    pub fn get(&self, content_id: Uuid) -> Option<ExtractedText> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.get(&content_id).cloned()
    }

    /// Keeps the text of contents, and forgets the oldest ones if all are too large together.
    pub fn keep(&self, content_id: Uuid, text: ExtractedText) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another run may have extracted it meanwhile.
        if cached.texts.contains_key(&content_id) {
            return;
        }
        cached.bytes += bytes_of(&text);
        cached.order.push_back(content_id);
        cached.texts.insert(content_id, text);
        while cached.bytes > MOST_BYTES {
            let Some(oldest) = cached.order.pop_front() else { return };
            if let Some(text) = cached.texts.remove(&oldest) {
                cached.bytes -= bytes_of(&text);
            }
        }
    }
}

fn bytes_of(text: &ExtractedText) -> usize {
    ENTRY_BYTES + text.as_ref().map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_leave_when_all_are_too_large() {
        let texts = DocumentTexts::default();
        let quarter: Arc<str> = "x".repeat(MOST_BYTES / 4 - ENTRY_BYTES).into();
        let ids = [1, 2, 3, 4, 5].map(Uuid::from_u128);
        for id in &ids[..4] {
            texts.keep(*id, Ok(Arc::clone(&quarter)));
        }
        assert!(ids[..4].iter().all(|id| texts.get(*id).is_some()), "they fit exactly");
        texts.keep(ids[1], Err(ExtractionError::NoText));
        assert_eq!(texts.get(ids[1]), Some(Ok(quarter)), "a second extraction changes nothing");
        texts.keep(ids[4], Err(ExtractionError::NoText));
        let kept = ids.map(|id| texts.get(id).is_some());
        assert_eq!(kept, [false, true, true, true, true]);
    }
}
