//! Turns: each caller works on one piece at a time, and all callers together on a few.
//!
//! A caller first waits for its own work. So only as many of its pieces wait among the pieces of other callers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// Hands out permits to work; cheap to clone.
#[derive(Clone)]
pub struct Turns {
    all: Arc<Semaphore>,
    callers: Arc<Callers>,
}

/// The callers that work or wait. A caller that does neither takes no memory.
#[derive(Default)]
struct Callers(Mutex<HashMap<String, Arc<Semaphore>>>);

/// The permit to work, until it is dropped.
#[derive(Debug)]
pub struct TurnPermit {
    // Order matters: both permits are released before the caller's slot is checked.
    _of_all: OwnedSemaphorePermit,
    _of_caller: OwnedSemaphorePermit,
    _slot: CallerSlot,
}

/// The reason why a caller got no permit in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTurn {
    /// The caller's own work used the whole time.
    OfCaller,
    /// The work of other callers used the time.
    OfAll,
}

/// One caller's entry in the map.
struct CallerSlot {
    callers: Arc<Callers>,
    caller: String,
    /// `None` while the slot is dropped.
    turns: Option<Arc<Semaphore>>,
}

impl std::fmt::Debug for CallerSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallerSlot").field(&self.caller).finish()
    }
}

impl Turns {
    /// Returns turns with at most `most` permits at a time, one of them for a caller.
    pub fn new(most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), callers: Arc::default() }
    }

    /// Waits for a permit of this caller. Fails after `timeout`, and says whose work held the permits.
    pub async fn take(&self, caller: &str, timeout: Duration) -> Result<TurnPermit, NoTurn> {
        let until = Instant::now() + timeout;
        let slot = self.slot(caller);
        let of_caller = timeout_at(until, slot.acquire()).await;
        let of_caller = of_caller.map_err(|_| NoTurn::OfCaller)?.expect("nothing closes the semaphore");
        let of_all = timeout_at(until, Arc::clone(&self.all).acquire_owned()).await;
        let of_all = of_all.map_err(|_| NoTurn::OfAll)?.expect("nothing closes the semaphore");
        Ok(TurnPermit { _of_all: of_all, _of_caller: of_caller, _slot: slot })
    }

    fn slot(&self, caller: &str) -> CallerSlot {
        let new = || Arc::new(Semaphore::new(1));
        let turns = Arc::clone(self.callers.lock().entry(caller.to_owned()).or_insert_with(new));
        CallerSlot { callers: Arc::clone(&self.callers), caller: caller.to_owned(), turns: Some(turns) }
    }
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerSlot {
    fn acquire(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        Arc::clone(self.turns.as_ref().expect("the slot is in use")).acquire_owned()
    }
}

impl Drop for CallerSlot {
    fn drop(&mut self) {
        let mut callers = self.callers.lock();
        // Order matters: of two slots that are dropped at once, the second one finds the map's reference alone.
        drop(self.turns.take());
        if callers.get(&self.caller).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            callers.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn one_callers_work_waits_for_its_own_and_other_callers_get_their_turns() {
        let turns = Turns::new(2);
        let first = turns.take("ann", TIMEOUT).await.unwrap();
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let turns = turns.clone();
                tokio::spawn(async move { turns.take("ann", TIMEOUT).await.err() })
            })
            .collect();
        tokio::task::yield_now().await;
        let bob = turns.take("bob", Duration::ZERO).await.expect("ann's work holds one turn of the two");
        assert_eq!(turns.take("carl", TIMEOUT).await.unwrap_err(), NoTurn::OfAll);
        for refusal in waiting {
            assert_eq!(refusal.await.unwrap(), Some(NoTurn::OfCaller));
        }
        drop(first);
        let second = turns.take("ann", TIMEOUT).await.unwrap();
        drop((second, bob));
        assert!(turns.callers.lock().is_empty(), "callers without work take no memory");
    }
}
