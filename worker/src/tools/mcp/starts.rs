//! The turns in which stdio servers start: a few at a time, so that one start does not slow down all others.
//!
//! The first start of a program goes alone: installers such as npx cannot fill one cache twice at the same time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

pub struct StartTurns {
    turns: Arc<Semaphore>,
    programs: Mutex<HashMap<Program, Arc<FirstStart>>>,
}

/// A command with its arguments.
type Program = (String, Vec<String>);

#[derive(Default)]
struct FirstStart {
    alone: Arc<tokio::sync::Mutex<()>>,
    /// Set once the program has started.
    is_done: AtomicBool,
}

/// The turn of one start, until it is dropped.
pub struct StartTurn {
    first: Arc<FirstStart>,
    _alone: Option<OwnedMutexGuard<()>>,
    _permit: OwnedSemaphorePermit,
}

impl StartTurns {
    /// Returns turns for this number of starts at the same time.
    pub fn new(starts: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(starts.min(Semaphore::MAX_PERMITS))), programs: Mutex::default() }
    }

    /// Waits for the turn of a program.
    pub async fn begin(&self, command: &str, args: &[String]) -> StartTurn {
        let first = self.first_start(command, args);
        // Order matters: a start that waits for the first one of its program takes no turn from others.
        let alone = if first.is_done() { None } else { Some(Arc::clone(&first.alone).lock_owned().await) };
        let alone = alone.filter(|_| !first.is_done());
        let permit = Arc::clone(&self.turns).acquire_owned().await.expect("the semaphore is never closed");
        StartTurn { first, _alone: alone, _permit: permit }
    }

    fn first_start(&self, command: &str, args: &[String]) -> Arc<FirstStart> {
        let mut programs = self.programs.lock().expect("no thread panics with this lock");
        Arc::clone(programs.entry((command.to_owned(), args.to_vec())).or_default())
    }
}

impl StartTurn {
    /// Notes that the program has started; its further starts need not go alone.
    pub fn succeed(&self) {
        self.first.is_done.store(true, Ordering::Release);
    }
}

impl FirstStart {
    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    fn is_waiting(turn: &mut (impl Future<Output = StartTurn> + Unpin)) -> bool {
        turn.now_or_never().is_none()
    }

    #[tokio::test]
    async fn as_many_programs_start_at_a_time_as_there_are_turns() {
        let turns = StartTurns::new(2);
        let (a, b) = (turns.begin("a", &[]).await, turns.begin("b", &[]).await);
        let mut c = Box::pin(turns.begin("c", &[]));
        assert!(is_waiting(&mut c));
        drop(a);
        tokio::time::timeout(Duration::from_secs(60), c).await.unwrap();
        drop(b);
    }

    #[tokio::test]
    async fn the_first_start_of_a_program_goes_alone_and_later_ones_together() {
        let (turns, a, b) = (StartTurns::new(9), ["a".to_owned()], ["b".to_owned()]);
        let first = turns.begin("npx", &a).await;
        let mut second = Box::pin(turns.begin("npx", &a));
        assert!(is_waiting(&mut second));
        let other = turns.begin("npx", &b).await;
        first.succeed();
        drop((first, other));
        let (second, third) = (second.await, turns.begin("npx", &a).now_or_never());
        assert!(third.is_some());
        drop(second);
    }

    #[tokio::test]
    async fn after_a_first_start_that_failed_the_next_one_goes_alone() {
        let turns = StartTurns::new(9);
        drop(turns.begin("npx", &[]).await);
        let _second = turns.begin("npx", &[]).await;
        assert!(is_waiting(&mut Box::pin(turns.begin("npx", &[]))));
    }
}
