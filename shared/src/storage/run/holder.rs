//! The names of worker processes, which hold runs.

use uuid::Uuid;

/// The name of one worker process, unique per start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder(String);

impl Holder {
    /// Returns a new unique name.
    pub fn new() -> Self {
        Self(format!("worker-{}", Uuid::now_v7().simple()))
    }

    /// Returns the name, as the database stores it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Holder {
    fn default() -> Self {
        Self::new()
    }
}
