//! A standby of PostgreSQL takes over.

use std::time::{Duration, Instant};

use serde_json::json;
use test_servers::Postgres;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, Gate, GateMode, ScaledOut, fold, until};

/// Posts messages until the stop; returns the runs of those that were acknowledged. The others were refused.
async fn post_until(stop: CancellationToken, client: Client) -> Vec<String> {
    let mut acknowledged = Vec::new();
    while !stop.is_cancelled() {
        if let Ok(submission) = client.post("/v1/runs", json!({"input": "[tokens=1]"})).await {
            acknowledged.push(submission["run"]["id"].as_str().unwrap().to_owned());
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_from_a_primary_that_dies_and_nothing_acknowledged_is_lost() {
    a_standby_takes_over(|primary, _| primary.stop(), Duration::from_secs(5)).await;
}

/// Its connections stay open and nothing comes, until the time-out of an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_from_a_primary_that_is_cut_off_and_nothing_acknowledged_is_lost() {
    a_standby_takes_over(|_, gate| gate.set_mode(GateMode::Silent), Duration::from_secs(15)).await;
}

/// Cuts off the primary, promotes the standby, and expects messages to be taken again within this time.
async fn a_standby_takes_over(cut_off: impl FnOnce(&mut Postgres, &Gate), within: Duration) {
    let (mut primary, standby) = Postgres::start_with_standby();
    let database = primary.create_database();
    let name = database.url().rsplit('/').next().unwrap();
    let gate = Gate::before(database.url(), GateMode::Open);
    let url = gate.url().replace(&format!("/{name}"), &format!(",127.0.0.1:{}/{name}", standby.port()));
    let scaled = ScaledOut::on(url, None).with("HOLDFAST_LEASE_MS", 15_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=400] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    let stop = CancellationToken::new();
    let posts = [(); 8].map(|()| tokio::spawn(post_until(stop.clone(), client.clone())));
    frames.extend(stream.up_to_nth("message.delta", 40).await);

    cut_off(&mut primary, &gate);
    standby.promote();
    let since = Instant::now();
    let first =
        until("messages are taken", async || client.post("/v1/runs", json!({"input": "[tokens=1]"})).await.ok()).await;
    let first = first["run"]["id"].as_str().unwrap().to_owned();
    assert!(since.elapsed() < within, "it took {:?}", since.elapsed());
    println!("a message was acknowledged {:?} after the promotion", since.elapsed());
    stop.cancel();
    let acknowledged = futures::future::try_join_all(posts).await.unwrap().concat();
    assert!(!acknowledged.is_empty());

    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 400);
    let run = client.run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(1)));
    assert_eq!(run["output_message"]["content"], fold(&frames));
    for run_id in acknowledged.iter().chain([&first]) {
        assert_eq!(client.wait_for_run(run_id).await["status"], "completed", "{run_id}");
    }
}
