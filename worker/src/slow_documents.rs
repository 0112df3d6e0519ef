//! The documents whose first try has run out in this process. Their next try is a long one at once.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

/// Documents that a process remembers. It forgets all of them when they are more, which costs each another first try.
const MOST: usize = 10_000;

/// Slow documents, by their contents.
#[derive(Default)]
pub struct SlowDocuments(Mutex<HashSet<Uuid>>);

impl SlowDocuments {
    pub fn contains(&self, content_id: Uuid) -> bool {
        self.lock().contains(&content_id)
    }

    pub fn note(&self, content_id: Uuid) {
        let mut slow = self.lock();
        if slow.len() == MOST {
            slow.clear();
        }
        slow.insert(content_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Uuid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
