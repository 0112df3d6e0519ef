//! The rate limit: buckets that all processes share, so that an anonymous caller cannot get one bucket per process.
//!
//! A bucket is a name, such as an address. It refills by itself, and no process creates or removes it. The API chooses
//! the limited callers and their buckets; workers take from the buckets of bytes, for what runs store.

mod memory;
mod rate;
mod redis;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

pub use rate::{InvalidRate, KIBIBYTE, Period, Rate};

use crate::config::Stores;

/// Returns the bucket of the bytes that callers of one address store. `client` is their group, or the address where callers have none.
pub fn byte_bucket(client: &str) -> String {
    format!("bytes:{client}")
}

/// A call to Redis failed.
#[derive(Debug, thiserror::Error)]
#[error("Redis: could not {doing}")]
pub struct Error {
    doing: &'static str,
    source: ::redis::RedisError,
}

/// The bucket is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimited {
    /// Time until the bucket gives one again.
    pub wait: Duration,
}

/// All buckets; cheap to clone.
#[derive(Clone)]
pub struct RateLimit {
    shared: Option<redis::RedisBuckets>,
    /// Decides if no process shares the buckets, and while Redis is away. Then the API refuses no caller for the
    /// outage, and gives no caller more than one process would.
    own: Arc<memory::MemoryBuckets>,
}

/// Connects to the buckets. Fails if Redis cannot be reached.
pub async fn connect(stores: &Stores) -> Result<RateLimit, Error> {
    let shared = match stores {
        Stores::ScaledOut { redis_url, .. } => Some(redis::RedisBuckets::connect(redis_url).await?),
        Stores::Embedded { .. } | Stores::EmbeddedInMemory => None,
    };
    Ok(RateLimit { shared, own: Arc::default() })
}

impl RateLimit {
    /// Takes one out of the bucket, or returns the wait until there is one. The bucket holds the rate's count, and
    /// refills at that rate.
    pub async fn take(&self, bucket: &str, rate: Rate) -> Result<(), RateLimited> {
        self.take_many(bucket, rate, NonZeroU32::MIN).await
    }

    /// Takes so many out of the bucket at once, or nothing and returns the wait until they are there. More than the bucket
    /// holds take all of a full bucket.
    pub async fn take_many(&self, bucket: &str, rate: Rate, many: NonZeroU32) -> Result<(), RateLimited> {
        let many = many.min(rate.count);
        let Some(shared) = &self.shared else { return self.own.take(bucket, rate, many) };
        match shared.take(bucket, rate, many).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "failed to take from a shared bucket; this process's own bucket decides"
                );
                self.own.take(bucket, rate, many)
            }
        }
    }
}
