//! Trees: all runs that one message starts through subagents share their limits.

use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{Client, Deployment, Embedded, ErrorResponse, EventFrame, agent, frames_of, of_kind, refusal},
};

in_both_modes!(
    one_message_starts_no_more_runs_than_its_tree_may_have,
    a_tree_that_has_used_its_tokens_takes_no_further_step,
    a_cycle_of_agents_needs_an_agent_that_bounds_it,
);

/// Creates an agent that delegates to itself.
async fn recursive(client: &Client, times: u32) -> String {
    let definition = json!({"name": "lead", "subagents": [{"agent": "lead"}], "recursive": times});
    agent(client, json!([]), definition).await
}

fn codes(frames: &[EventFrame]) -> Vec<&str> {
    let outcomes = of_kind(frames, "tool_call.completed").into_iter();
    outcomes.filter_map(|outcome| outcome["error"]["code"].as_str()).collect()
}

async fn count_runs(client: &Client) -> usize {
    client.get("/v1/runs?limit=100").await.unwrap()["items"].as_array().unwrap().len()
}

async fn one_message_starts_no_more_runs_than_its_tree_may_have(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_TREE_RUNS", 7);
    let client = deployment.client();
    let lead_id = recursive(&client, 11).await;
    let deepest = "[delegate=lead [tokens=1] c]".repeat(4);
    let middle = format!("[delegate=lead [parallel] {deepest} [tokens=1] b]").repeat(4);
    let frames = frames_of(&client, &lead_id, &format!("[parallel] {middle} [tokens=1] a")).await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(count_runs(&client).await, 7, "of the 21 that the message asks for");
    // All four children of the first step have begun, and of their calls two.
    let children = of_kind(&frames, "subagent.started");
    assert_eq!((children.len(), codes(&frames).len()), (4, 0));
    let mut refused = 0;
    for child in children {
        let child = client.events(child["child_run_id"].as_str().unwrap(), None).await.rest().await;
        refused += codes(&child).into_iter().filter(|code| *code == "limit_reached").count();
    }
    assert_eq!(refused, 14);
}

async fn a_tree_that_has_used_its_tokens_takes_no_further_step(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_TREE_TOKENS", 60);
    let client = deployment.client();
    let lead_id = recursive(&client, 5).await;
    let frames = frames_of(&client, &lead_id, "[delegate=lead [tokens=5] b] [tokens=1] a").await;
    assert_eq!(frames.last().unwrap().event, "run.completed", "{:?}", frames.last().unwrap().data);
    let frames = frames_of(&client, &lead_id, "[delegate=lead [tokens=100] b] [tokens=1] a").await;
    let child = &of_kind(&frames, "subagent.completed")[0];
    assert_eq!(child["status"], "completed", "a step that has begun may exceed the limit");
    let failed = frames.last().unwrap();
    assert_eq!((failed.event.as_str(), &failed.data["error"]["code"]), ("run.failed", &json!("limit_exceeded")));
    assert!(failed.data["error"]["message"].as_str().unwrap().contains("HOLDFAST_MAX_TREE_TOKENS is 60"));
}

async fn a_cycle_of_agents_needs_an_agent_that_bounds_it(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let refused = async |answer: Result<Value, ErrorResponse>| {
        let refused = answer.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_agent"));
        refused.body["detail"].as_str().unwrap().to_owned()
    };
    let definition = |name: &str, subagent: &str| json!({"name": name, "subagents": [{"agent": subagent}]});
    let itself = refused(client.post("/v1/agents", definition("one", "one")).await).await;
    assert!(itself.starts_with("subagents: one → one is a cycle") && itself.contains("recursive: 2"), "{itself}");
    let one = client.post("/v1/agents", definition("one", "two")).await.unwrap()["id"].as_str().unwrap().to_owned();
    let both = refused(client.post("/v1/agents", definition("two", "one")).await).await;
    assert!(both.starts_with("subagents: two → one → two is a cycle"), "{both}");
    let mut bounded = definition("two", "one");
    bounded["recursive"] = json!(2);
    let two = client.post("/v1/agents", bounded).await.unwrap();
    assert_eq!(two["recursive"], 2);
    let path = format!("/v1/agents/{}", two["id"].as_str().unwrap());
    refused(client.patch(&path, json!({"recursive": null})).await).await;
    for times in [json!(1), json!(12)] {
        let problem = refused(client.patch(&path, json!({"recursive": times})).await).await;
        assert!(problem.starts_with("recursive: "), "{problem}");
    }
    // The chain is one, two, one, two; the next call of two is refused.
    let input = "[delegate=two [delegate=one [delegate=two [tokens=1] d] [tokens=1] c] [tokens=1] b] [tokens=1] a";
    let frames = frames_of(&client, &one, input).await;
    assert_eq!((frames.last().unwrap().event.as_str(), codes(&frames).len()), ("run.completed", 0));
    assert_eq!(count_runs(&client).await, 4);
    let itself = recursive(&client, 2).await;
    let input = "[delegate=lead [delegate=lead [tokens=1] c] [tokens=1] b] [tokens=1] a";
    let frames = frames_of(&client, &itself, input).await;
    let child = of_kind(&frames, "subagent.started")[0]["child_run_id"].as_str().unwrap().to_owned();
    let child = client.events(&child, None).await.rest().await;
    assert_eq!(codes(&child), ["limit_reached"]);
    let told = of_kind(&child, "tool_call.completed")[0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("lead may appear 2 times in one chain"), "{told}");
}

#[test]
fn a_file_with_a_cycle_of_agents_ends_the_start() {
    let embedded = Embedded::new();
    let file = embedded.data_dir().with_file_name("agents.yaml");
    let agents = |more: &str| {
        format!(
            "agents:\n  - {{name: one, subagents: [{{agent: two}}]}}\n  - {{name: two, subagents: [{{agent: one}}]{more}}}\n"
        )
    };
    std::fs::write(&file, agents("")).unwrap();
    let embedded = embedded.with("HOLDFAST_AGENTS", file.display());
    let reason = refusal(&mut embedded.command());
    assert!(reason.contains("agents.yaml") && reason.contains(" → ") && reason.contains("recursive: 2"), "{reason}");
    std::fs::write(&file, agents(", recursive: 2")).unwrap();
    embedded.start().wait_for_log("agents loaded");
}
