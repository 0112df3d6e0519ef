//! Memories: an agent remembers a user beyond a conversation, and the user sees, edits, exports and deletes all of it.

use chrono::{SecondsFormat, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, EventFrame, agent, answer, frames_of, of_kind, stream_of, until},
};

in_both_modes!(
    a_memory_of_one_conversation_is_recalled_in_another,
    a_killed_worker_remembers_once,
    a_deleted_memory_is_gone_from_later_requests_and_from_traces,
    an_expired_memory_is_gone,
);
in_either_mode!(
    only_an_agent_with_a_memory_has_its_tools,
    a_user_edits_exports_and_deletes_memories,
    memories_and_their_texts_have_limits,
    a_clients_own_tool_has_its_name,
    an_agent_forgets,
    a_step_of_a_plan_remembers_for_the_conversation_above,
);

const MEMORIES: &str = "/v1/users/me/memories";

async fn agent_named(client: &Client, name: &str) -> String {
    agent(client, json!([]), json!({"name": name, "memory": true})).await
}

fn remember(text: &str) -> String {
    format!("[call=remember {}]", json!({"text": text}))
}

/// Returns the outputs and the errors of the calls of a run.
fn results(frames: &[EventFrame]) -> Vec<Value> {
    let completed = of_kind(frames, "tool_call.completed");
    completed
        .iter()
        .map(|call| if call["error"].is_null() { &call["output"] } else { &call["error"]["code"] })
        .cloned()
        .collect()
}

/// Returns the answer of the run, in which the scripted model quotes what it has read.
async fn answer_of(client: &Client, frames: &[EventFrame]) -> String {
    let run = client.wait_for_run(frames[0].data["run_id"].as_str().unwrap()).await;
    run["output_message"]["content"].as_str().unwrap().to_owned()
}

async fn recalled(client: &Client, agent_id: &str, query: &str) -> (Vec<EventFrame>, String) {
    let input = format!("[call=recall {}] [tokens=1]", json!({"query": query}));
    let frames = frames_of(client, agent_id, &input).await;
    let answer = answer_of(client, &frames).await;
    (frames, answer)
}

async fn listed(client: &Client) -> Vec<Value> {
    client.get(MEMORIES).await.unwrap()["items"].as_array().unwrap().clone()
}

fn path_of(memory: &Value) -> String {
    format!("{MEMORIES}/{}", memory["id"].as_str().unwrap())
}

async fn a_memory_of_one_conversation_is_recalled_in_another(mut deployment: Deployment) {
    let client = deployment.client();
    let (alma, otto) = (agent_named(&client, "alma").await, agent_named(&client, "otto").await);
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let shared = json!({"text": "Lives in Bonn", "scope": "user"});
    let input = format!("{} [call=remember {shared}] [tokens=1]", remember("Likes plum cake"));
    let frames = frames_of(&ann, &alma, &input).await;
    let first: Value = serde_json::from_str(results(&frames)[0].as_str().unwrap()).unwrap();
    assert!(of_kind(&frames, "memory.told").is_empty());

    let (frames, answer) = recalled(&ann, &alma, "Which PLUM cake?").await;
    assert!(answer.contains("Likes plum cake") && !answer.contains("Bonn"), "{answer}");
    let told = of_kind(&frames, "memory.told");
    assert_eq!(told[0]["memories"], json!([{"id": first["id"], "version": 1}]));
    assert_eq!(told[0]["call_id"], of_kind(&frames, "tool_call.completed")[0]["call_id"]);
    assert!(!results(&frames)[0].to_string().contains("plum"), "the result names memories by their ids");
    let (_, answer) = recalled(&ann, &alma, "").await;
    assert!(answer.contains("Lives in Bonn"), "{answer}");

    let (_, answer) = recalled(&ann, &otto, "").await;
    assert!(answer.contains("Lives in Bonn") && !answer.contains("plum"), "{answer}");
    let (frames, answer) = recalled(&bob, &alma, "").await;
    assert!(answer.contains("There are no such memories.") && of_kind(&frames, "memory.told").is_empty(), "{answer}");
    assert_eq!(listed(&bob).await, [Value::Null; 0]);

    let memories = listed(&ann).await;
    let newest = &memories[0];
    assert_eq!(
        (&newest["text"], &newest["scope"], &newest["agent"]),
        (&json!("Lives in Bonn"), &json!("user"), &json!("alma"))
    );
    let run = ann.run(memories[1]["source"]["run_id"].as_str().unwrap()).await;
    assert_eq!(memories[1]["source"]["conversation_id"], run["conversation_id"]);
    assert_eq!(memories[1]["source"]["message_id"], run["input_message_id"]);
    let of_otto = ann.get(&format!("{MEMORIES}?agent=otto")).await.unwrap();
    assert_eq!(of_otto, json!({"items": [], "next": null}));
}

/// Calls of one run, runs, and deaths of their worker.
const CALLS: usize = 5;
const RUNS: usize = 8;
const KILLS: usize = 3;

async fn a_killed_worker_remembers_once(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_CRASHES", 100);
    let mut client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let mut runs = Vec::new();
    for run in 0..RUNS {
        let calls: Vec<String> = (0..CALLS).map(|call| remember(&format!("{run}/{call}"))).collect();
        let body = json!({"agent_id": alma, "input": format!("{} [tokens=2]", calls.join(" "))});
        let submission = client.post("/v1/runs", body).await.unwrap();
        runs.push(submission["run"]["id"].as_str().unwrap().to_owned());
    }
    for kill in 1..=KILLS {
        until("further facts are remembered", || async {
            (listed(&client).await.len() * (KILLS + 1) > RUNS * CALLS * kill).then_some(())
        })
        .await;
        deployment.kill_worker();
        client = deployment.client();
    }
    for run_id in &runs {
        let run = client.wait_for_run(run_id).await;
        assert_eq!(run["status"], "completed", "{run}");
        let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
        assert!(calls["items"].as_array().unwrap().iter().all(|call| call["error"].is_null()), "{calls:#}");
    }
    let mut texts: Vec<String> =
        listed(&client).await.iter().map(|memory| memory["text"].as_str().unwrap().to_owned()).collect();
    texts.sort_unstable();
    let mut expected: Vec<String> =
        (0..RUNS).flat_map(|run| (0..CALLS).map(move |call| format!("{run}/{call}"))).collect();
    expected.sort_unstable();
    assert_eq!(texts, expected);
}

async fn a_deleted_memory_is_gone_from_later_requests_and_from_traces(mut deployment: Deployment) {
    let client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let frames = frames_of(&client, &alma, &format!("{} [tokens=1]", remember("Likes plum cake"))).await;
    let source = frames[0].data["run_id"].as_str().unwrap().to_owned();
    let mut stream = stream_of(&client, &alma, "[call=recall {}] [approval] [tokens=1]").await;
    let waiting = stream.up_to("approval.requested").await;
    let memory = listed(&client).await.remove(0);
    client.delete(&path_of(&memory)).await.unwrap();
    assert_eq!(client.get(&path_of(&memory)).await.unwrap_err().code, "memory_not_found");

    let approval = waiting.last().unwrap().data["approval_id"].as_str().unwrap().to_owned();
    let decision = format!("/v1/runs/{}/approvals/{approval}", stream.run_id);
    client.post(&decision, json!({"decision": "approve"})).await.unwrap();
    let run = client.wait_for_run(&stream.run_id).await;
    let answer = run["output_message"]["content"].as_str().unwrap();
    assert!(answer.contains("\"deleted\":true") && !answer.contains("plum"), "{answer}");

    for part in ["tool_calls", "messages"] {
        let of_run = |run: &str| format!("/v1/runs/{run}/{part}");
        let trace = client.get(&of_run(&stream.run_id)).await.unwrap();
        assert!(!trace.to_string().contains("plum"), "{trace:#}");
        let path = of_run(&source);
        until("the sweeper has removed the arguments", || async {
            let trace = client.get(&path).await.unwrap();
            trace.to_string().contains("\"text\":\"[deleted]\"").then_some(())
        })
        .await;
    }
}

async fn an_expired_memory_is_gone(mut deployment: Deployment) {
    let client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let soon = (Utc::now() + TimeDelta::seconds(3)).to_rfc3339_opts(SecondsFormat::Millis, true);
    let expiring = json!({"text": "Is in Rome", "expires": soon});
    let past = json!({"text": "Was in Rome", "expires": "2020-01-01"});
    let unclear = json!({"text": "Will be in Rome", "expires": "soon"});
    let input = format!(
        "[call=remember {past}] [call=remember {unclear}] [call=remember {expiring}] [call=recall {{}}] [tokens=1]"
    );
    let frames = frames_of(&client, &alma, &input).await;
    assert_eq!(results(&frames)[..2], ["invalid_arguments", "invalid_arguments"]);
    assert_eq!(of_kind(&frames, "memory.told").len(), 1);
    until("the memory has expired", || async { listed(&client).await.is_empty().then_some(()) }).await;
    assert!(recalled(&client, &alma, "").await.1.contains("There are no such memories."));
}

async fn only_an_agent_with_a_memory_has_its_tools(mut deployment: Deployment) {
    let client = deployment.client();
    let plain = agent(&client, json!([]), json!({})).await;
    let frames = frames_of(&client, &plain, &format!("{} [tokens=1]", remember("x"))).await;
    assert_eq!(results(&frames), ["unknown_tool"]);
}

async fn a_user_edits_exports_and_deletes_memories(mut deployment: Deployment) {
    let client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let texts: Vec<String> = (0..12).map(|n| remember(&format!("fact {n}"))).collect();
    frames_of(&client, &alma, &format!("{} [parallel] [tokens=1]", texts.join(" "))).await;
    let memories = listed(&client).await;
    assert_eq!(memories.len(), 12);
    let path = path_of(&memories[0]);
    let edited = client.patch(&path, json!({"text": " Likes pears ", "version": 1})).await.unwrap();
    assert_eq!(
        (&edited["text"], &edited["version"], &edited["writer"]),
        (&json!("Likes pears"), &json!(2), &json!("user"))
    );
    let stale = client.patch(&path, json!({"text": "x", "version": 1})).await.unwrap_err();
    assert_eq!((stale.status, stale.code.as_str()), (409, "version_conflict"));
    let dated = client.patch(&path, json!({"expires_at": "2999-12-31"})).await.unwrap();
    assert_eq!(dated["expires_at"], "3000-01-01T00:00:00.000Z");
    let lasting = client.patch(&path, json!({"expires_at": null})).await.unwrap();
    assert_eq!((&lasting["expires_at"], &lasting["version"]), (&Value::Null, &json!(4)));
    for refused in [json!({"text": " "}), json!({"expires_at": "soon"}), json!({"expires_at": "2020-01-01"})] {
        let refused = client.patch(&path, refused).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_memory"));
    }
    let complete = client.get(&path).await.unwrap();
    let versions: Vec<&Value> =
        complete["versions"].as_array().unwrap().iter().map(|version| &version["writer"]).collect();
    assert_eq!(versions, ["agent", "user", "user", "user"]);
    assert!(recalled(&client, &alma, "pears").await.1.contains("Likes pears"));

    let response = client.request(Method::GET, &format!("{MEMORIES}/export")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]), (12, &complete), "the export has several pages");
    let other = client.user("bob").request(Method::GET, &format!("{MEMORIES}/export")).send().await.unwrap();
    assert_eq!(other.text().await.unwrap(), "");

    client.delete(&path).await.unwrap();
    assert_eq!(client.delete(&path).await.unwrap_err().code, "memory_not_found");
    assert_eq!(listed(&client).await.len(), 11);
    client.user("bob").delete(MEMORIES).await.unwrap();
    assert_eq!(listed(&client).await.len(), 11);
    client.delete(MEMORIES).await.unwrap();
    assert!(listed(&client).await.is_empty());
}

async fn memories_and_their_texts_have_limits(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_OWNER_MEMORIES", 2).with("HOLDFAST_MEMORY_CHARS", 10);
    let client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let calls = ["éééééééééé", "ééééééééééé", "b", "c"].map(remember).join(" ");
    let frames = frames_of(&client, &alma, &format!("{calls} [tokens=1]")).await;
    let results = results(&frames);
    assert_eq!([&results[1], &results[3]], ["invalid_arguments", "memory_full"]);
    let memories = listed(&client).await;
    assert_eq!(memories.len(), 2);
    let path = path_of(&memories[0]);
    client.patch(&path, json!({"text": "0123456789"})).await.unwrap();
    let refused = client.patch(&path, json!({"text": "0123456789a"})).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_memory"));
    client.delete(&path).await.unwrap();
    let frames = frames_of(&client, &alma, &format!("{} [tokens=1]", remember("d"))).await;
    assert_eq!(of_kind(&frames, "tool_call.completed")[0]["error"], Value::Null, "a deletion makes room");
}

async fn a_clients_own_tool_has_its_name(mut deployment: Deployment) {
    let client = deployment.client();
    let alma = agent_named(&client, "alma").await;
    let own = json!([{"name": "recall", "description": "the client's", "input_schema": {"type": "object"}}]);
    let body = json!({"agent_id": alma, "input": "[call=recall {}] [tokens=1]", "client_tools": own});
    let submission = client.post("/v1/runs", body).await.unwrap();
    let run_id = submission["run"]["id"].as_str().unwrap();
    let frames = client.events(run_id, None).await.up_to("tool_call.started").await;
    assert_eq!(frames.last().unwrap().data["by"], "client");
    client.cancel(run_id).await;
}

async fn an_agent_forgets(mut deployment: Deployment) {
    let client = deployment.client();
    let (alma, otto) = (agent_named(&client, "alma").await, agent_named(&client, "otto").await);
    frames_of(&client, &alma, &format!("{} [tokens=1]", remember("Likes plum cake"))).await;
    let id = listed(&client).await[0]["id"].clone();
    let forget = |id: &Value| format!("[call=forget {}] [tokens=1]", json!({"id": id}));
    let results_of = async |agent_id: &str, id: &Value| results(&frames_of(&client, agent_id, &forget(id)).await);
    let gone = ["There is no such memory now."];
    assert_eq!(results_of(&otto, &id).await, gone);
    assert_eq!(listed(&client).await.len(), 1, "another agent's memory stays");
    assert_eq!(results_of(&alma, &json!("plum cake")).await, gone);
    assert_eq!(results_of(&alma, &id).await, gone);
    assert!(listed(&client).await.is_empty());
    assert_eq!(results_of(&alma, &id).await, gone);
    answer(client.request(Method::DELETE, MEMORIES)).await.unwrap();
}

async fn a_step_of_a_plan_remembers_for_the_conversation_above(mut deployment: Deployment) {
    let client = deployment.client();
    let more = json!({"name": "alma", "kind": "planner", "memory": true});
    let alma = agent(&client, json!([]), more).await;
    let step = json!({
        "step_number": 1, "description": format!("{} [tokens=1]", remember("Likes plum cake")),
        "executor_required": true, "tools": ["remember"]
    });
    let plan = json!({"goal": "g", "steps": [step]});
    let frames = frames_of(&client, &alma, &format!("[plan={plan}] [tokens=1]")).await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let top = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    let memory = listed(&client).await.remove(0);
    assert_eq!(memory["source"]["conversation_id"], top["conversation_id"]);
    assert_eq!(memory["source"]["message_id"], top["input_message_id"]);
    assert_ne!(memory["source"]["run_id"], top["id"]);
    assert!(recalled(&client, &alma, "").await.1.contains("plum cake"), "the planner has the memory of its step");
}
