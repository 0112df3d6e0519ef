//! Redis loses its data or is away, at any moment.

use std::time::{Duration, Instant};

use test_servers::Redis;

use crate::support::{Client, Proxy, ScaledOut, fold, until};

#[tokio::test]
async fn flushing_redis_in_mid_stream_loses_nothing() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=120] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    scaled.redis.flush_all();
    frames.extend(stream.up_to_nth("message.delta", 20).await);
    scaled.redis.flush_all();
    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 120);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    assert_eq!(client.events(&run_id, None).await.rest().await, frames);
}

#[tokio::test]
async fn killing_redis_in_mid_stream_loses_nothing_and_everything_recovers() {
    let mut scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=200] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    scaled.redis.kill();
    // Without Redis the stream continues from the archive.
    frames.extend(stream.up_to_nth("message.delta", 60).await);
    scaled.redis.restart();
    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 200);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    // Pushes and wake-ups work again: a new run streams at once, and not every two seconds.
    let since = Instant::now();
    let frames = client.stream("[tokens=3] [delay=1] hi").await.rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_message_is_taken_and_answered_while_redis_is_away() {
    let mut scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let running = client.stream("[tokens=10000] [delay=20] hi").await;
    scaled.redis.kill();
    // Requests that can do without Redis do not wait for it.
    let since = Instant::now();
    client.cancel(&running.run_id).await;
    assert!(since.elapsed() < Duration::from_secs(1), "the cancel was acknowledged after {:?}", since.elapsed());
    let since = Instant::now();
    let submission = client.start("[tokens=5] hi").await;
    assert!(since.elapsed() < Duration::from_secs(1), "the message was taken after {:?}", since.elapsed());
    let run_id = submission["run"]["id"].as_str().unwrap();
    assert_eq!(client.wait_for_run(run_id).await["status"], "completed");
    let response = client.request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.json::<serde_json::Value>().await.unwrap()["reason"], "redis");
    scaled.redis.restart();
}

/// An append does not always restart a log's expiry, but it does before the log would expire too early.
#[tokio::test]
async fn a_log_stays_for_its_time_after_the_last_append_of_a_long_run() {
    let scaled = ScaledOut::new().with("HOLDFAST_LOG_TTL_MS", 60_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let stream = api.client().stream("[tokens=250] [delay=20] hi").await;
    let key = format!("holdfast:run:{}", stream.run_id.replace('-', ""));
    stream.rest().await;
    let remaining_ms: u64 =
        scaled.redis.call(&format!("PTTL {key}")).unwrap().trim().trim_start_matches(':').parse().unwrap();
    // Without a restart the log would expire 5 s earlier.
    assert!((57_500..=61_000).contains(&remaining_ms), "{remaining_ms} ms are left");
}

/// One append of a run is in flight at a time, so the first token would wait for each of them.
#[tokio::test]
async fn the_events_before_a_model_call_share_an_append() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let stream = api.client().stream("[tokens=1] hi").await;
    let key = format!("holdfast:run:{}", stream.run_id.replace('-', ""));
    stream.rest().await;
    // An entry of the stream is an append, and has the id of its last event. The third event begins the step.
    let entries = |id| scaled.redis.call(&format!("XRANGE {key} {id} {id}")).unwrap();
    assert_eq!(["1-1", "1-2", "1-3"].map(entries), ["*0", "*0", "*1"]);
}

/// Longest time until a silently failed connection is replaced.
const REPLACED: Duration = Duration::from_secs(5);

/// Number of connections of a busy API and a worker. An API never waits for a wake-up.
const USED: usize = 9;

/// Starts an API and a worker whose connections to Redis use a proxy. Only wake-ups and pushes inform them.
async fn behind_a_proxy(redis: &Redis) -> (ScaledOut, Proxy) {
    let proxy = Proxy::before(&redis.url().replace("redis://", "")).await;
    let scaled = ScaledOut::new().with("REDIS_URL", proxy.base.replace("http://", "redis://"));
    (scaled.with("HOLDFAST_LOOK_MS", 60_000).with("HOLDFAST_FLUSH_MS", 60_000), proxy)
}

async fn is_ready(client: &Client) -> bool {
    client.request(reqwest::Method::GET, "/readyz").send().await.unwrap().status() == 200
}

/// Breaks every connection in mid-stream. Expects a new connection for each, and that the stream continues.
async fn every_connection_is_replaced(scaled: &ScaledOut, proxy: &Proxy, fail: impl FnOnce()) {
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=200] [delay=25] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 10).await;
    let before = proxy.arrivals();
    fail();
    let since = Instant::now();
    proxy.until_arrivals(before + USED).await;
    assert!(since.elapsed() < REPLACED, "it took {:?}", since.elapsed());
    println!("every connection was replaced within {:?}", since.elapsed());
    frames.extend(stream.up_to_nth("message.delta", 100).await);
    until("Redis is ready", async || is_ready(&client).await.then_some(())).await;
    frames.extend(stream.rest().await);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fall_silent_are_replaced_within_five_seconds() {
    let redis = Redis::start();
    let (scaled, proxy) = behind_a_proxy(&redis).await;
    every_connection_is_replaced(&scaled, &proxy, || proxy.silence()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_master_is_left_within_five_seconds() {
    let (old, new) = (Redis::start(), Redis::start());
    let (scaled, proxy) = behind_a_proxy(&old).await;
    every_connection_is_replaced(&scaled, &proxy, || {
        proxy.lead_to(&new.url().replace("redis://", ""));
        old.call(&format!("REPLICAOF {}", new.url().replace("redis://", "").replace(':', " "))).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_stops_and_resumes_is_used_again() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=200] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    scaled.redis.signal("STOP");
    until("Redis is away", async || (!is_ready(&client).await).then_some(())).await;
    scaled.redis.signal("CONT");
    let continued = Instant::now();
    until("Redis is ready", async || is_ready(&client).await.then_some(())).await;
    assert!(continued.elapsed() < REPLACED, "it took {:?}", continued.elapsed());
    frames.extend(stream.rest().await);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
}

/// The rights of `docs/operations/stores.md`.
const RIGHTS: &str = "~holdfast:* &holdfast:* -@all +ping +del +unlink +xadd +xlen +xrange +xrevrange +pexpire \
     +lpush +ltrim +blpop +get +set +time +evalsha +script|load +publish +spublish +subscribe +unsubscribe +ssubscribe \
     +sunsubscribe +hello +select +role +asking +cluster|slots";

#[tokio::test]
async fn a_user_with_the_documented_rights_is_enough() {
    let scaled = ScaledOut::new();
    let url = scaled.redis.url().replace("redis://", "redis://holdfast:secret@");
    let made = scaled.redis.call(&format!("ACL SETUSER holdfast on >secret {RIGHTS}")).unwrap();
    assert_eq!(made, "+OK");
    scaled.redis.call("ACL SETUSER default off").unwrap();
    let scaled = scaled.with("REDIS_URL", url).with("HOLDFAST_LOOK_MS", 60_000).with("HOLDFAST_FLUSH_MS", 60_000);
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut cancelled = client.stream("[tokens=5000] [delay=20] hi").await;
    cancelled.up_to_nth("message.delta", 20).await;
    client.cancel(&cancelled.run_id).await;
    assert_eq!(cancelled.rest().await.last().unwrap().event, "run.cancelled");
    assert!(is_ready(&client).await);
    for process in [&mut api, &mut worker] {
        let log = process.log_so_far();
        assert!(!log.contains("NOPERM"), "{log}");
    }
}

#[tokio::test]
async fn a_full_redis_counts_as_away_until_it_has_room() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=300] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    scaled.redis.call("CONFIG SET maxmemory 1").unwrap();
    until("Redis is full", async || (!is_ready(&client).await).then_some(())).await;
    // The stream continues from the archive, and messages are taken.
    frames.extend(stream.up_to_nth("message.delta", 60).await);
    let submission = client.start("[tokens=5] hi").await;
    assert_eq!(client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await["status"], "completed");
    scaled.redis.call("CONFIG SET maxmemory 0").unwrap();
    let room = Instant::now();
    until("Redis is ready", async || is_ready(&client).await.then_some(())).await;
    assert!(room.elapsed() < REPLACED, "it took {:?}", room.elapsed());
    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 300);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
}

#[tokio::test]
async fn a_redis_that_answers_ping_and_refuses_all_else_is_not_ready() {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    assert!(is_ready(&client).await);
    scaled.redis.call("ACL SETUSER default -@all +ping +hello +client").unwrap();
    let failure = client.request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(failure.status(), 503);
    assert_eq!(failure.json::<serde_json::Value>().await.unwrap()["reason"], "redis");
}
