//! The pauses between tries. They grow with each failure, and end after the client's patience.

use std::time::Duration;

use tokio::time::Instant;

use crate::{error::Error, event::EventId};

const LONGEST: Duration = Duration::from_secs(15);
/// The first pause of a client that has no `retry:` of the server.
const FIRST: Duration = Duration::from_millis(250);

pub struct Pauses {
    /// The server's own `retry:`.
    pub retry: Option<Duration>,
    patience: Duration,
    failures: u32,
    since: Option<Instant>,
}

impl Pauses {
    pub fn new(patience: Duration) -> Self {
        Self { retry: None, patience, failures: 0, since: None }
    }

    pub fn succeed(&mut self) {
        self.failures = 0;
        self.since = None;
    }

    /// Waits before the next try, at least as long as the server asks for.
    pub async fn next(&mut self, retry_after: Option<Duration>, cursor: Option<EventId>) -> Result<(), Error> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let ceiling = self.retry.unwrap_or(FIRST).saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures += 1;
        // Clients of a returning server must not connect all at once.
        let pause = ceiling.mul_f64(0.5 + jitter() / 2.0).max(retry_after.unwrap_or_default());
        if waited + pause > self.patience {
            return Err(Error::ConnectionLost { waited, cursor });
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// Returns a random number between 0 and 1; 1 if the system has none.
fn jitter() -> f64 {
    getrandom::u32().map_or(1.0, |bits| f64::from(bits) / f64::from(u32::MAX))
}
