//! The two lanes to SQLite's one writer: writes in the background let all others go first.
//!
//! A request or a run writes a few times in a row, so a background write waits until nothing else has written for a moment.
//! Its patience ends, because a busy server must still remove what its users delete.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};

/// Time without other writes after which a background write begins.
const QUIET: Duration = Duration::from_millis(20);

/// Time after which a background write begins although others write. It waits its turn with them then.
const PATIENCE: Duration = Duration::from_millis(250);

/// Orders the writers of one file; cheap to clone.
#[derive(Clone)]
pub struct Lanes {
    foreground: watch::Sender<Foreground>,
    /// One background write at a time, in the order of their arrival.
    background: Arc<Semaphore>,
}

/// The writers that go first.
#[derive(Default)]
struct Foreground {
    /// Those that wait or write.
    writers: usize,
    /// When the last one ended.
    left_at: Option<Instant>,
}

/// The lane of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A caller or a run waits for the write.
    Foreground,
    /// No caller and no run waits for the write.
    Background,
}

/// The right to ask for the writer's connection. It lasts until the end of the write.
pub enum LaneTurn {
    Foreground(ForegroundTurn),
    Background { _permit: OwnedSemaphorePermit },
}

/// The turn of a writer that goes first.
pub struct ForegroundTurn(watch::Sender<Foreground>);

impl Drop for ForegroundTurn {
    fn drop(&mut self) {
        self.0.send_modify(|foreground| {
            foreground.writers -= 1;
            foreground.left_at = Some(Instant::now());
        });
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self { foreground: watch::Sender::default(), background: Arc::new(Semaphore::new(1)) }
    }
}

impl Lanes {
    /// Returns when a writer of this lane may ask for the connection.
    pub async fn turn(&self, lane: Lane) -> LaneTurn {
        match lane {
            Lane::Foreground => {
                self.foreground.send_modify(|foreground| foreground.writers += 1);
                LaneTurn::Foreground(ForegroundTurn(self.foreground.clone()))
            }
            Lane::Background => {
                let permit = Arc::clone(&self.background).acquire_owned().await.expect("nothing closes the semaphore");
                // At the end of its patience it begins, too.
                let _ = timeout(PATIENCE, self.quiet()).await;
                LaneTurn::Background { _permit: permit }
            }
        }
    }

    /// Returns when nothing in the foreground has written for a moment.
    async fn quiet(&self) {
        let mut foreground = self.foreground.subscribe();
        loop {
            let left_at = {
                let idle = foreground.wait_for(|foreground| foreground.writers == 0).await;
                idle.expect("the lanes have a sender").left_at
            };
            let Some(left_at) = left_at else { return };
            if timeout_at(left_at + QUIET, foreground.changed()).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_background_write_begins_at_once_while_no_other_writes() {
        let lanes = Lanes::default();
        for _ in 0..3 {
            assert!(lanes.turn(Lane::Background).now_or_never().is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_background_write_lets_those_go_first_that_wait_and_those_that_follow_soon() {
        let lanes = Lanes::default();
        let began = Instant::now();
        let first = lanes.turn(Lane::Foreground).await;
        let mut background = Box::pin(lanes.turn(Lane::Background));
        assert!(poll!(&mut background).is_pending());
        let second = lanes.turn(Lane::Foreground).await;
        drop((first, second));
        assert!(poll!(&mut background).is_pending());
        tokio::time::sleep(QUIET / 2).await;
        let third = lanes.turn(Lane::Foreground).await;
        assert!(poll!(&mut background).is_pending());
        tokio::time::sleep(2 * QUIET).await;
        assert!(poll!(&mut background).is_pending());
        drop(third);
        background.await;
        assert_eq!(began.elapsed(), QUIET / 2 + 3 * QUIET);
    }

    #[tokio::test(start_paused = true)]
    async fn a_background_write_begins_after_its_patience() {
        let lanes = Lanes::default();
        let began = Instant::now();
        let _held = lanes.turn(Lane::Foreground).await;
        lanes.turn(Lane::Background).await;
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn background_writes_come_one_by_one() {
        let lanes = Lanes::default();
        let first = lanes.turn(Lane::Background).await;
        assert!(lanes.turn(Lane::Background).now_or_never().is_none());
        assert!(lanes.turn(Lane::Foreground).now_or_never().is_some());
        drop(first);
        assert!(lanes.turn(Lane::Background).now_or_never().is_none(), "the foreground has just left");
    }
}
