//! Third-party clients: each follows a run while its connections are reset and the API's process is killed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, ClientProgram, Deployment, EventFrame, Proxy, answer, fold, without_superseded};

/// A run with reasoning, a tool call and a question, so that it waits for the client. Its answer takes longer than a
/// reconnection.
pub const INPUT: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [approval] [tokens=300] [delay=15] hello"#;

/// After this text, a client of the native wire has read the id of an event whose data it does not receive.
pub const IN_A_FRAME: &str = "event: message.delta\n";

/// The user of a client in development mode that names none.
pub const DEFAULT_USER: &str = "debug_user";

pub fn is_delta(event: &Value) -> bool {
    event["type"] == "message.delta"
}

/// Returns all events of an ended run as JSON.
async fn log(client: &Client, run_id: &str) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut after = "0-0".to_owned();
    loop {
        let path = format!("/v1/runs/{run_id}/events?after={after}&limit=200");
        let page = answer(client.request(Method::GET, &path).header("accept", "application/json")).await.unwrap();
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        if page["complete"] == true {
            return events;
        }
        after = page["last_event_id"].as_str().unwrap().to_owned();
    }
}

fn frames_of(events: &[Value]) -> Vec<EventFrame> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let frames = events.iter().map(|event| EventFrame {
        id: text(event, "id"),
        event: text(event, "type"),
        data: event.clone(),
        raw: event.to_string(),
    });
    frames.collect()
}

/// Checks that no event is missing or repeated, and that the final text is the stored answer.
pub async fn is_exact(client: &Client, received: &[Value], end: &Value) {
    let run_id = received[0]["run_id"].as_str().unwrap();
    let frames = frames_of(received);
    let stored_answer = client.wait_for_run(run_id).await["output_message"]["content"].clone();
    assert_eq!(stored_answer, fold(&frames), "text of the events");
    assert_eq!(stored_answer, *end, "text of the client");
    // The log may lack superseded events. All other events must be equal to those of the log.
    let log = frames_of(&log(client, run_id).await);
    assert_eq!(without_superseded(&frames), without_superseded(&log));
}

/// Kills the process of a client's stream, and resets the client's connections, also in the middle of an event. Returns the
/// client's reports and its result. `user` is the client's name for the API.
pub async fn survives(
    mut program: ClientProgram,
    proxy: &Proxy,
    deployment: &mut Deployment,
    in_the_middle: &str,
    user: &str,
) -> (Vec<Value>, Value) {
    let mut received = program.up_to_nth(1, |event| event["type"] == "approval.requested").await;
    let question = received.last().unwrap();
    let (run_id, approval_id) = (question["run_id"].as_str().unwrap(), question["approval_id"].as_str().unwrap());
    let approve = json!({"decision": "approve"});
    deployment.client().user(user).post(&format!("/v1/runs/{run_id}/approvals/{approval_id}"), approve).await.unwrap();
    received.extend(program.up_to_nth(5, is_delta).await);
    deployment.kill_worker();
    proxy.until_refused().await;
    proxy.lead_to(deployment.client().base());
    received.extend(program.up_to_nth(1, |event| event["type"] == "attempt.started").await);
    received.extend(program.up_to_nth(10, is_delta).await);
    proxy.reset_and_again_after_text(in_the_middle);
    proxy.until_breaks(1).await;
    let (rest, end) = program.rest().await;
    received.extend(rest);
    (received, end)
}

/// Checks a client that follows a run by its id.
async fn follows(name: &str) {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let proxy = Proxy::before(client.base()).await;
    let submission = client.start(INPUT).await;
    let program = ClientProgram::start(name, &proxy.base, json!({"run_id": submission["run"]["id"]})).await;
    let (received, end) = survives(program, &proxy, &mut deployment, IN_A_FRAME, DEFAULT_USER).await;
    is_exact(&deployment.client(), &received, &end).await;
}

/// Checks a client that also starts the run.
async fn starts_and_follows(name: &str) {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let program = ClientProgram::start(name, &proxy.base, json!({"input": INPUT, "key": "once"})).await;
    let (received, end) = survives(program, &proxy, &mut deployment, IN_A_FRAME, DEFAULT_USER).await;
    let client = deployment.client();
    is_exact(&client, &received, &end).await;
    let runs = client.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

/// Checks the client of Durable Streams, whose result has more than the answer.
async fn follows_durably(live: &str) {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let proxy = Proxy::before(client.base()).await;
    let submission = client.start(INPUT).await;
    let parameters = json!({"run_id": submission["run"]["id"], "live": live});
    let program = ClientProgram::start("durable-streams", &proxy.base, parameters).await;
    let (received, end) = survives(program, &proxy, &mut deployment, "\"type\":\"message.delta\"", DEFAULT_USER).await;
    is_exact(&deployment.client(), &received, &end["text"]).await;
}

#[tokio::test]
async fn eventsource_loses_nothing() {
    starts_and_follows("eventsource").await;
}

#[tokio::test]
async fn the_event_source_of_a_browser_loses_nothing() {
    follows("browser").await;
}

#[tokio::test]
async fn fetch_event_source_loses_nothing_and_starts_one_run() {
    starts_and_follows("fetch-event-source").await;
}

#[tokio::test]
async fn httpx_sse_loses_nothing() {
    follows("httpx-sse").await;
}

#[tokio::test]
async fn durable_streams_lose_nothing_by_sse() {
    follows_durably("sse").await;
}

#[tokio::test]
async fn durable_streams_lose_nothing_by_long_poll() {
    follows_durably("long-poll").await;
}
