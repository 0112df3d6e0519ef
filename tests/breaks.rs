//! A run with every kind of event, in which one part breaks at each kind. A client that reconnects receives the complete run.
//!
//! `resume.rs` shows that a client can resume after every single event.

use crate::{
    in_both_modes,
    support::{Client, Deployment, EventFrame, EventStream, Proxy, ScaledOut, UncleanEnd, fold, without_superseded},
};

in_both_modes!(a_run_is_complete_whenever_its_worker_dies, a_run_is_complete_however_often_its_connection_breaks);

const INPUT: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=20] [delay=100] hi"#;

/// The kinds in the order of a run: a step with a tool call, and a step that reasons and answers.
const KINDS: [&str; 12] = [
    "run.queued",
    "attempt.started",
    "step.started",
    "message.delta",
    "tool_call.delta",
    "tool_call.started",
    "tool_call.completed",
    "step.completed",
    "reasoning.delta",
    "message.delta",
    "message.completed",
    "run.completed",
];

/// Checks that a client that has read the run to its end has all of it.
async fn is_complete(client: &Client, run_id: &str, frames: &[EventFrame]) {
    let run = client.wait_for_run(run_id).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(run["output_message"]["content"], fold(frames));
    assert!(frames.last().unwrap().is_terminal());
    assert!(client.rest_after(run_id, &frames.last().unwrap().id).await.is_empty());
    let replayed = client.events(run_id, None).await.rest().await;
    assert_eq!(without_superseded(&replayed), without_superseded(frames));
}

/// Reads a run up to each kind of event, breaks something there, and resumes.
async fn break_at_every_kind(
    mut client: Client,
    mut breaks: impl AsyncFnMut() -> Client,
) -> (Client, String, Vec<EventFrame>) {
    let mut stream = client.stream(INPUT).await;
    let run_id = stream.run_id.clone();
    let mut frames = Vec::new();
    for kind in KINDS {
        frames.extend(stream.up_to(kind).await);
        client = breaks().await;
        let last: &EventFrame = frames.last().unwrap();
        if last.is_terminal() {
            break;
        }
        stream = client.events(&run_id, Some(&last.id)).await;
    }
    (client, run_id, frames)
}

async fn a_run_is_complete_whenever_its_worker_dies(deployment: Deployment) {
    let mut deployment =
        deployment.with("HOLDFAST_MAX_CRASHES", 100).with("HOLDFAST_LEASE_MS", 600).with("HOLDFAST_SWEEP_MS", 100);
    let client = deployment.client();
    let breaks = async || {
        deployment.kill_worker();
        deployment.client()
    };
    let (client, run_id, frames) = break_at_every_kind(client, breaks).await;
    is_complete(&client, &run_id, &frames).await;
    // Some kills hit a running attempt. How many came too late depends on the machine.
    assert!(client.run(&run_id).await["attempt"].as_u64() > Some(2));
}

#[tokio::test]
async fn a_run_is_complete_whenever_its_api_dies() {
    let mut deployment = Deployment::scaled_out();
    let client = deployment.client();
    let breaks = async || {
        deployment.kill_api();
        deployment.client()
    };
    let (client, run_id, frames) = break_at_every_kind(client, breaks).await;
    is_complete(&client, &run_id, &frames).await;
    assert_eq!(client.run(&run_id).await["attempt"], 1, "the worker has noticed nothing");
}

#[tokio::test]
async fn a_run_is_complete_whenever_redis_is_flushed() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let breaks = async || {
        scaled.redis.flush_all();
        client.clone()
    };
    let (client, run_id, frames) = break_at_every_kind(client.clone(), breaks).await;
    is_complete(&client, &run_id, &frames).await;
    assert_eq!(client.run(&run_id).await["attempt"], 1, "the worker has noticed nothing");
}

/// Returns the events before the connection breaks, or all.
async fn until_it_breaks(client: &Client, run_id: &str, cursor: &str) -> Vec<EventFrame> {
    let mut frames = Vec::new();
    let Ok(response) = client.events_request(run_id, Some(cursor)).send().await else { return frames };
    assert_eq!(response.status(), 200);
    let mut stream = EventStream::new(response);
    loop {
        match stream.next().await {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return frames,
            Err(UncleanEnd) => return frames,
        }
    }
}

async fn a_run_is_complete_however_often_its_connection_breaks(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let proxy = Proxy::before(client.base()).await;
    let far = Client::new(&proxy.base);
    let submission = client.start(INPUT).await;
    let run_id = submission["run"]["id"].as_str().unwrap();
    let mut frames: Vec<EventFrame> = Vec::new();
    // The response head has about 300 bytes, so the first break is in the head, and the others are in the frames.
    for bytes in (100..).step_by(41) {
        proxy.reset_and_again_after_bytes(bytes);
        let cursor = frames.last().map_or("0-0".to_owned(), |frame| frame.id.clone());
        frames.extend(until_it_breaks(&far, run_id, &cursor).await);
        if frames.last().is_some_and(EventFrame::is_terminal) {
            break;
        }
    }
    assert!(proxy.resets() > 10, "{}", proxy.resets());
    is_complete(&client, run_id, &frames).await;
}
