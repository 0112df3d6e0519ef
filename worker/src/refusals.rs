//! The refusals that this process remembers: lengths of an owner's requests, and files. Later requests keep to it at once. The end of
//! the process forgets it, and the next refusal teaches it again.
//!
//! A length counts for its owner alone, because the estimate of tokens can be far off for one text, and another owner must not lose
//! messages by it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use uuid::Uuid;

/// A refused length counts for so long, because a provider may lift its limit, and the estimate of tokens is rough.
const LENGTH_COUNTS_FOR: Duration = Duration::from_secs(3600);

/// Most lengths, and most files, that a process remembers.
const MAX_REMEMBERED: usize = 10_000;

/// The refusals of providers, by the model's path.
#[derive(Default)]
pub struct Refusals {
    /// By owner and model.
    lengths: Mutex<HashMap<(String, String), RefusedLength>>,
    files: Mutex<HashSet<(String, Uuid)>>,
}

struct RefusedLength {
    tokens: u32,
    at: Instant,
}

impl Refusals {
    /// Remembers that an owner's request of so many estimated tokens was too long for a model.
    pub fn note_length(&self, owner: String, model: String, tokens: u32) {
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if lengths.len() >= MAX_REMEMBERED {
            lengths.clear();
        }
        let key = (owner, model);
        let known = lengths.get(&key).filter(|length| length.counts()).map_or(tokens, |length| length.tokens);
        lengths.insert(key, RefusedLength { tokens: tokens.min(known), at: Instant::now() });
    }

    /// Returns the tokens that an owner's request to a model should have at most; `None` if its provider has refused none as too long.
    pub fn room(&self, owner: &str, model: &str) -> Option<u32> {
        let lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths
            .get(&(owner.to_owned(), model.to_owned()))
            .filter(|length| length.counts())
            .map(|length| below(length.tokens))
    }

    /// Remembers that a model's provider has refused a file.
    pub fn note_file(&self, model: String, file: Uuid) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MAX_REMEMBERED {
            files.clear();
        }
        files.insert((model, file));
    }

    /// Returns whether a model's provider has refused a file.
    pub fn has_file(&self, model: &str, file: Uuid) -> bool {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).contains(&(model.to_owned(), file))
    }
}

impl RefusedLength {
    fn counts(&self) -> bool {
        self.at.elapsed() < LENGTH_COUNTS_FOR
    }
}

/// Returns the length that is asked for after a refused one.
pub const fn below(tokens: u32) -> u32 {
    tokens / 4 * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_refused_length_counts_for_its_owner_and_model_alone() {
        let refusals = Refusals::default();
        let note = |tokens| refusals.note_length("ann".into(), "openai/a".into(), tokens);
        assert_eq!(refusals.room("ann", "openai/a"), None);
        note(8_000);
        note(12_000);
        assert_eq!(refusals.room("ann", "openai/a"), Some(6_000));
        assert_eq!((refusals.room("ann", "openai/b"), refusals.room("bob", "openai/a")), (None, None));
        note(4_000);
        assert_eq!(refusals.room("ann", "openai/a"), Some(3_000));
    }

    #[test]
    fn a_refused_file_counts_for_the_model_that_refused_it_and_memory_is_bounded() {
        let refusals = Refusals::default();
        let file = Uuid::from_u128(7);
        refusals.note_file("openai/a".into(), file);
        assert!(refusals.has_file("openai/a", file) && !refusals.has_file("openai/b", file));
        for n in 0..MAX_REMEMBERED as u128 * 2 {
            refusals.note_file("openai/a".into(), Uuid::from_u128(n));
        }
        assert!(refusals.files.lock().unwrap().len() <= MAX_REMEMBERED);
    }
}
