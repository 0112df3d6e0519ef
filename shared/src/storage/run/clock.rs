//! The database's clock, as a claim has it.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// The database's clock, estimated without a request. It is late by the duration of the claim's answer. It misses later
/// settings of a clock, and the sleep of this machine.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseClock {
    database_time: DateTime<Utc>,
    received_at: Instant,
}

impl DatabaseClock {
    /// Returns the clock of an answer that came at `received_at`.
    pub const fn received(database_time: DateTime<Utc>, received_at: Instant) -> Self {
        Self { database_time, received_at }
    }

    /// Returns the estimated time in whole milliseconds, like each stored time.
    pub fn now(self) -> DateTime<Utc> {
        self.database_time + Duration::from_millis(self.received_at.elapsed().as_millis() as u64)
    }
}
