//! Buckets that all processes share. Each is a key, which expires when its bucket is full again.

use std::{num::NonZeroU32, sync::LazyLock, time::Duration};

use redis::{RedisError, Script};
use secrecy::SecretString;

use super::{Error, Rate, RateLimited};
use crate::redis_link::{Link, Use, within};

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));

/// Time-out of Redis. After it, the process's own bucket decides.
const TAKE_LIMIT: Duration = Duration::from_millis(300);

#[derive(Clone)]
pub struct RedisBuckets {
    commands: Link,
}

impl RedisBuckets {
    pub async fn connect(url: &SecretString) -> Result<Self, Error> {
        let commands = Link::open(url, Use::Prompt, drop).await.map_err(doing("open a connection"))?;
        Ok(Self { commands })
    }

    pub async fn take(&self, bucket: &str, rate: Rate, many: NonZeroU32) -> Result<Result<(), RateLimited>, Error> {
        // The rate is part of the key, because the stored time means another level at another rate.
        let mut invocation = TAKE.key(format!("holdfast:rate:{rate}:{bucket}"));
        invocation.arg(rate.interval().as_micros() as u64).arg(rate.count.get()).arg(many.get());
        let wait: u64 = within(TAKE_LIMIT, invocation.invoke_async(&mut self.commands.clone()))
            .await
            .map_err(doing("take from a bucket"))?;
        match wait {
            0 => Ok(Ok(())),
            micros => Ok(Err(RateLimited { wait: Duration::from_micros(micros) })),
        }
    }
}

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error { doing, source }
}
