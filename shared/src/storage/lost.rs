//! When a connection to the database was last lost. The others may have gone with it, as they do when the server is started
//! anew, so those that have lain idle since before are tried before they are used.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A process has one database.
static LOST: Mutex<Option<Instant>> = Mutex::new(None);

/// Remembers the moment, if this is what a lost connection fails with.
pub(super) fn note(error: &sqlx::Error) {
    let is_lost = match error {
        sqlx::Error::Io(_) => true,
        // An operator ends the connection, or the server.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    };
    if is_lost {
        *LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Whether any was lost in this time.
pub(super) fn within(time: Duration) -> bool {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|lost| lost.elapsed() <= time)
}
