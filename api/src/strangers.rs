//! The limit for strangers: how many runs those may start whom nobody has named.

use std::net::IpAddr;

use holdfast_shared::rate_limit::{Rate, RateLimit};

use crate::{
    auth::{Caller, one_client},
    problem::Problem,
};

pub struct Strangers {
    buckets: RateLimit,
    /// Without one, there is no limit.
    rate: Option<Rate>,
}

impl Strangers {
    pub const fn new(buckets: RateLimit, rate: Option<Rate>) -> Self {
        Self { buckets, rate }
    }

    /// Lets a caller start a run, or says when to come back.
    pub async fn admit(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.rate.filter(|_| caller.is_stranger) else { return Ok(()) };
        self.take("client", caller.address.client, rate).await?;
        // A client can make up as many addresses as it likes, but not the one that the proxy has seen. Behind that may be
        // many clients, so it holds more.
        match caller.address.seen_by_proxy {
            Some(seen) => self.take("proxy", seen, rate.tenfold()).await,
            None => Ok(()),
        }
    }

    async fn take(&self, bucket: &str, address: IpAddr, rate: Rate) -> Result<(), Problem> {
        let bucket = format!("{bucket}:{}", one_client(address));
        self.buckets.take(&bucket, rate).await.map_err(|empty| Problem::rate_limited(rate, empty.wait))
    }
}
