//! The last loss of a connection, and the last moment at which a server was found demoted or silent. A restart of the
//! server closes all connections, so the pool tests those that are idle since before a loss. Connections from before the
//! other moment may lead to a server that never answers or takes no write, so the pool closes them.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::error::READ_ONLY;

/// A process has one database.
static LOST: Mutex<Option<Instant>> = Mutex::new(None);
static UNFIT: Mutex<Option<Instant>> = Mutex::new(None);

/// Stores the moment of an error that a lost connection causes.
pub fn note(error: &sqlx::Error) {
    let is_lost = match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // An operator ended the connection or the server.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    };
    if matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| code == READ_ONLY)) {
        leave_earlier_connections();
    }
    if is_lost {
        *LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// Returns whether a connection was lost within this time.
pub fn within(time: Duration) -> bool {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|lost| lost.elapsed() <= time)
}

/// Returns the error of a read-only server.
pub fn read_only() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, "the server is read-only"))
}

/// Returns whether this is the error of a read-only server.
pub fn is_read_only(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
}

/// Has the pool close all connections that exist at this moment.
pub fn leave_earlier_connections() {
    *UNFIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Returns whether the connections of this moment lead to an unfit server.
pub fn are_unfit_since(moment: Instant) -> bool {
    UNFIT.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|seen| seen >= moment)
}
