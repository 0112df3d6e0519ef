//! The rate limit: buckets that all API processes share, so that a stranger cannot ask one after the other.
//!
//! A bucket is a name, such as an address, and fills by itself; nobody has to make one or to take it away. Who is
//! limited, and by which bucket, is decided in the API.

mod memory;
mod rate;
mod redis;

use std::{sync::Arc, time::Duration};

pub use rate::{InvalidRate, Period, Rate};

use crate::config::Stores;

/// Redis could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("Redis: could not {doing}")]
pub struct Error {
    doing: &'static str,
    source: ::redis::RedisError,
}

/// The bucket is empty; after this time it has something again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimited {
    pub wait: Duration,
}

/// All buckets; cheap to clone.
#[derive(Clone)]
pub struct RateLimit {
    shared: Option<redis::RedisBuckets>,
    /// What decides where nothing is shared, and while Redis is away: then nobody is refused for that, and nobody gets
    /// more than one process would give.
    own: Arc<memory::MemoryBuckets>,
}

/// Connects to the buckets.
pub async fn connect(stores: &Stores) -> Result<RateLimit, Error> {
    let shared = match stores {
        Stores::ScaledOut { redis_url, .. } => Some(redis::RedisBuckets::connect(redis_url).await?),
        Stores::Embedded { .. } | Stores::EmbeddedInMemory => None,
    };
    Ok(RateLimit { shared, own: Arc::default() })
}

impl RateLimit {
    /// Takes one out of the bucket, which holds what the rate gives in its period, and is refilled at that rate.
    pub async fn take(&self, bucket: &str, rate: Rate) -> Result<(), RateLimited> {
        let Some(shared) = &self.shared else { return self.own.take(bucket, rate) };
        match shared.take(bucket, rate).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "this process's own bucket decides");
                self.own.take(bucket, rate)
            }
        }
    }
}
