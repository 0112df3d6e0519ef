//! The memory for the files of all requests to models in this process: a limit per owner, then one for all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use holdfast_shared::config::counted_owner;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const UNIT: u64 = 1024;

/// Bytes of memory for each byte of a file: its base64 stays, and a request has a copy of it in its body.
const COPIES: u64 = 4;

/// One owner has at most this fraction of the memory.
const SHARES: usize = 4;

/// The permits; cheap to clone.
#[derive(Clone)]
pub struct FileMemory {
    all: Arc<Semaphore>,
    owners: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
    permits_per_owner: usize,
}

/// Memory for the files of one run, until it is dropped.
pub struct FileMemoryGuard {
    of_owner: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
}

impl FileMemory {
    /// Returns a memory of this number of bytes.
    pub fn new(bytes: usize) -> Self {
        let permits = bytes / UNIT as usize;
        let permits_per_owner = (permits / SHARES).clamp(1, u32::MAX as usize);
        let all = Arc::new(Semaphore::new(permits.clamp(permits_per_owner, Semaphore::MAX_PERMITS)));
        Self { all, owners: Arc::default(), permits_per_owner }
    }

    /// Waits until the owner has memory for files of this number of bytes. Files beyond the owner's share wait for all of
    /// the share.
    pub async fn take(self, owner: String, bytes: u64) -> FileMemoryGuard {
        let permits = self.permits(bytes);
        let never_closed = "the semaphores are never closed";
        // Order matters: a run that waits for its owner's other runs holds nothing of the rest.
        let of_owner = self.share_of(&owner).acquire_many_owned(permits).await.expect(never_closed);
        let of_all = self.all.acquire_many_owned(permits).await.expect(never_closed);
        FileMemoryGuard { of_owner, of_all }
    }

    /// Makes a guard that of files of this number of bytes, if the memory is free. Returns whether it is. A run that would
    /// have to wait must give its guard back first, so that no two runs wait for each other.
    pub fn grow(&self, guard: &mut FileMemoryGuard, bytes: u64) -> bool {
        let more = (self.permits(bytes) as usize).saturating_sub(guard.of_owner.num_permits()) as u32;
        let take = |permit: &OwnedSemaphorePermit| Arc::clone(permit.semaphore()).try_acquire_many_owned(more).ok();
        let (Some(of_owner), Some(of_all)) = (take(&guard.of_owner), take(&guard.of_all)) else { return false };
        guard.of_owner.merge(of_owner);
        guard.of_all.merge(of_all);
        true
    }

    fn permits(&self, bytes: u64) -> u32 {
        let wanted = usize::try_from(bytes * COPIES / UNIT).unwrap_or(usize::MAX);
        wanted.clamp(1, self.permits_per_owner) as u32
    }

    fn share_of(&self, owner: &str) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = owners.get(counted_owner(owner)).and_then(Weak::upgrade) {
            return share;
        }
        owners.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.permits_per_owner));
        owners.insert(counted_owner(owner).to_owned(), Arc::downgrade(&share));
        share
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
        assert!(memory.grow(&mut first, 256), "it has more");
        assert!(!memory.grow(&mut first, 1024), "the second has some of it");
        assert!(take(256).is_some(), "a guard that does not grow takes nothing");
        drop(second);
        assert!(memory.grow(&mut first, 1024) && take(1).is_none(), "ann has her share");
        assert!(memory.grow(&mut first, u64::MAX / COPIES), "more than a share takes the share");
    }
}
