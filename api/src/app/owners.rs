//! What an owner keeps here, as a whole.

use super::App;
use crate::problem::Problem;

/// The bytes that a conversation counts without its messages.
pub const CONVERSATION_BYTES: usize = 256;

impl App {
    /// Refuses what would bring an owner beyond its quota of bytes. Messages are not asked for here but inside SUBMIT; requests
    /// at the same moment may exceed the quota together, by what each of them brings.
    pub async fn expect_room(&self, owner: &str, bytes: usize) -> Result<(), Problem> {
        match self.quotas.bytes {
            Some(max) if self.storage.kept_bytes(owner).await? + bytes > max => Err(Problem::quota_exceeded(max)),
            _ => Ok(()),
        }
    }
}
