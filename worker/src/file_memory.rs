//! The memory for the files of all requests to models in this process: a limit per owner, then one for all.

use crate::memory_budget::{MemoryBudget, MemoryGuard, MemoryShare};

/// Bytes of memory for each byte of a file: its base64 stays, and a request has a copy of it in its body.
const COPIES: u64 = 4;

/// The memory; cheap to clone.
#[derive(Clone)]
pub struct FileMemory(MemoryBudget);

/// Memory for the files of one run, until it is dropped.
pub struct FileMemoryGuard(MemoryGuard);

impl FileMemory {
    /// Returns a memory of this number of bytes.
    pub fn new(bytes: usize) -> Self {
        Self(MemoryBudget::new(bytes))
    }

    /// Waits until the owner has memory for files of this number of bytes. Files beyond the owner's share wait for all of
    /// the share.
    pub async fn take(self, owner: String, bytes: u64) -> FileMemoryGuard {
        FileMemoryGuard(self.0.take(&[MemoryShare::of_owner(&owner)], bytes.saturating_mul(COPIES)).await)
    }
}

impl FileMemoryGuard {
    /// Makes this a guard of files of this number of bytes, if the memory is free. Returns whether it is. A run that would
    /// have to wait must give its guard back first, so that no two runs wait for each other.
    pub fn grow(&mut self, bytes: u64) -> bool {
        self.0.grow(bytes.saturating_mul(COPIES))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_owner_waits_for_its_own_share_and_leaves_the_rest_to_others() {
        let memory = FileMemory::new(16 * 1024);
        let take = |owner: &str, bytes: u64| memory.clone().take(owner.to_owned(), bytes).now_or_never();
        let first = take("ann", 1024);
        assert!(first.is_some());
        assert!(take("ann", 1).is_none(), "ann has her share");
        let (bob, anonymous) = (take("bob", 1024 * 1024), take("anonymous_a", 1024));
        assert!(bob.is_some() && anonymous.is_some(), "more than a share takes the share");
        assert!(take("anonymous_b", 1).is_none(), "anonymous users have one share together");
        let carl = take("carl", 1024);
        assert!(carl.is_some() && take("dora", 1).is_none(), "the memory is full");
        drop(first);
        assert!(take("dora", 1).is_some());
    }

    #[test]
    fn a_guard_grows_only_into_free_memory() {
        let memory = FileMemory::new(16 * 1024);
        let take = |bytes: u64| memory.clone().take("ann".to_owned(), bytes).now_or_never();
        let (mut first, second) = (take(512).unwrap(), take(256).unwrap());
        assert!(first.grow(256), "it has more");
        assert!(!first.grow(1024), "the second has some of it");
        assert!(take(256).is_some(), "a guard that does not grow takes nothing");
        drop(second);
        assert!(first.grow(1024) && take(1).is_none(), "ann has her share");
        assert!(first.grow(u64::MAX / COPIES), "more than a share takes the share");
    }
}
