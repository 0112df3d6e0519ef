//! Dead, stopped and poisonous workers.

use std::time::{Duration, Instant};

use serde_json::json;
use test_servers::Redis;

use crate::support::{
    Client, Embedded, EventFrame, EventStream, ScaledOut, agent, fold, stream_of, tools::ToolServer, until,
};

async fn assert_stored_is_folded(client: &Client, run_id: &str, frames: &[EventFrame]) {
    let run = client.run(run_id).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(run["output_message"]["content"], fold(frames));
    let terminal = frames.iter().filter(|frame| frame.is_terminal()).count();
    assert_eq!(terminal, 1);
    assert_eq!(client.events(run_id, None).await.rest().await.iter().filter(|frame| frame.is_terminal()).count(), 1);
}

#[tokio::test]
async fn a_killed_workers_run_is_taken_over_on_one_connection() {
    let scaled = ScaledOut::new();
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=80] [delay=20] hi").await;
    let mut frames = stream.up_to_nth("message.delta", 10).await;
    worker.kill();
    let _other = scaled.worker();
    let killed = Instant::now();
    frames.extend(stream.up_to("attempt.started").await);
    assert!(
        killed.elapsed() < Duration::from_secs(5),
        "lease and sweep are 1.75 s here; it took {:?}",
        killed.elapsed()
    );
    assert_eq!(frames.last().unwrap().data["reason"], "lease_expired");
    assert_eq!(frames.last().unwrap().data["crashes"], 1);
    let run_id = stream.run_id.clone();
    frames.extend(stream.rest().await);
    assert_stored_is_folded(&client, &run_id, &frames).await;
}

#[tokio::test]
async fn with_the_default_lease_a_killed_workers_run_is_taken_over_within_20_s() {
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 15_000).with("HOLDFAST_SWEEP_MS", 5_000);
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let mut stream = api.client().stream("[tokens=100] [delay=100] hi").await;
    stream.up_to_nth("message.delta", 3).await;
    let _other = scaled.worker();
    worker.kill();
    let killed = Instant::now();
    stream.up_to("attempt.started").await;
    assert!(killed.elapsed() < Duration::from_secs(21), "it took {:?}", killed.elapsed());
}

#[tokio::test]
async fn a_client_resumes_a_taken_over_run_at_another_api() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, worker) = (scaled.api(), scaled.api(), scaled.worker());
    let mut stream = first.client().stream("[tokens=60] [delay=20] hi").await;
    let mut frames = stream.up_to_nth("message.delta", 10).await;
    worker.kill();
    first.kill();
    let run_id = stream.run_id.clone();
    drop(stream);
    let _other = scaled.worker();
    let client = second.client();
    let cursor = frames.last().unwrap().id.clone();
    frames.extend(client.rest_after(&run_id, &cursor).await);
    assert_stored_is_folded(&client, &run_id, &frames).await;
}

/// Checks the fence: the first worker is stopped past its lease, and resumes while the second works.
async fn a_stopped_owner_changes_nothing(between: impl AsyncFnOnce(&Redis, &Client, &str)) {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    let owner = scaled.worker();
    let mut stream = client.stream("[tokens=150] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    owner.signal("STOP");
    let _second = scaled.worker();
    frames.extend(stream.up_to("attempt.started").await);
    frames.extend(stream.up_to_nth("message.delta", 5).await);
    between(&scaled.redis, &client, &run_id).await;
    owner.signal("CONT");
    frames.extend(stream.rest().await);
    fold(&frames);
    // No event of the first attempt follows the start of the second.
    let second_start = frames.iter().position(|frame| frame.data["attempt"] == 2).unwrap();
    assert!(frames[second_start..].iter().all(|frame| frame.position().0 == 2), "the stopped owner has written");
    assert_stored_is_folded(&client, &run_id, &frames).await;
    let replayed = client.events(&run_id, None).await.rest().await;
    assert_eq!(fold(&replayed), fold(&frames));
    assert_eq!(replayed.iter().filter(|frame| frame.position().0 == 2).count(), frames[second_start..].len());
}

#[tokio::test]
async fn a_stopped_owner_that_wakes_up_writes_nothing() {
    a_stopped_owner_changes_nothing(async |_, _, _| ()).await;
}

#[tokio::test]
async fn a_stopped_owner_that_wakes_up_after_redis_lost_everything_writes_nothing() {
    a_stopped_owner_changes_nothing(async |redis, _, _| redis.flush_all()).await;
}

#[tokio::test]
async fn one_poisonous_run_among_sixty_others_is_found_and_hurts_none_of_them() {
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 600).with("HOLDFAST_SWEEP_MS", 100);
    let mut api = scaled.api();
    let client = api.client();
    let mut healthy = Vec::new();
    for _ in 0..60 {
        let submission = client.start("[tokens=60] [delay=20] healthy").await;
        healthy.push(submission["run"]["id"].as_str().unwrap().to_owned());
    }
    let mut poison = client.stream("[tokens=5000] [delay=20] poison").await;
    let (mut deaths, mut attempt) = (0, 0);
    let (end, _survivor) = loop {
        let worker = scaled.worker();
        let frame = loop {
            let frame = poison.next().await.unwrap().expect("the stream continues to the end of the run");
            if frame.is_terminal() || frame.event == "message.delta" && frame.position().0 > attempt {
                break frame;
            }
        };
        if frame.is_terminal() {
            break (frame, worker);
        }
        attempt = frame.position().0;
        // After two deaths all runs are suspects, and a third worker has them together.
        for run_id in healthy.iter().filter(|_| deaths < 3) {
            until("a healthy run is executed beside the poisonous one", || async {
                let run = client.run(run_id).await;
                (run["attempt"] == deaths + 1 || run["finished_at"].is_string()).then_some(())
            })
            .await;
        }
        worker.kill();
        deaths += 1;
    };
    assert_eq!((end.event.as_str(), end.data["error"]["code"].as_str()), ("run.failed", Some("max_attempts")));
    assert!(deaths <= 9, "61, 31, 16, 8, 4 and 2 suspects at once, and then one, but not {deaths} deaths");
    let run = client.run(&poison.run_id).await;
    assert_eq!((run["status"].as_str(), run["error"]["code"].as_str()), (Some("failed"), Some("max_attempts")));
    for run_id in &healthy {
        assert_eq!(client.wait_for_run(run_id).await["status"], "completed");
    }
}

/// Starts a deployment in which a suspect needs a worker for itself, because its last worker also held another run. Both runs
/// take much longer than a test.
async fn after_a_death_that_leaves_a_narrow_suspect(client: &Client, scaled: &ScaledOut) -> (EventStream, EventStream) {
    let mut suspect = client.stream("[tokens=5000] [delay=20] suspect").await;
    for _ in 0..2 {
        let worker = scaled.worker();
        suspect.up_to("attempt.started").await;
        suspect.up_to("message.delta").await;
        worker.kill();
    }
    let worker = scaled.worker();
    suspect.up_to("attempt.started").await;
    suspect.up_to("message.delta").await;
    let mut beside = client.stream("[tokens=5000] [delay=20] beside").await;
    beside.up_to("message.delta").await;
    worker.kill();
    (suspect, beside)
}

#[tokio::test]
async fn a_suspect_that_needs_a_worker_begins_in_time_although_every_worker_is_busy_for_long() {
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 1_000).with("HOLDFAST_SWEEP_MS", 100);
    let mut api = scaled.api();
    let client = api.client();
    let (mut suspect, mut beside) = after_a_death_that_leaves_a_narrow_suspect(&client, &scaled).await;
    let killed = Instant::now();
    let mut worker = scaled.worker();
    beside.up_to("attempt.started").await;
    let second_start = suspect.up_to("attempt.started").await.pop().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(6), "it took {:?}", killed.elapsed());
    assert_eq!(
        (second_start.data["reason"].as_str(), second_start.data["crashes"].as_u64()),
        (Some("lease_expired"), Some(2))
    );
    worker.wait_for_log("handing over all runs");
    // The other run was handed over, which is no crash, and continues at another worker.
    let _other = scaled.worker();
    let next_attempt = beside.up_to("attempt.started").await.pop().unwrap();
    assert_eq!((next_attempt.data["reason"].as_str(), next_attempt.data["crashes"].as_u64()), (Some("drain"), Some(1)));
    for stream in [&suspect, &beside] {
        client.cancel(&stream.run_id).await;
        assert_eq!(client.wait_for_run(&stream.run_id).await["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_call_that_must_not_be_repeated_ends_before_its_worker_makes_room_for_a_suspect() {
    // The worker makes its call while the lease of the suspect still lasts, also on a busy machine.
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 4_000).with("HOLDFAST_SWEEP_MS", 100);
    let mut api = scaled.api();
    let client = api.client();
    let mut server = ToolServer::start().await;
    let agent_id =
        agent(&client, json!([server.describe()]), json!({"tools": {"kb__count": {"effect": "once"}}})).await;
    let (mut suspect, beside) = after_a_death_that_leaves_a_narrow_suspect(&client, &scaled).await;
    let mut calling = stream_of(&client, &agent_id, "[tokens=2] [call=kb__count {\"note\": \"one\"}]").await;
    let mut worker = scaled.worker();
    let arrival = server.arrival().await;
    worker.wait_for_log("handing over all runs");
    arrival.take_effect();
    arrival.answer("counted");
    suspect.up_to("attempt.started").await;
    // The run continues after the call, at a free worker.
    let _other = scaled.worker();
    let completed = calling.up_to("tool_call.completed").await.pop().unwrap();
    assert_eq!(completed.data["output"], "counted");
    assert_eq!(calling.rest().await.last().unwrap().event, "run.completed");
    assert_eq!(server.effects(), 1);
    for stream in [&suspect, &beside] {
        client.cancel(&stream.run_id).await;
        client.wait_for_run(&stream.run_id).await;
    }
}

#[tokio::test]
async fn embedded_a_killed_process_continues_at_once_after_a_restart() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let mut stream = holdfast.client().stream("[tokens=60] [delay=20] hi").await;
    let mut frames = stream.up_to_nth("message.delta", 10).await;
    let run_id = stream.run_id.clone();
    holdfast.kill();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let since = Instant::now();
    // Events in memory are lost with the process. The client's cursor stays valid and continues with the next attempt.
    let mut stream = client.events(&run_id, Some(&frames.last().unwrap().id)).await;
    frames.extend(stream.up_to("attempt.started").await);
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "the lease of an earlier process is void; it took {:?}",
        since.elapsed()
    );
    frames.extend(stream.rest().await);
    assert_stored_is_folded(&client, &run_id, &frames).await;
}

#[tokio::test]
async fn a_commit_without_a_wake_up_is_executed() {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    let submission = client.start("[tokens=3] hi").await;
    // The wake-up is lost, as when the API dies between commit and push.
    scaled.redis.flush_all();
    let _worker = scaled.worker();
    let run_id = submission["run"]["id"].as_str().unwrap();
    assert_eq!(client.wait_for_run(run_id).await["status"], "completed");
    until("the idle worker looks by itself", || async {
        let submission = client.start("[tokens=3] hi").await;
        scaled.redis.flush_all();
        let run = client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
        (run["status"] == "completed").then_some(())
    })
    .await;
}
