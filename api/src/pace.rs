//! The least pace of an open body: a client that promises many bytes has no more time for the first of them.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::problem::Problem;

pub struct Pace {
    began: Instant,
    /// Longest silence, and the time that a body has beyond that of the least rate.
    patience: Duration,
    /// Bytes per second.
    least_rate: u64,
}

impl Pace {
    /// Returns the pace of a body that begins now.
    pub fn new(patience: Duration, least_rate: usize) -> Self {
        Self { began: Instant::now(), patience, least_rate: least_rate as u64 }
    }

    /// Awaits the next bytes of a body of which so many have arrived. Fails with `body_timeout` if they are too late.
    pub async fn next<T>(&self, arrived: u64, bytes: impl Future<Output = T>) -> Result<T, Problem> {
        let at_least_rate =
            self.began + self.patience + Duration::from_secs_f64(arrived as f64 / self.least_rate as f64);
        let until = at_least_rate.min(Instant::now() + self.patience);
        timeout_at(until, bytes).await.map_err(|_| Problem::body_timeout())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Returns the bytes that arrive before the time-out, if the client sends so many after each pause.
    async fn arrive(pause: u64, bytes: u64, most: u64) -> u64 {
        let pace = Pace::new(Duration::from_secs(30), 1024);
        let mut arrived = 0;
        while arrived < most && pace.next(arrived, sleep(Duration::from_secs(pause))).await.is_ok() {
            arrived += bytes;
        }
        arrived
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_ends_after_the_patience_whatever_it_promised() {
        assert_eq!(arrive(1, 1, 1 << 20).await, 30, "one byte a second");
        assert_eq!(arrive(31, 1 << 20, 1 << 30).await, 0, "a silence");
        assert_eq!(arrive(29, 29 * 1024, 1 << 20).await, 36 * 29 * 1024, "the least rate with long pauses");
        assert_eq!(arrive(10, 4 * 1024, 1 << 20).await, 4 * 4 * 1024, "less than the least rate");
    }
}
