//! Buckets of this process alone.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock, DefaultClock},
};

use super::{Rate, RateLimited};

#[derive(Default)]
pub struct MemoryBuckets {
    by_rate: Mutex<HashMap<Rate, Arc<Buckets>>>,
}

/// The buckets of one rate.
struct Buckets {
    limiter: DefaultKeyedRateLimiter<String>,
    /// Number of buckets above which a request drops the full ones: twice the rest of the last time. So the search
    /// costs each request a little, and none of them much.
    look_above: AtomicUsize,
}

/// Number of buckets that no request searches.
const FEW: usize = 1_024;

impl MemoryBuckets {
    pub fn take(&self, bucket: &str, rate: Rate, many: NonZeroU32) -> Result<(), RateLimited> {
        let buckets = {
            let mut by_rate = self.by_rate.lock().unwrap_or_else(PoisonError::into_inner);
            by_rate.entry(rate).or_insert_with(|| Arc::new(Buckets::of(rate))).clone()
        };
        buckets.take(bucket, many)
    }
}

impl Buckets {
    fn of(rate: Rate) -> Self {
        let quota = Quota::with_period(rate.interval()).expect("an interval is at least a microsecond");
        let limiter = DefaultKeyedRateLimiter::keyed(quota.allow_burst(rate.count));
        Self { limiter, look_above: AtomicUsize::new(FEW) }
    }

    fn take(&self, bucket: &str, many: NonZeroU32) -> Result<(), RateLimited> {
        if self.limiter.len() > self.look_above.load(Ordering::Relaxed) {
            // A full bucket needs no entry, because a new one is full too.
            self.limiter.retain_recent();
            self.look_above.store(FEW.max(self.limiter.len() * 2), Ordering::Relaxed);
        }
        let taken = self.limiter.check_key_n(&bucket.to_owned(), many).expect("a bucket holds as many as are taken");
        taken.map_err(|until| RateLimited { wait: until.wait_time_from(DefaultClock::default().now()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_that_are_full_again_are_dropped() {
        let buckets = Buckets::of(Rate::parse("100000/second").unwrap().unwrap());
        for bucket in 0..100_000 {
            buckets.take(&bucket.to_string(), NonZeroU32::MIN).unwrap();
        }
        assert!(buckets.limiter.len() < 50_000, "{} buckets are left", buckets.limiter.len());
    }
}
