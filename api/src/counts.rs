//! Counts what callers hold open, each up to a limit.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many of something, or how much, each holder has. A holder without any takes no memory.
pub struct Counts<K>(Mutex<HashMap<K, usize>>);

/// What a holder has; it counts until it is dropped.
pub struct CountGuard<K: Hash + Eq> {
    counts: Arc<Counts<K>>,
    holder: K,
    amount: usize,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Counts<K> {
    /// So many more for the holder, unless it would then have more than `most`. A holder without any may have more at once.
    pub fn take(self: &Arc<Self>, holder: K, amount: usize, most: usize) -> Option<CountGuard<K>> {
        let mut counts = self.lock();
        match counts.get_mut(&holder) {
            Some(count) if *count + amount > most => return None,
            Some(count) => *count += amount,
            None => drop(counts.insert(holder.clone(), amount)),
        }
        drop(counts);
        Some(CountGuard { counts: Arc::clone(self), holder, amount })
    }

    /// What the holder has in all.
    pub fn count_of(&self, holder: &K) -> usize {
        self.lock().get(holder).copied().unwrap_or(0)
    }
}

impl<K> Counts<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Drop for CountGuard<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.holder) {
            *count -= self.amount;
            if *count == 0 {
                counts.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_as_many_as_it_may_and_none_is_remembered() {
        let counts = Arc::new(Counts::default());
        let held: Vec<_> = (0..2).map(|_| counts.take("ann", 1, 2).unwrap()).collect();
        assert!(counts.take("ann", 1, 2).is_none());
        assert!(counts.take("bob", 3, 2).is_some(), "one thing is always taken, however large");
        drop(held);
        assert!(counts.lock().is_empty());
        assert!(counts.take("ann", 2, 2).is_some());
    }
}
