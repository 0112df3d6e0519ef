//! Counts what each holder has open, up to a limit. `streams`, `serve` and `in_flight` use it.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The count of each holder. A holder without a guard takes no memory.
pub struct Counts<K>(Mutex<HashMap<K, usize>>);

/// An amount that counts for its holder until the guard is dropped.
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
    /// Adds `amount` for the holder. Returns `None` if the holder would exceed `most`; the first amount is always
    /// accepted.
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

    /// Adds `amount` to a guard's. Returns `false` if the holder would exceed `most`; a guard that is its holder's only one
    /// always grows.
    pub fn grow(guard: &mut CountGuard<K>, amount: usize, most: usize) -> bool {
        let mut counts = guard.counts.lock();
        let count = counts.entry(guard.holder.clone()).or_default();
        if *count > guard.amount && *count + amount > most {
            return false;
        }
        *count += amount;
        guard.amount += amount;
        true
    }

    /// Returns the holder's current count.
    pub fn count_of(&self, holder: &K) -> usize {
        self.lock().get(holder).copied().unwrap_or(0)
    }
}

impl<K> Counts<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> CountGuard<K> {
    pub const fn amount(&self) -> usize {
        self.amount
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
    fn each_holder_has_its_limit_and_an_empty_count_takes_no_memory() {
        let counts = Arc::new(Counts::default());
        let guards: Vec<_> = (0..2).map(|_| counts.take("ann", 1, 2).unwrap()).collect();
        assert!(counts.take("ann", 1, 2).is_none());
        assert!(counts.take("bob", 3, 2).is_some(), "the first amount is always accepted, however large");
        drop(guards);
        assert!(counts.lock().is_empty());
        assert!(counts.take("ann", 2, 2).is_some());
    }

    #[test]
    fn a_guard_grows_up_to_the_limit_and_beyond_it_alone() {
        let counts = Arc::new(Counts::default());
        let (mut first, mut second) = (counts.take("ann", 0, 4).unwrap(), counts.take("ann", 0, 4).unwrap());
        assert!(Counts::grow(&mut first, 3, 4) && Counts::grow(&mut second, 1, 4));
        assert!(!Counts::grow(&mut first, 1, 4));
        drop(second);
        assert!(Counts::grow(&mut first, 5, 4), "it is the only one");
        drop(first);
        assert!(counts.lock().is_empty());
    }
}
