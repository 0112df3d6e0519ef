//! SIGTERM during load loses nothing.

use std::{
    collections::HashSet,
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Embedded, ScaledOut, ScriptGate, fold};

#[tokio::test]
async fn an_api_that_is_shut_down_breaks_its_streams_off_and_they_continue_elsewhere() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, _worker) = (scaled.api(), scaled.api(), scaled.worker());
    let client = first.client();
    let (mut streams, gate) = (Vec::new(), ScriptGate::closed());
    for _ in 0..10 {
        let mut stream = client.stream(&format!("[tokens=50] {} hi", gate.directive())).await;
        let received = stream.up_to("message.delta").await;
        streams.push((stream, received));
    }
    first.signal("TERM");
    let stopped = Instant::now();
    let client = second.client();
    let (mut pauses, mut broken) = (HashSet::new(), Vec::new());
    for (stream, mut frames) in streams {
        let run_id = stream.run_id.clone();
        let (read, last_words) = stream.until_broken().await;
        frames.extend(read);
        pauses.insert(last_words.strip_prefix("retry: ").unwrap().trim_end().parse::<u64>().unwrap());
        broken.push((run_id, frames));
    }
    gate.open();
    for (run_id, mut frames) in broken {
        let cursor = frames.last().unwrap().id.clone();
        frames.extend(client.rest_after(&run_id, &cursor).await);
        assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 50);
        assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    }
    assert!(pauses.iter().all(|pause| (50..1_000).contains(pause)) && pauses.len() > 1, "{pauses:?}");
    assert!(first.exit().success());
    assert!(stopped.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_worker_that_is_shut_down_finishes_short_runs_and_hands_over_the_rest() {
    let scaled = ScaledOut::new().with("HOLDFAST_DRAIN_MS", 5_000);
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut short = client.stream("[tokens=30] [delay=20] hi").await;
    let mut long = client.stream("[tokens=600] [delay=20] hi").await;
    let mut short_frames = short.up_to("message.delta").await;
    let mut long_frames = long.up_to("message.delta").await;
    worker.signal("TERM");
    worker.wait_for_log("shutting down");
    let _other = scaled.worker();
    short_frames.extend(short.rest().await);
    assert!(short_frames.iter().all(|frame| frame.position().0 < 2), "it was handed over although there was time");
    let run_id = long.run_id.clone();
    long_frames.extend(long.rest().await);
    assert!(worker.exit().success());
    let handed = long_frames.iter().find(|frame| frame.data["attempt"] == 2);
    let handed =
        handed.unwrap_or_else(|| panic!("it was not handed over: {:?}, {}", long_frames.last(), worker.log_so_far()));
    assert_eq!((handed.data["reason"].as_str(), handed.data["crashes"].as_u64()), (Some("drain"), Some(0)));
    let run = client.run(&run_id).await;
    assert_eq!(
        (run["status"].as_str(), &run["output_message"]["content"]),
        (Some("completed"), &fold(&long_frames).into())
    );
}

#[tokio::test]
async fn a_worker_that_is_shut_down_claims_nothing_more() {
    let scaled = ScaledOut::new();
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut busy = client.stream("[tokens=50] [delay=20] hi").await;
    busy.up_to("message.delta").await;
    worker.signal("TERM");
    worker.wait_for_log("shutting down");
    let submission = client.start("[tokens=1]").await;
    busy.rest().await;
    assert!(worker.exit().success());
    let run_id = submission["run"]["id"].as_str().unwrap();
    assert_eq!(client.run(run_id).await["status"], "queued");
    let _other = scaled.worker();
    assert_eq!(client.wait_for_run(run_id).await["attempt"], 1);
}

/// Keeps the write lock of a database until its input ends.
const LOCK: &str = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute('begin immediate')
print('locked', flush=True)
sys.stdin.read()";

fn lock(database: &Path) -> Child {
    let mut python = Command::new("python3");
    python.args(["-c", LOCK]).arg(database).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = python.spawn().unwrap();
    let mut locked = [0; 6];
    holder.stdout.as_mut().unwrap().read_exact(&mut locked).unwrap();
    assert_eq!(&locked, b"locked");
    holder
}

#[tokio::test]
async fn a_claim_that_waits_for_the_database_at_the_shutdown_does_not_hold_up_the_end_of_the_runs() {
    // The worker claims every 20 ms, so a claim waits as soon as the database is locked.
    let embedded = Embedded::new().with("HOLDFAST_POLL_MS", 20);
    let mut server = embedded.start();
    let client = server.client();
    let mut stream = client.stream("[tokens=60] [delay=20] hi").await;
    stream.up_to("message.delta").await;
    let mut holder = lock(&embedded.data_dir().join("holdfast.db"));
    for _ in 0..10 {
        stream.up_to("message.delta").await;
    }
    server.signal("TERM");
    server.wait_for_log("shutting down");
    let stopped = Instant::now();
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(server.exit().success());
    // The drain lasts 25 s at most.
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}: {}", stopped.elapsed(), server.log_so_far());
    let run = embedded.start().client().run(&stream.run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(1)), "{run}");
}
