//! Cancellation: of runs in every state, from any API, and during outages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Embedded, ScaledOut, fold};

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once() {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    let submission = client.start("[tokens=3] hi").await;
    let run_id = submission["run"]["id"].as_str().unwrap();
    let run = client.cancel(run_id).await;
    assert_eq!((run["status"].as_str(), &run["output_message"]), (Some("cancelled"), &Value::Null));
    let frames = client.events(run_id, None).await.rest().await;
    assert_eq!(frames.iter().map(|frame| frame.event.as_str()).collect::<Vec<_>>(), ["run.queued", "run.cancelled"]);
    fold(&frames);
    // A cancel of an ended run returns it unchanged, and no worker claims it.
    assert_eq!(client.cancel(run_id).await, run);
    let _worker = scaled.worker();
    let other = client.start("[tokens=1]").await;
    client.wait_for_run(other["run"]["id"].as_str().unwrap()).await;
    assert_eq!(client.run(run_id).await, run);
}

#[tokio::test]
async fn a_streaming_run_is_cancelled_from_another_api_and_keeps_its_text() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, _worker) = (scaled.api(), scaled.api(), scaled.worker());
    let mut stream = first.client().stream("[tokens=1000] [delay=10] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 10).await;
    let since = Instant::now();
    let client = second.client();
    client.cancel(&run_id).await;
    assert!(since.elapsed() < Duration::from_secs(1), "acknowledged after {:?}", since.elapsed());
    frames.extend(stream.rest().await);
    assert!(since.elapsed() < Duration::from_secs(2), "effective after {:?}", since.elapsed());
    assert_eq!(frames.last().unwrap().event, "run.cancelled");
    let run = client.run(&run_id).await;
    assert_eq!(
        (run["status"].as_str(), run["output_message"]["status"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    assert_eq!(run["output_message"]["content"], fold(&frames));
    // The worker ended the run in its own attempt.
    assert_eq!(run["attempt"], 1);
}

#[tokio::test]
async fn a_run_of_a_dead_worker_is_cancelled() {
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 60_000).with("HOLDFAST_FLUSH_MS", 100);
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=1000] [delay=10] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 50).await;
    worker.kill();
    let since = Instant::now();
    client.cancel(&run_id).await;
    frames.extend(stream.rest().await);
    assert!(since.elapsed() < Duration::from_secs(4), "effective after {:?}", since.elapsed());
    let run = client.run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("cancelled"), Some(2)));
    assert_eq!(run["output_message"]["content"], fold(&frames));
    assert!(!fold(&frames).is_empty(), "the archived text is kept");
}

#[tokio::test]
async fn a_cancelled_run_of_a_dead_worker_and_a_dead_api_is_ended_by_the_next_worker() {
    let scaled = ScaledOut::new().with("HOLDFAST_CANCEL_GRACE_MS", 600_000);
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=1000] [delay=10] hi").await;
    let run_id = stream.run_id.clone();
    stream.up_to("message.delta").await;
    worker.kill();
    client.cancel(&run_id).await;
    let _worker = scaled.worker();
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
    assert_eq!(client.run(&run_id).await["status"], "cancelled");
}

#[tokio::test]
async fn without_redis_a_cancel_is_effective_within_five_seconds() {
    let mut scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 15_000).with("HOLDFAST_CANCEL_GRACE_MS", 600_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=10000] [delay=10] hi").await;
    let run_id = stream.run_id.clone();
    stream.up_to("message.delta").await;
    scaled.redis.kill();
    let since = Instant::now();
    client.cancel(&run_id).await;
    let run = client.wait_for_run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("cancelled"), Some(1)));
    assert!(
        since.elapsed() < Duration::from_secs(9),
        "the renewal comes every 5 s; effective after {:?}",
        since.elapsed()
    );
}

/// Cancels runs at about the moment at which they complete.
async fn races(client: &Client, rounds: usize) {
    let mut ends = Vec::new();
    for round in 0..rounds {
        let stream = client.stream("[tokens=6] [delay=3] hi").await;
        let run_id = stream.run_id.clone();
        let cancel = async {
            tokio::time::sleep(Duration::from_millis((round as u64 * 7) % 40)).await;
            client.cancel(&run_id).await
        };
        let (frames, _) = tokio::join!(stream.rest(), cancel);
        let terminal: Vec<_> = frames.iter().filter(|frame| frame.is_terminal()).collect();
        assert_eq!(terminal.len(), 1, "{frames:?}");
        let run = client.wait_for_run(&run_id).await;
        assert_eq!(format!("run.{}", run["status"].as_str().unwrap()), terminal[0].event);
        assert_eq!(run["output_message"]["content"].as_str().unwrap_or(""), fold(&frames));
        assert_eq!(client.events(&run_id, None).await.rest().await, frames);
        ends.push(terminal[0].event.clone());
    }
    for end in ["run.completed", "run.cancelled"] {
        assert!(ends.iter().any(|kind| kind == end), "no race was won by {end}: {ends:?}");
    }
}

#[tokio::test]
async fn scaled_out_cancel_and_completion_race_to_one_terminal_event() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    races(&api.client(), 60).await;
}

#[tokio::test]
async fn embedded_cancel_and_completion_race_to_one_terminal_event() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    races(&holdfast.client(), 60).await;
}

#[tokio::test]
async fn deleting_a_conversation_cancels_its_live_run() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}", conversation["id"].as_str().unwrap());
    let accepted =
        client.post(&format!("{path}/messages"), json!({"content": "[tokens=1000] [delay=20]"})).await.unwrap();
    let run_id = accepted["run"]["id"].as_str().unwrap();
    let mut stream = client.events(run_id, None).await;
    stream.up_to("message.delta").await;
    client.delete(&path).await.unwrap();
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
    assert_eq!(client.get(&format!("/v1/runs/{run_id}")).await.unwrap_err().status, 404);
}
