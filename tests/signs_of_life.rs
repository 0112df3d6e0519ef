//! Runs that take long and give signs of life, and runs that are silent, on the agent stream and of planners.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_either_mode,
    support::{BlockStream, Client, Deployment, EventFrame, agent, frames_of},
};

in_either_mode!(
    a_model_that_writes_slowly_outlives_the_silence_of_its_route,
    a_silent_model_fails_its_run_and_the_text_so_far_stays,
    the_deployments_and_the_agents_time_end_a_run_that_is_alive,
    an_agent_with_a_time_of_its_own_may_be_silent_for_that_time,
    progress_of_a_tool_is_a_sign_of_life,
    a_child_at_work_is_no_silence_of_its_parent,
    a_planner_may_write_for_longer_than_it_may_be_silent,
);

/// 60 words in at least 1.2 s.
const LONG: &str = "[tokens=60] [delay=20]";

/// One word, and a long silence before it.
const SILENT: &str = "[tokens=1] [delay=5000]";

/// Sends a message on the agent stream, and waits for the end of its run.
async fn ended(client: &Client, session: &str, message: &str) -> Value {
    let body = json!({"message": message, "context_type": "project", "session_id": session});
    let response = client.request(Method::POST, "/api/agent/stream").json(&body).send().await.unwrap();
    if response.status().is_success() {
        return client.wait_for_run(&BlockStream::of(response).run_id).await;
    }
    // The run has failed before its first output.
    let problem: Value = response.json().await.unwrap();
    client.get(problem["run"].as_str().unwrap_or_else(|| panic!("{problem}"))).await.unwrap()
}

/// Sends a message to an agent on the agent stream, and waits for the end of its run.
async fn ended_by(client: &Client, agent_id: &str, message: &str) -> Value {
    let made = client.post("/v1/conversations", json!({"agent_id": agent_id})).await.unwrap();
    ended(client, made["id"].as_str().unwrap(), message).await
}

fn error(run: &Value) -> (&str, &str) {
    (run["error"]["code"].as_str().unwrap_or_default(), run["error"]["message"].as_str().unwrap_or_default())
}

#[track_caller]
fn is_silent(run: &Value, ms: u64) {
    let (code, message) = error(run);
    assert_eq!(code, "limit_exceeded", "{run}");
    assert!(message.contains(&format!("no sign of life for {ms} ms")), "{message}");
}

#[track_caller]
fn is_too_long(run: &Value, ms: u64) {
    let (code, message) = error(run);
    assert_eq!(code, "limit_exceeded", "{run}");
    assert!(message.contains(&format!("longer than {ms} ms (max_duration_ms)")), "{message}");
}

async fn a_model_that_writes_slowly_outlives_the_silence_of_its_route(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 600);
    let client = deployment.client();
    assert_eq!(ended(&client, "tide", LONG).await["status"], "completed");
    let thinking = ended(&client, "tide", "[think] [tokens=40] [delay=20]").await;
    assert_eq!(thinking["status"], "completed");
}

async fn a_silent_model_fails_its_run_and_the_text_so_far_stays(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 400);
    let client = deployment.client();
    // The pause of this model before each word is longer than the limit.
    is_silent(&ended(&client, "tide", SILENT).await, 400);
    // Another route has no limit of silence.
    let native =
        client.post("/v1/sessions/tide/messages", json!({"content": "[tokens=1] [delay=1000]"})).await.unwrap();
    assert_eq!(client.wait_for_run(native["run"]["id"].as_str().unwrap()).await["status"], "completed");
}

async fn the_deployments_and_the_agents_time_end_a_run_that_is_alive(deployment: Deployment) {
    let mut deployment =
        deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 600).with("HOLDFAST_MAX_DURATION_MS", 1_000);
    let client = deployment.client();
    let endless = "[tokens=1000] [delay=20]";
    let run = ended(&client, "tide", endless).await;
    is_too_long(&run, 1_000);
    assert!(!run["output_message"]["content"].as_str().unwrap().is_empty());
    let hasty = agent(&client, json!([]), json!({"limits": {"max_duration_ms": 700}})).await;
    is_too_long(&ended_by(&client, &hasty, endless).await, 700);
}

async fn an_agent_with_a_time_of_its_own_may_be_silent_for_that_time(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 200);
    let client = deployment.client();
    let patient = agent(&client, json!([]), json!({"limits": {"max_duration_ms": 60_000}})).await;
    assert_eq!(ended_by(&client, &patient, "[tokens=1] [delay=1000]").await["status"], "completed");
}

async fn progress_of_a_tool_is_a_sign_of_life(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MCP_STDIO", true).with("HOLDFAST_AGENT_STREAM_DURATION_MS", 2_000);
    let client = deployment.client();
    let script = include_str!("signs_of_life/steady.py");
    let server = json!({"name": "steady", "transport": "stdio", "command": "python3", "args": ["-c", script]});
    let agent_id = agent(&client, json!([server]), json!({})).await;
    let alive = ended_by(&client, &agent_id, "[call=steady__work {\"pieces\":15}] [tokens=1]").await;
    assert_eq!(alive["status"], "completed", "{alive}");
    let silent = "[call=steady__work {\"pieces\":25,\"silent\":true}] [tokens=1]";
    is_silent(&ended_by(&client, &agent_id, silent).await, 2_000);
}

async fn a_child_at_work_is_no_silence_of_its_parent(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 800);
    let client = deployment.client();
    agent(&client, json!([]), json!({"name": "helper"})).await;
    let subagents = json!({"name": "lead", "subagents": [{"agent": "helper", "description": "helps"}]});
    let lead = agent(&client, json!([]), subagents).await;
    let run = ended_by(&client, &lead, "[delegate=helper [tokens=1] [delay=1600] count] [tokens=1]").await;
    assert_eq!(run["status"], "completed", "{run}");
}

async fn a_planner_may_write_for_longer_than_it_may_be_silent(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_PLANNER_MAX_DURATION_MS", 600);
    let client = deployment.client();
    let planner = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    let last = |frames: &[EventFrame]| frames.last().unwrap().data.clone();
    let plan = json!({"goal": "count", "steps": [
        {"step_number": 1, "description": LONG, "executor_required": true},
        {"step_number": 2, "description": LONG, "depends_on": [1]},
    ]});
    let ended = last(&frames_of(&client, &planner, &format!("[plan={plan}] {LONG}")).await);
    assert_eq!(ended["type"], "run.completed", "{ended}");
    is_silent(&last(&frames_of(&client, &planner, SILENT).await), 600);
}
