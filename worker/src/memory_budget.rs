//! A budget of memory for one purpose in this process: shares of owners and servers first, then one limit for all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use holdfast_shared::config::counted_owner;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one permit.
const UNIT: u64 = 1024;

/// The permits; cheap to clone.
#[derive(Clone)]
pub struct MemoryBudget {
    all: Arc<Semaphore>,
    shares: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
    permits: usize,
}

/// A part of a budget, of which one user of memory has at most all.
#[derive(Debug, Clone)]
pub struct MemoryShare {
    name: String,
    /// The share is the budget divided by this.
    divisor: usize,
}

/// Memory, until it is dropped.
#[derive(Debug)]
pub struct MemoryGuard {
    /// One permit of each share, and that of the budget.
    permits: Vec<OwnedSemaphorePermit>,
    /// The most permits that the guard may have.
    most: usize,
}

impl MemoryShare {
    /// Returns the share of an owner, a quarter. All anonymous users together have one.
    pub fn of_owner(owner: &str) -> Self {
        Self { name: format!("owner {}", counted_owner(owner)), divisor: 4 }
    }

    /// Returns the share of a server, a half.
    pub fn of_server(server: &str) -> Self {
        Self { name: format!("server {server}"), divisor: 2 }
    }
}

impl MemoryBudget {
    /// Returns a budget of this number of bytes.
    pub fn new(bytes: usize) -> Self {
        let permits = (bytes / UNIT as usize).clamp(1, (u32::MAX as usize).min(Semaphore::MAX_PERMITS));
        Self { all: Arc::new(Semaphore::new(permits)), shares: Arc::default(), permits }
    }

    /// Waits until all these shares have this number of bytes. More than the smallest share waits for all of that share.
    pub async fn take(&self, shares: &[MemoryShare], bytes: u64) -> MemoryGuard {
        let most = shares.iter().map(|share| self.permits_of(share)).min().unwrap_or(self.permits);
        let permits = permits(bytes, most) as u32;
        let never_closed = "the semaphores are never closed";
        let mut taken = Vec::with_capacity(shares.len() + 1);
        // Order matters: a taker that waits for its own share holds nothing of the rest.
        for share in shares {
            taken.push(self.semaphore(share).acquire_many_owned(permits).await.expect(never_closed));
        }
        taken.push(Arc::clone(&self.all).acquire_many_owned(permits).await.expect(never_closed));
        MemoryGuard { permits: taken, most }
    }

    fn permits_of(&self, share: &MemoryShare) -> usize {
        (self.permits / share.divisor).max(1)
    }

    fn semaphore(&self, share: &MemoryShare) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = shares.get(&share.name).and_then(Weak::upgrade) {
            return found;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let made = Arc::new(Semaphore::new(self.permits_of(share)));
        shares.insert(share.name.clone(), Arc::downgrade(&made));
        made
    }
}

impl MemoryGuard {
    /// Makes this a guard of that many bytes, if the memory is free. Returns whether it is. A taker that would have to wait
    /// must drop its guard first, so that no two wait for each other.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let more = permits(bytes, self.most).saturating_sub(self.len()) as u32;
        let take = |permit: &OwnedSemaphorePermit| Arc::clone(permit.semaphore()).try_acquire_many_owned(more).ok();
        let Some(taken) = self.permits.iter().map(take).collect::<Option<Vec<_>>>() else { return false };
        self.permits.iter_mut().zip(taken).for_each(|(permit, more)| permit.merge(more));
        true
    }

    /// Gives back what exceeds that many bytes.
    pub fn shrink(&mut self, bytes: u64) {
        let less = self.len().saturating_sub(permits(bytes, self.most));
        for permit in &mut self.permits {
            drop(permit.split(less));
        }
    }

    fn len(&self) -> usize {
        self.permits.first().map_or(0, OwnedSemaphorePermit::num_permits)
    }
}

fn permits(bytes: u64, most: usize) -> usize {
    usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn take(budget: &MemoryBudget, owner: &str, server: &str, bytes: u64) -> Option<MemoryGuard> {
        let shares = [MemoryShare::of_owner(owner), MemoryShare::of_server(server)];
        budget.take(&shares, bytes).now_or_never()
    }

    #[test]
    fn one_server_leaves_half_of_the_memory_to_others() {
        let budget = MemoryBudget::new(16 * 1024);
        let (ann, bob) = (take(&budget, "ann", "kb", 4096), take(&budget, "bob", "kb", 4096));
        assert!(ann.is_some() && bob.is_some());
        assert!(take(&budget, "carl", "kb", 1).is_none(), "the server has its share");
        let (carl, dora) = (take(&budget, "carl", "crm", 4096), take(&budget, "dora", "crm", 4096));
        assert!(carl.is_some() && dora.is_some());
        assert!(take(&budget, "emil", "wiki", 1).is_none(), "the memory is full");
        drop(ann);
        assert!(take(&budget, "emil", "wiki", 1).is_some());
    }

    #[test]
    fn a_guard_gives_back_what_it_does_not_need() {
        let budget = MemoryBudget::new(16 * 1024);
        let mut guard = take(&budget, "ann", "kb", u64::MAX).unwrap();
        assert!(take(&budget, "ann", "crm", 1).is_none(), "ann has her share");
        guard.shrink(1024);
        let rest = take(&budget, "ann", "crm", 3 * 1024);
        assert!(rest.is_some() && take(&budget, "ann", "crm", 1).is_none());
        drop(guard);
        assert!(take(&budget, "ann", "crm", 1).is_some());
    }
}
