//! A warning about the place where this process keeps its data.

use std::sync::Arc;

use super::Error;

/// A warning in the log, at `/readyz` and in each run.
#[derive(Debug, Clone)]
pub struct Caution {
    /// Stable and lower-case, for programs.
    pub code: &'static str,
    /// A sentence for people, users included. It tells nothing about the host.
    pub message: &'static str,
    /// The cause, for the log.
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
