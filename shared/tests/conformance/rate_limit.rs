//! The rate limit: an exact number at once, then the time to wait.

use std::{num::NonZeroU32, time::Duration};

use holdfast_shared::rate_limit::Rate;

use crate::{backends::TestBackends, on_each_backend};

on_each_backend!(
    a_bucket_gives_exactly_its_size_and_then_the_time_to_wait,
    buckets_do_not_disturb_each_other,
    a_bucket_is_refilled_one_by_one,
    concurrent_callers_share_one_bucket,
    many_are_taken_at_once_or_not_at_all,
);

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap().unwrap()
}

async fn a_bucket_gives_exactly_its_size_and_then_the_time_to_wait(backends: TestBackends) {
    for text in ["1/day", "7/hour", "1000/day"] {
        let rate = rate(text);
        for _ in 0..rate.count.get() {
            backends.rate_limit.take("ann", rate).await.unwrap();
        }
        let wait = backends.rate_limit.take("ann", rate).await.unwrap_err().wait;
        assert!(wait <= rate.interval() && wait > Duration::ZERO, "{text}: {wait:?}");
        let again = backends.rate_limit.take("ann", rate).await.unwrap_err().wait;
        assert!(again <= wait, "a refusal costs nothing");
    }
}

async fn buckets_do_not_disturb_each_other(backends: TestBackends) {
    let hourly = rate("1/hour");
    backends.rate_limit.take("ann", hourly).await.unwrap();
    backends.rate_limit.take("bob", hourly).await.unwrap();
    backends.rate_limit.take("ann", hourly).await.unwrap_err();
    // Another rate is another limit.
    backends.rate_limit.take("ann", rate("20/hour")).await.unwrap();
}

async fn a_bucket_is_refilled_one_by_one(backends: TestBackends) {
    let rate = rate("20/second");
    let mut waited = Duration::ZERO;
    while waited.is_zero() {
        if let Err(empty) = backends.rate_limit.take("ann", rate).await {
            waited = empty.wait;
        }
    }
    // This test sleeps, because the returned wait must be long enough.
    tokio::time::sleep(waited).await;
    backends.rate_limit.take("ann", rate).await.unwrap();
}

async fn many_are_taken_at_once_or_not_at_all(backends: TestBackends) {
    let rate = rate("10/day");
    let take = |bucket: &'static str, many: u32| {
        let rate_limit = backends.rate_limit.clone();
        async move { rate_limit.take_many(bucket, rate, NonZeroU32::new(many).unwrap()).await }
    };
    take("ann", 7).await.unwrap();
    let wait = take("ann", 4).await.unwrap_err().wait;
    assert!(wait <= rate.interval() && wait > Duration::ZERO, "one is missing: {wait:?}");
    take("ann", 3).await.unwrap();
    take("ann", 1).await.unwrap_err();
    take("bob", 1_000).await.unwrap();
    take("bob", 1).await.unwrap_err();
    take("eve", 1).await.unwrap();
    take("eve", 1_000).await.expect_err("the bucket is not full");
}

async fn concurrent_callers_share_one_bucket(backends: TestBackends) {
    let rate = rate("5/hour");
    let takes = (0..20).map(|_| {
        let rate_limit = backends.rate_limit.clone();
        tokio::spawn(async move { rate_limit.take("ann", rate).await })
    });
    let mut taken = 0;
    for take in takes.collect::<Vec<_>>() {
        taken += usize::from(take.await.unwrap().is_ok());
    }
    assert_eq!(taken, 5);
}

#[tokio::test]
async fn while_redis_is_away_the_process_decides_alone() {
    let mut backends = TestBackends::scaled_out().await;
    let rate = rate("2/hour");
    backends.rate_limit.take("ann", rate).await.unwrap();
    backends.stop_redis();
    backends.rate_limit.take("ann", rate).await.unwrap();
    backends.rate_limit.take("ann", rate).await.unwrap();
    backends.rate_limit.take("ann", rate).await.unwrap_err();
}
