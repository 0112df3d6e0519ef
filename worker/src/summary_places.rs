//! The places of a worker for summaries after answers.
//!
//! Such a summary holds the slot of an ended run, which counts for no owner. So each owner has one place, and all owners together
//! have as many as the worker has reserved slots. Without a place, the next question makes the summary within its own run.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The owners, or groups of anonymous callers, whose summaries this worker makes now.
pub struct SummaryPlaces {
    most: usize,
    taken: Mutex<HashSet<String>>,
}

/// The place of one summary, until it is dropped.
pub struct SummaryPlace<'a> {
    places: &'a SummaryPlaces,
    share: String,
}

impl SummaryPlaces {
    /// Returns free places for a worker with so many reserved slots.
    pub fn new(reserved_slots: usize) -> Self {
        Self { most: reserved_slots.max(1), taken: Mutex::default() }
    }

    /// Takes the place of an owner or group; `None` if it has taken one, or if no place is free.
    pub fn take(&self, share: String) -> Option<SummaryPlace<'_>> {
        let mut taken = self.taken();
        let is_free = taken.len() < self.most && taken.insert(share.clone());
        drop(taken);
        // A place that was not taken must not be made, because its end frees the share.
        is_free.then(|| SummaryPlace { places: self, share })
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SummaryPlace<'_> {
    fn drop(&mut self) {
        self.places.taken().remove(&self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_place_and_all_owners_have_the_reserved_slots() {
        let places = SummaryPlaces::new(2);
        let ann = places.take("ann".into());
        assert!(ann.is_some() && places.take("ann".into()).is_none());
        let bob = places.take("bob".into());
        assert!(bob.is_some() && places.take("carl".into()).is_none());
        drop(ann);
        let carl = places.take("carl".into());
        assert!(carl.is_some() && places.take("ann".into()).is_none());
        assert!(SummaryPlaces::new(0).take("ann".into()).is_some(), "a worker without reserved slots has one place");
    }
}
