//! Redis behind Sentinels, and a Redis Cluster. Their masters are killed, fall silent, or change places.

use std::time::{Duration, Instant};

use futures::future::join_all;
use test_servers::{Redis, RedisCluster, Sentinels};

use crate::support::{Client, EventFrame, EventStream, ScaledOut, fold, until};

/// Longest time from a fault until Redis is ready again, with the failover.
const READY_AGAIN: Duration = Duration::from_secs(10);

/// Longest time from a fault until all streams are whole: five seconds of answers, and the failover.
const WHOLE: Duration = Duration::from_secs(30);

/// Returns a deployment on this Redis.
fn on(redis_url: String) -> ScaledOut {
    ScaledOut::new().with("REDIS_URL", redis_url)
}

async fn is_ready(client: &Client) -> bool {
    client.request(reqwest::Method::GET, "/readyz").send().await.unwrap().status() == 200
}

/// Streams some runs at a time, causes a fault in mid-stream, and expects each run whole, and Redis ready in time.
async fn streams_survive(redis_url: String, fault: impl AsyncFnOnce()) {
    const STREAMS: usize = 12;
    let scaled = on(redis_url);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut streams = join_all((0..STREAMS).map(|_| client.stream("[tokens=250] [delay=20] hi"))).await;
    let begun = join_all(streams.iter_mut().map(|stream| stream.up_to_nth("message.delta", 20))).await;
    fault().await;
    let since = Instant::now();
    let ready = async {
        // Each shard is ready when messages of its runs come, so all streams are watched, too.
        until("Redis is away", async || (!is_ready(&client).await).then_some(())).await;
        until("Redis is ready", async || is_ready(&client).await.then_some(())).await;
        println!("Redis was ready again after {:?}", since.elapsed());
    };
    let _ = tokio::time::timeout(READY_AGAIN, ready).await;
    assert!(is_ready(&client).await, "Redis is not ready {READY_AGAIN:?} after the fault");
    let rest = async |(stream, mut frames): (EventStream, Vec<_>)| {
        let run_id = stream.run_id.clone();
        frames.extend(stream.rest().await);
        assert_eq!(frames.iter().filter(|frame: &&EventFrame| frame.event == "message.delta").count(), 250);
        assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    };
    join_all(streams.into_iter().zip(begun).map(rest)).await;
    assert!(since.elapsed() < WHOLE, "it took {:?}", since.elapsed());
    works_at_once(&client).await;
}

/// Wake-ups, pushes and cancels come by Redis.
async fn works_at_once(client: &Client) {
    let since = Instant::now();
    for _ in 0..8 {
        let frames = client.stream("[tokens=3] [delay=1] hi").await.rest().await;
        assert_eq!(frames.last().unwrap().event, "run.completed");
        let mut cancelled = client.stream("[tokens=5000] [delay=20] hi").await;
        cancelled.up_to("message.delta").await;
        client.cancel(&cancelled.run_id).await;
        assert_eq!(cancelled.rest().await.last().unwrap().event, "run.cancelled");
    }
    assert!(since.elapsed() < Duration::from_secs(10), "it took {:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_sentinels_replace_is_left() {
    let mut sentinels = Sentinels::start();
    streams_survive(sentinels.url(), async || sentinels.master.kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_by_an_operator_is_followed() {
    let sentinels = Sentinels::start();
    streams_survive(sentinels.url(), async || sentinels.fail_over()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_falls_silent_behind_sentinels_is_left() {
    let sentinels = Sentinels::start();
    streams_survive(sentinels.url(), async || sentinels.master.signal("STOP")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_carries_wake_ups_pushes_and_cancels() {
    let cluster = RedisCluster::start();
    // Only wake-ups and pushes inform it; without them, each would take a minute.
    let scaled = on(cluster.url()).with("HOLDFAST_LOOK_MS", 60_000).with("HOLDFAST_FLUSH_MS", 60_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    works_at_once(&api.client()).await;
    let lengths = cluster.masters().into_iter().map(Redis::keys);
    assert!(lengths.clone().all(|keys| keys > 0), "runs are on every shard: {:?}", lengths.collect::<Vec<_>>());
}

/// The old masters stay, and end the subscriptions of their slots.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_of_all_masters_of_a_cluster_is_followed() {
    let cluster = RedisCluster::start();
    streams_survive(cluster.url(), async || cluster.fail_over()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_of_a_cluster_that_dies_is_replaced_by_its_replica() {
    let mut cluster = RedisCluster::start();
    streams_survive(cluster.url(), async || cluster.kill_a_master()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_of_a_cluster_that_falls_silent_is_replaced_by_its_replica() {
    let cluster = RedisCluster::start();
    streams_survive(cluster.url(), async || cluster.masters()[0].signal("STOP")).await;
}
