//! The bytes that the runs of anonymous callers store: they count as those that the API stores for callers of their address.

use std::num::NonZeroU32;

use holdfast_shared::{
    rate_limit::{KIBIBYTE, Rate, RateLimit, byte_bucket},
    storage::{self, Storage},
};

/// The bytes that one run may store, beside the quotas of its owner.
pub struct GroupBytes {
    /// The group of an anonymous caller; `None` for a caller with a name, whom only the quotas bound.
    pub group: Option<String>,
    pub buckets: RateLimit,
    /// In kibibytes; `None` for no limit.
    pub rate: Option<Rate>,
    /// The bytes of all anonymous users together; `None` for no limit.
    pub most_of_all: Option<u64>,
}

impl GroupBytes {
    /// Admits bytes that the run stores. The inner error says for the model why they are not stored.
    pub async fn admit(&self, storage: &Storage, bytes: u64) -> Result<Result<(), String>, storage::Error> {
        let Some(group) = &self.group else { return Ok(Ok(())) };
        if let (Some(rate), Some(kibibytes)) = (self.rate, kibibytes_of(bytes))
            && self.buckets.take_many(&byte_bucket(group), rate, kibibytes).await.is_err()
        {
            let (most, period) = (rate.count, rate.period.as_str());
            return Ok(Err(format!("callers without an account may store {most} KiB per {period} from one address")));
        }
        match self.most_of_all {
            Some(most) if storage.anonymous_data().await?.bytes >= most => {
                Ok(Err("this server stores nothing new of users without an account now".to_owned()))
            }
            _ => Ok(Ok(())),
        }
    }
}

/// Less than a kibibyte takes nothing, as in the API.
fn kibibytes_of(bytes: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(bytes / KIBIBYTE as u64).unwrap_or(u32::MAX))
}
