//! The deadline of a start: database and Redis may come up later than this process.
//!
//! A start only waits for a store that it cannot reach. A store that responds and refuses (a wrong password, an unknown
//! database, an old schema) ends the start at once, because it will refuse again.

use std::{error::Error, time::Duration};

use anyhow::Context;
use holdfast_shared::backoff::Backoff;
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The time that one start may wait for all stores together. The last attempt may exceed it.
pub struct StartDeadline {
    total: Duration,
    since: Instant,
}

impl StartDeadline {
    pub fn of(total: Duration) -> Self {
        Self { total, since: Instant::now() }
    }

    /// Connects to a store, and retries while `is_away` holds for the error. Fails with the first other error, or when the
    /// deadline has passed.
    pub async fn reach<T, E, F>(
        &self,
        store: &str,
        is_away: fn(&E) -> bool,
        mut connect: impl FnMut() -> F,
    ) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, E>>,
        E: Error + Send + Sync + 'static,
    {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut is_logged = false;
        loop {
            let error = match connect().await {
                Ok(connected) => return Ok(connected),
                Err(error) if !is_away(&error) => return Err(error.into()),
                Err(error) => error,
            };
            let remaining = self.total.saturating_sub(self.since.elapsed());
            if remaining.is_zero() {
                let waited = self.total.as_millis();
                return Err(error).context(format!("gave up after {waited} ms (HOLDFAST_START_PATIENCE_MS)"));
            }
            // Only the first line has the cause: repeated causes would hide when the outage began.
            let cause = (!std::mem::replace(&mut is_logged, true)).then_some(&error as &dyn Error);
            tracing::warn!(error = cause, "failed to reach {store}; trying again");
            tokio::time::sleep(backoff.next_pause().min(remaining)).await;
        }
    }
}
