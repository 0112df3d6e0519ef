//! The places of a worker for ingestions of documents. A claim takes one; an ingestion that waits for its turn gives it back.
//!
//! A worker claims only as many ingestions as can begin now. So the documents that wait are in the queue, where their owners
//! take turns, and not in a worker.

use std::{
    fmt::{Debug, Formatter},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Returns how many extractions of ingestions could begin now.
type FreeTurns = dyn Fn() -> usize + Send + Sync;

/// The places; cheap to clone. A run of a dead worker is claimed even if no place is free.
#[derive(Clone)]
pub struct IngestionPlaces {
    free: Arc<Semaphore>,
    free_turns: Arc<FreeTurns>,
    /// Claimed ingestions that have not asked for their turn yet.
    expected: Arc<Mutex<usize>>,
}

impl IngestionPlaces {
    /// Returns so many free places, of which claims take no more than there are free turns.
    pub fn new(places: usize, free_turns: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self { free: Arc::new(Semaphore::new(places)), free_turns: Arc::new(free_turns), expected: Arc::default() }
    }

    /// Returns how many ingestions a claim may take.
    pub fn claimable(&self) -> usize {
        let expected = *self.expected();
        self.free.available_permits().min((self.free_turns)().saturating_sub(expected))
    }

    /// Gives a claimed ingestion its place, without a permit if none is free.
    pub fn take(&self) -> IngestionPlace {
        *self.expected() += 1;
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        IngestionPlace { places: self.clone(), state: Mutex::new(PlaceState { permit, is_expected: true }) }
    }

    fn expected(&self) -> MutexGuard<'_, usize> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for IngestionPlaces {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestionPlaces").field("free", &self.free.available_permits()).finish_non_exhaustive()
    }
}

/// The place of one ingestion, until it is dropped.
#[derive(Debug)]
pub struct IngestionPlace {
    places: IngestionPlaces,
    state: Mutex<PlaceState>,
}

#[derive(Debug)]
struct PlaceState {
    permit: Option<OwnedSemaphorePermit>,
    /// True until the ingestion has asked for its turn, or needs none.
    is_expected: bool,
}

impl IngestionPlace {
    /// Notes that the ingestion has asked for its turn, or needs none.
    pub fn arrive(&self) {
        self.state().arrive(&self.places);
    }

    /// Gives the place back while the ingestion waits for its turn.
    pub fn give_back(&self) {
        self.state().permit = None;
    }

    /// Takes a place again, with the turn. An ingestion that has waited begins even if no place is free.
    pub fn take_again(&self) {
        let mut state = self.state();
        if state.permit.is_none() {
            state.permit = Arc::clone(&self.places.free).try_acquire_owned().ok();
        }
    }

    fn state(&self) -> MutexGuard<'_, PlaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlaceState {
    fn arrive(&mut self, places: &IngestionPlaces) {
        if std::mem::take(&mut self.is_expected) {
            *places.expected() -= 1;
        }
    }
}

impl Drop for IngestionPlace {
    fn drop(&mut self) {
        self.state().arrive(&self.places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_ingestion_holds_no_place_and_claims_take_no_more_than_can_begin() {
        let turns = Arc::new(Mutex::new(2));
        let free = Arc::clone(&turns);
        let places = IngestionPlaces::new(2, move || *free.lock().unwrap());
        assert_eq!(places.claimable(), 2);
        let (first, second) = (places.take(), places.take());
        assert_eq!(places.claimable(), 0, "the claimed ones take the places and the turns");
        // The first one has its turn, and the second one must wait.
        *turns.lock().unwrap() = 1;
        first.arrive();
        second.arrive();
        assert_eq!(places.claimable(), 0, "both places are taken");
        second.give_back();
        assert_eq!(places.claimable(), 1, "the waiting one holds no place");
        *turns.lock().unwrap() = 0;
        assert_eq!(places.claimable(), 0, "no further one could begin");
        *turns.lock().unwrap() = 2;
        second.take_again();
        second.take_again();
        assert_eq!(places.claimable(), 0);
        let of_dead_worker = places.take();
        drop((first, second));
        assert_eq!(places.claimable(), 1, "the one of a dead worker has no place, but expects a turn");
        drop(of_dead_worker);
        assert_eq!(places.claimable(), 2);
    }
}
