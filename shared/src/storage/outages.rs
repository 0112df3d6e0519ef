//! When a connection to the database was last lost. The others may have gone with it, as they do when the server is started
//! anew, so those that have lain idle since before are tried before they are used. And when a server was last found to be
//! read-only: a connection from before that moment may lead to a server that was demoted.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::error::READ_ONLY;

/// A process has one database.
static LOST: Mutex<Option<Instant>> = Mutex::new(None);
static WAS_READ_ONLY: Mutex<Option<Instant>> = Mutex::new(None);

/// Remembers the moment, if this is what a lost connection fails with.
pub(super) fn note(error: &sqlx::Error) {
    let is_lost = match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // An operator ends the connection, or the server.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    };
    if matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| code == READ_ONLY)) {
        note_read_only();
    }
    if is_lost {
        *LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Whether any was lost in this time.
pub(super) fn within(time: Duration) -> bool {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|lost| lost.elapsed() <= time)
}

/// The error of a server that answers and takes no writes; remembers the moment.
pub(super) fn read_only() -> sqlx::Error {
    note_read_only();
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "the server is read-only"))
}

fn note_read_only() {
    *WAS_READ_ONLY.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Whether a server was read-only after this moment.
pub(super) fn was_read_only_since(moment: Instant) -> bool {
    WAS_READ_ONLY.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|seen| seen >= moment)
}
