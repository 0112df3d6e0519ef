//! An upgrade without a pause: processes of the version before and of this one on the same stores.
//!
//! `tests/servers/previous_version.sh` builds the version before from git.

use reqwest::Method;
use serde_json::{Value, json};
use test_servers::Postgres;

use crate::support::{
    Client, Embedded, EventFrame, Holdfast, ScaledOut, agent, answer, fold, migrate, stream_of, until,
};

/// An API and a worker of the version before, and an API of this version, which has migrated the database.
struct Upgrade {
    scaled: ScaledOut,
    older_api: Holdfast,
    older_worker: Holdfast,
    api: Holdfast,
}

impl Upgrade {
    fn begin() -> Self {
        let database = Postgres::database();
        // A worker that is shut down hands its runs over after a second.
        let scaled = ScaledOut::as_it_is(database.url().to_owned(), Some(database)).with("HOLDFAST_DRAIN_MS", 4_000);
        migrate(&mut scaled.previous_command("migrate"));
        let older_api = Holdfast::start(&mut scaled.previous_command("api"));
        let mut older_worker = Holdfast::start(&mut scaled.previous_command("worker"));
        older_worker.wait_for_log("worker started");
        migrate(&mut scaled.command("migrate"));
        let api = scaled.api();
        Self { scaled, older_api, older_worker, api }
    }

    /// Returns clients of the API of the version before, and of this one.
    fn clients(&mut self) -> (Client, Client) {
        (self.older_api.client(), self.api.client())
    }
}

/// Creates an agent that delegates to `helper`; returns its id.
async fn lead(client: &Client) -> String {
    agent(client, json!([]), json!({"name": "helper"})).await;
    agent(client, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await
}

async fn start(client: &Client, agent_id: &str, input: &str) -> String {
    let submission = client.post("/v1/runs", json!({"agent_id": agent_id, "input": input})).await.unwrap();
    submission["run"]["id"].as_str().unwrap().to_owned()
}

async fn planner_of(client: &Client) -> String {
    let agents = client.get("/v1/agents").await.unwrap();
    let planner = agents["items"].as_array().unwrap().iter().find(|agent| agent["kind"] == "planner");
    planner.expect("the program has a planner")["id"].as_str().unwrap().to_owned()
}

fn plan(mode: &str) -> String {
    let steps = json!([{"step_number": 1, "description": "[tokens=2] one", "executor_required": true}]);
    format!("[plan={}]", json!({"goal": "one step", "execution_mode": mode, "steps": steps}))
}

fn data(frames: &[EventFrame]) -> Vec<(String, Value)> {
    frames.iter().map(|frame| (frame.event.clone(), frame.data.clone())).collect()
}

#[tokio::test]
async fn a_newer_worker_takes_the_runs_of_an_older_one_that_is_shut_down() {
    continues_on_a_newer_worker("TERM").await;
}

#[tokio::test]
async fn a_newer_worker_takes_the_runs_of_an_older_one_that_was_killed() {
    continues_on_a_newer_worker("KILL").await;
}

async fn continues_on_a_newer_worker(signal: &str) {
    let mut upgrade = Upgrade::begin();
    let (older, client) = upgrade.clients();
    let mut stream = older.stream("[tokens=200] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to("message.delta").await;
    let _worker = upgrade.scaled.worker();
    upgrade.older_worker.signal(signal);
    frames.extend(stream.rest().await);
    let run = client.run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(2)));
    assert_eq!(run["output_message"]["content"], fold(&frames));
}

#[tokio::test]
async fn the_version_before_reads_and_answers_what_this_version_stored() {
    let mut upgrade = Upgrade::begin();
    let (older, client) = upgrade.clients();
    let lead_id = lead(&client).await;
    let planner_id = planner_of(&client).await;
    let mut worker = upgrade.scaled.worker();
    let listed = older.get("/v1/agents").await.unwrap();
    assert!(listed["items"].as_array().unwrap().iter().any(|agent| agent["name"] == "lead"));
    assert_eq!(older.get(&format!("/v1/agents/{lead_id}")).await.unwrap()["name"], "lead");

    let run_id = start(&client, &planner_id, &plan("draft_only")).await;
    let approvals = format!("/v1/runs/{run_id}/approvals");
    let approval = until("the planner asks", || async {
        let listed = older.get(&approvals).await.unwrap();
        listed["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(approval["status"], "pending");
    let run = older.run(&run_id).await;
    let messages = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
    assert!(!older.get(&messages).await.unwrap()["items"].as_array().unwrap().is_empty());
    let path = format!("{approvals}/{}", approval["id"].as_str().unwrap());
    answer(older.request(Method::POST, &path).json(&json!({"decision": "approve"}))).await.unwrap();
    assert_eq!(client.wait_for_run(&run_id).await["status"], "completed");
    let plans = client.get(&format!("/v1/runs/{run_id}/plans")).await.unwrap();
    assert_eq!(plans["items"][0]["status"], "completed");
    assert!(!worker.log_so_far().contains("ERROR"), "{}", worker.log_so_far());
    assert!(!upgrade.older_api.log_so_far().contains("ERROR"), "{}", upgrade.older_api.log_so_far());
}

#[tokio::test]
async fn a_data_folder_of_the_version_before_is_opened_with_its_runs() {
    let embedded = Embedded::new();
    let mut older = Holdfast::start(&mut embedded.previous_command());
    let client = older.client();
    let agent_id = agent(&client, json!([]), json!({"name": "tester"})).await;
    let frames = stream_of(&client, &agent_id, "[tokens=5] hi").await.rest().await;
    let mut live = stream_of(&client, &agent_id, "[tokens=60] [delay=20] hi").await;
    live.up_to("message.delta").await;
    let live_id = live.run_id.clone();
    older.kill();
    migrate(embedded.command().arg("migrate"));
    let mut newer = embedded.start_as_it_is();
    let client = newer.client();
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    assert_eq!(data(&client.events(run_id, None).await.rest().await), data(&frames));
    assert_eq!(client.wait_for_run(&live_id).await["status"], "completed");
    let lead_id = agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "tester"}]})).await;
    let frames = stream_of(&client, &lead_id, "[delegate=tester [tokens=2] count]").await.rest().await;
    assert!(frames.iter().any(|frame| frame.event == "subagent.completed"));
}
