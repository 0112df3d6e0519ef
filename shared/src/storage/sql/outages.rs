//! The last loss of a connection, and the last read-only server. A restart of the server closes all connections, so the
//! pool tests those that are idle since before a loss. A connection from before a read-only moment may lead to a
//! demoted server.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::error::READ_ONLY;

/// A process has one database.
static LOST: Mutex<Option<Instant>> = Mutex::new(None);
static WAS_READ_ONLY: Mutex<Option<Instant>> = Mutex::new(None);

/// Stores the moment of an error that a lost connection causes.
pub fn note(error: &sqlx::Error) {
    let is_lost = match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // An operator ended the connection or the server.
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

/// Returns whether a connection was lost within this time.
pub fn within(time: Duration) -> bool {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|lost| lost.elapsed() <= time)
}

/// Returns the error of a read-only server, and stores the moment.
pub fn read_only() -> sqlx::Error {
    note_read_only();
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "the server is read-only"))
}

fn note_read_only() {
    *WAS_READ_ONLY.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Returns whether a server was read-only after this moment.
pub fn was_read_only_since(moment: Instant) -> bool {
    WAS_READ_ONLY.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|seen| seen >= moment)
}
