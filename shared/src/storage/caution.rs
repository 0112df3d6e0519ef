//! What everybody should know about where this process keeps things.

use std::sync::Arc;

use super::Error;

/// A warning that accompanies all that is kept: in the log, at `/readyz` and in each run.
#[derive(Debug, Clone)]
pub struct Caution {
    /// For programs.
    pub code: &'static str,
    /// For people, users among them; it says nothing about the host.
    pub message: &'static str,
    /// Why, for the log.
    pub cause: Arc<Error>,
}

impl Caution {
    pub(super) fn kept_in_memory(cause: Error) -> Self {
        Self {
            code: "kept_in_memory",
            message: "The database could not be used when the server started: everything is kept in memory, and lost when the server stops.",
            cause: Arc::new(cause),
        }
    }
}
