//! The signs of life of a run: the deltas of its models, the progress of its tools, and the ends of its calls.
//!
//! `executor/deadline.rs` fails a run that gives none for too long.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// When a run has last given a sign of life. Its clones share that time.
#[derive(Debug, Clone)]
pub struct SignsOfLife(Arc<Mutex<Instant>>);

impl Default for SignsOfLife {
    /// The start of the work is the first sign.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl SignsOfLife {
    /// Notes a sign.
    pub fn note(&self) {
        *self.lock() = Instant::now();
    }

    /// Returns the time of the last sign.
    pub fn last(&self) -> Instant {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
