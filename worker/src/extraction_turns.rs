//! The turns of extractions, for which callers wait. `extraction_schedule` decides about their order.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use crate::extraction_schedule::{ExtractionSchedule, TurnKind};

/// Hands out the turns; cheap to clone.
#[derive(Clone)]
pub struct ExtractionTurns(Arc<Mutex<ScheduledTurns>>);

struct ScheduledTurns {
    schedule: ExtractionSchedule,
    /// Wakes the callers that wait.
    waiting: HashMap<u64, oneshot::Sender<()>>,
    /// The times at which turns have begun.
    begun: HashMap<u64, Instant>,
}

/// A request for a turn.
pub struct TurnRequest {
    turn: ExtractionTurn,
    granted: oneshot::Receiver<()>,
}

/// The turn of an extraction, until it is dropped.
pub struct ExtractionTurn {
    turns: ExtractionTurns,
    id: u64,
}

impl ExtractionTurns {
    /// Returns turns for so many extractions at once, and for one more of a chat.
    pub fn new(turns: usize) -> Self {
        let schedule = ExtractionSchedule::new(turns);
        Self(Arc::new(Mutex::new(ScheduledTurns { schedule, waiting: HashMap::new(), begun: HashMap::new() })))
    }

    /// Asks for a turn of an owner, who counts as in `counted_owner`. `None` if the ingestion must wait in the queue.
    pub fn ask(&self, owner: &str, kind: TurnKind) -> Option<TurnRequest> {
        let mut turns = self.lock();
        let id = turns.schedule.ask(owner, kind)?;
        let (sender, granted) = oneshot::channel();
        turns.waiting.insert(id, sender);
        turns.begin();
        drop(turns);
        Some(TurnRequest { turn: ExtractionTurn { turns: self.clone(), id }, granted })
    }

    /// Waits for a turn; `None` if none is free in time.
    pub async fn take(&self, owner: &str, kind: TurnKind, patience: Duration) -> Option<ExtractionTurn> {
        timeout(patience, self.ask(owner, kind)?.granted()).await.ok()
    }

    /// Returns how many ingestions could begin their first try now.
    pub fn free_for_ingestions(&self) -> usize {
        self.lock().schedule.free_for_ingestions()
    }

    fn lock(&self) -> MutexGuard<'_, ScheduledTurns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduledTurns {
    /// Begins all extractions that may begin.
    fn begin(&mut self) {
        while let Some(id) = self.schedule.begin_next() {
            self.begun.insert(id, Instant::now());
            // A caller that waits no longer drops its turn, which ends it.
            let _ = self.waiting.remove(&id).map(|granted| granted.send(()));
        }
    }
}

impl TurnRequest {
    /// Returns whether the turn has come.
    pub fn is_granted(&self) -> bool {
        self.turn.turns.lock().schedule.is_held(self.turn.id)
    }

    /// Waits for the turn.
    pub async fn granted(self) -> ExtractionTurn {
        self.granted.await.expect("only a dropped turn drops its sender");
        self.turn
    }
}

impl Drop for ExtractionTurn {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        let worked = turns.begun.remove(&self.id).map_or(Duration::ZERO, |begun| begun.elapsed());
        turns.schedule.end(self.id, worked);
        turns.waiting.remove(&self.id);
        turns.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extraction_schedule::{TextReader, TryLength};

    const SHORT: TurnKind = TurnKind { length: TryLength::Short, reader: TextReader::Chat };

    #[tokio::test]
    async fn a_turn_that_ends_or_is_given_up_lets_the_next_one_begin() {
        let turns = ExtractionTurns::new(1);
        let first = turns.ask("ann", SHORT).unwrap().granted().await;
        let _second = turns.ask("bob", SHORT).unwrap().granted().await;
        let (given_up, waiting) = (turns.ask("eve", SHORT).unwrap(), turns.ask("joe", SHORT).unwrap());
        assert!(!given_up.is_granted() && !waiting.is_granted());
        assert!(turns.take("zoe", SHORT, Duration::ZERO).await.is_none());
        drop(given_up);
        drop(first);
        waiting.granted().await;
        assert!(turns.lock().waiting.is_empty(), "callers that wait no longer take no memory");
    }
}
