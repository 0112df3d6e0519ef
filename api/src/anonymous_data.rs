//! The cap for the data of all anonymous users together: what the sweeps have measured, and what this process has admitted since.

use std::{
    error::Error,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use holdfast_shared::storage::{AnonymousMeasurement, Storage};

use crate::problem::Problem;

/// Time for which a process does not read the measurement again.
const HOLDS: Duration = Duration::from_secs(10);

pub struct AnonymousData {
    storage: Storage,
    /// `None` for no limit.
    most: Option<u64>,
    total: Mutex<Total>,
}

#[derive(Default)]
struct Total {
    read_at: Option<Instant>,
    measured: AnonymousMeasurement,
    /// The bytes that this process has admitted since it has first read that measurement.
    admitted: u64,
}

impl AnonymousData {
    pub fn new(storage: Storage, most: Option<u64>) -> Self {
        Self { storage, most, total: Mutex::default() }
    }

    /// Returns the cap.
    pub const fn most(&self) -> Option<u64> {
        self.most
    }

    /// Admits so many bytes more. Fails if the cap is reached.
    pub async fn admit(&self, bytes: usize) -> Result<(), Problem> {
        let Some(most) = self.most else { return Ok(()) };
        if self.lock().is_due() {
            match self.storage.anonymous_data().await {
                Ok(measured) => self.lock().set(measured),
                // The write fails as well, or the last measurement decides.
                Err(error) => {
                    tracing::debug!(error = &error as &dyn Error, "failed to read the bytes of anonymous users");
                }
            }
        }
        if self.lock().add(bytes as u64, most) { Ok(()) } else { Err(Problem::anonymous_data_full(most)) }
    }

    fn lock(&self) -> MutexGuard<'_, Total> {
        self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Total {
    /// Returns whether the caller must read the measurement. Others use the last one meanwhile.
    fn is_due(&mut self) -> bool {
        let is_due = self.read_at.is_none_or(|at| at.elapsed() > HOLDS);
        if is_due {
            self.read_at = Some(Instant::now());
        }
        is_due
    }

    fn set(&mut self, measured: AnonymousMeasurement) {
        if measured.number != self.measured.number {
            (self.measured, self.admitted) = (measured, 0);
        }
    }

    /// Adds bytes, and returns whether the cap was not reached.
    fn add(&mut self, bytes: u64, most: u64) -> bool {
        let has_room = self.measured.bytes + self.admitted < most;
        if has_room {
            self.admitted += bytes;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_a_measurement_has_them() {
        let mut total = Total::default();
        let measured = |number: i64, bytes: u64| AnonymousMeasurement { number, bytes };
        total.set(measured(1, 90));
        assert!(total.add(9, 100) && total.add(1, 100), "99 bytes leave room");
        assert!(!total.add(0, 100), "100 do not");
        total.set(measured(1, 90));
        assert!(!total.add(0, 100), "it is the same measurement");
        total.set(measured(2, 90));
        assert!(total.add(50, 100) && !total.add(1, 100), "other bytes were not stored, or are measured");
    }
}
