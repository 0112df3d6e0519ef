//! The differences of AG-UI's clients: versions of the protocol, names of their own, and the moment at which they leave.

use std::collections::HashSet;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, ClientProgram, Deployment, Proxy, StreamBlock, until},
};

in_both_modes!(a_client_that_hangs_up_ends_its_run_where_the_deployment_says_so,);
in_either_mode!(
    an_early_client_shows_two_calls_at_once_and_a_reasoning,
    a_client_of_version_1_reads_the_version,
    a_client_before_version_1_that_names_its_version_gets_reasoning,
    names_of_runs_are_unique_within_their_thread,
    a_cut_at_a_pause_that_another_client_ends_repeats_nothing,
    a_run_that_fails_before_its_first_output_ends_with_the_sentence,
    the_client_of_tanstack_shows_the_stored_messages_despite_cuts,
    a_reloaded_page_of_tanstack_has_its_answer,
);

fn input(thread: &str, run: &str, text: &str) -> Value {
    let messages = json!([{"id": format!("m-{thread}-{run}"), "role": "user", "content": text}]);
    json!({"threadId": thread, "runId": run, "messages": messages, "tools": [], "context": [], "state": {},
        "forwardedProps": {}})
}

fn post(client: &Client, body: &Value) -> RequestBuilder {
    client.request(Method::POST, "/ag-ui").json(body)
}

async fn frames(request: RequestBuilder) -> Vec<StreamBlock> {
    BlockStream::open(request).await.rest().await
}

fn types(frames: &[StreamBlock]) -> Vec<String> {
    frames.iter().map(|frame| frame.json()["type"].as_str().unwrap().to_owned()).collect()
}

const TWO_CALLS: &str =
    r#"[think] [parallel] [call=scripted__echo {"text":"a"}] [call=scripted__echo {"text":"b"}] [tokens=2]"#;

async fn an_early_client_shows_two_calls_at_once_and_a_reasoning(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let parameters = json!({"thread": "t", "texts": [TWO_CALLS, "[tokens=1] and"]});
    let (reports, messages) = ClientProgram::start("ag-ui-early", client.base(), parameters).await.rest().await;
    assert!(reports.iter().all(|report| report["refused"].is_null()), "{reports:?}");
    assert!(reports.iter().any(|report| report["name"] == "reasoning.delta"), "{reports:?}");
    let calls = messages.as_array().unwrap().iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
    let arguments: Vec<&Value> = calls.map(|call| &call["function"]["arguments"]).collect();
    assert_eq!(arguments, [r#"{"text":"a"}"#, r#"{"text":"b"}"#]);
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles.iter().filter(|role| **role == "tool").count(), 2, "{roles:?}");
    assert_eq!(roles.iter().filter(|role| **role == "user").count(), 2, "{roles:?}");
}

async fn a_client_of_version_1_reads_the_version(mut deployment: Deployment) {
    let client = deployment.client();
    let versions = [(json!("1.0"), json!("1.0")), (json!("0.0.59"), Value::Null), (Value::Null, Value::Null)];
    for (number, (declared, expected)) in versions.into_iter().enumerate() {
        let mut body = input(&format!("t{number}"), "r", "[tokens=1]");
        body["protocolVersion"] = declared;
        assert_eq!(frames(post(&client, &body)).await[0].json()["protocolVersion"], expected, "{body}");
    }
    let thread = client.request(Method::GET, "/ag-ui/threads/t0?protocolVersion=1.0");
    assert_eq!(frames(thread).await[0].json()["protocolVersion"], "1.0");
}

async fn a_client_before_version_1_that_names_its_version_gets_reasoning(mut deployment: Deployment) {
    let client = deployment.client();
    for (version, expected) in [("0.0.45", "REASONING_START"), ("0.0.44", "CUSTOM")] {
        let mut body = input(version, "r", "[think] [tokens=1]");
        body["protocolVersion"] = json!(version);
        assert!(types(&frames(post(&client, &body)).await).contains(&expected.to_owned()), "{version}");
        let path = format!("/ag-ui/threads/{version}?protocolVersion={version}");
        let thread = frames(client.request(Method::GET, &path)).await;
        let snapshot = thread.iter().map(StreamBlock::json).find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
        let has_reasoning =
            snapshot["messages"].as_array().unwrap().iter().any(|message| message["role"] == "reasoning");
        assert_eq!(has_reasoning, version == "0.0.45");
    }
}

async fn names_of_runs_are_unique_within_their_thread(mut deployment: Deployment) {
    let client = deployment.client();
    let mut runs = HashSet::new();
    for thread in ["t", "u"] {
        let first = BlockStream::open(post(&client, &input(thread, "run", "[tokens=1] x"))).await;
        let again = BlockStream::open(post(&client, &input(thread, "run", "[tokens=1] x"))).await;
        assert_eq!(first.run_id, again.run_id, "{thread}");
        let path = format!("/ag-ui/runs/run?threadId={thread}");
        let followed = BlockStream::open(client.request(Method::GET, &path)).await;
        assert_eq!(followed.run_id, first.run_id, "{thread}");
        runs.insert(first.run_id.clone());
        let other = post(&client, &input(thread, "run", "[tokens=1] other")).send().await.unwrap();
        assert_eq!(other.status(), 422);
        let refusal = other.json::<Value>().await.unwrap()["detail"].as_str().unwrap().to_owned();
        assert!(refusal.contains("runId") && !refusal.contains("Idempotency-Key"), "{refusal}");
    }
    assert_eq!(runs.len(), 2);
}

/// Fails if a step, a text or a call begins twice or ends without a begin, as `HttpAgent` does.
fn check_balance(events: &[Value]) {
    let mut open = HashSet::new();
    for event in events {
        let kind = event["type"].as_str().unwrap();
        let name = ["stepName", "toolCallId", "messageId"].iter().find_map(|field| event[*field].as_str());
        let part = kind.split('_').next().unwrap();
        let key = format!("{part} {}", name.unwrap_or_default());
        if kind.ends_with("_STARTED") || kind.ends_with("_START") {
            assert!(open.insert(key), "{event} begins twice in {events:#?}");
        } else if kind.ends_with("_FINISHED") || kind.ends_with("_END") {
            assert!(open.remove(&key), "{event} ends twice in {events:#?}");
        }
    }
    assert!(open.is_empty(), "{open:?} is open");
}

async fn a_cut_at_a_pause_that_another_client_ends_repeats_nothing(mut deployment: Deployment) {
    let client = deployment.client();
    let first = BlockStream::open(post(&client, &input("t", "r", "[tokens=1] [approval] [tokens=3] hello"))).await;
    let run_id = first.run_id.clone();
    let first = first.rest().await;
    let question = first.last().unwrap().json()["outcome"]["interrupts"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{run_id}/approvals/{question}");
    client.post(&path, json!({"decision": "approve"})).await.unwrap();
    client.wait_for_run(&run_id).await;
    for cut in 1..=first.len() {
        let cursor = first[cut - 1].id.clone().unwrap();
        let rest = client.request(Method::GET, &format!("/ag-ui/runs/{run_id}")).header("last-event-id", cursor);
        let all: Vec<Value> = first[..cut].iter().chain(&frames(rest).await).map(StreamBlock::json).collect();
        check_balance(&all);
        assert_eq!(all.last().unwrap()["type"], "RUN_FINISHED");
    }
}

async fn a_run_that_fails_before_its_first_output_ends_with_the_sentence(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = BlockStream::open(post(&client, &input("t", "r", "[tokens=0] [fail]"))).await;
    let run_id = stream.run_id.clone();
    let end = stream.rest().await.last().unwrap().json();
    let error = client.run(&run_id).await["error"].clone();
    assert_eq!((&end["type"], &end["message"]), (&json!("RUN_ERROR"), &error["message"]));
}

async fn a_client_that_hangs_up_ends_its_run_where_the_deployment_says_so(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AG_UI_ON_DISCONNECT", "cancel");
    let client = deployment.client();
    let long = "[tokens=2000] [delay=20] hello";
    let ag_ui = |thread: &str| post(&client, &input(thread, "r", long));
    let sdk = |chat: &str| {
        let parts = json!([{"type": "text", "text": long}]);
        let body = json!({"id": chat, "message": {"id": "m", "role": "user", "parts": parts}});
        client.request(Method::POST, "/api/chat").json(&body)
    };
    let mut left = BlockStream::open(ag_ui("left")).await;
    let mut watched = BlockStream::open(ag_ui("watched")).await;
    let mut other_wire = BlockStream::open(sdk("other")).await;
    left.until_sent("TEXT_MESSAGE_CONTENT").await;
    watched.until_sent("TEXT_MESSAGE_CONTENT").await;
    other_wire.until_sent("text-delta").await;
    let runs = [left.run_id.clone(), watched.run_id.clone(), other_wire.run_id.clone()];
    let follower = BlockStream::open(client.request(Method::GET, "/ag-ui/threads/watched")).await;
    drop((left, watched, other_wire));
    // A client that waits for the run would follow it.
    until("the run is cancelled", || async { (client.run(&runs[0]).await["status"] == "cancelled").then_some(()) })
        .await;
    for id in &runs[1..] {
        assert_eq!(client.run(id).await["status"], "running", "another client watches it, or its wire goes on");
        client.cancel(id).await;
    }
    assert_eq!(follower.rest().await.last().unwrap().json()["type"], "RUN_FINISHED");
}

async fn the_client_of_tanstack_shows_the_stored_messages_despite_cuts(deployment: Deployment) {
    let mut deployment = deployment.own();
    let proxy = Proxy::before(deployment.client().base()).await;
    let texts = [r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=200] [delay=20] hello"#, "[tokens=2] again"];
    let mut program = ClientProgram::start("tanstack", &proxy.base, json!({"thread": "t", "texts": texts})).await;
    for _ in 0..2 {
        program.up_to_nth(10, |event| event["type"] == "TEXT_MESSAGE_CONTENT").await;
        proxy.reset();
    }
    let (reports, messages) = program.rest().await;
    assert!(reports.iter().all(|report| report["refused"].is_null()), "{reports:?}");
    let client = deployment.client();
    let conversation = client.get("/v1/conversations").await.unwrap()["items"][0]["id"].clone();
    let path = format!("/v1/conversations/{}/messages", conversation.as_str().unwrap());
    let stored = client.get(&path).await.unwrap()["items"].as_array().unwrap().clone();
    assert_eq!(stored.len(), 4, "the client's list adds nothing");
    let text_of = |message: &Value| -> String {
        let parts = message["parts"].as_array().unwrap().iter().filter(|part| part["type"] == "text");
        parts.map(|part| part["content"].as_str().unwrap()).collect()
    };
    let shown: String =
        messages.as_array().unwrap().iter().filter(|message| message["role"] == "assistant").map(text_of).collect();
    let answers = stored.iter().filter(|message| message["role"] == "assistant");
    let written: String = answers.map(|message| message["content"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, written);
}

async fn a_reloaded_page_of_tanstack_has_its_answer(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    for kept in ["server", "local"] {
        let parameters = json!({"thread": kept, "reload": "[tokens=40] [delay=50] hello", "kept": kept});
        let (_, end) = ClientProgram::start("tanstack", client.base(), parameters).await.rest().await;
        let (before, stored) = (end["before"].as_str().unwrap(), end["stored"].as_str().unwrap());
        assert!(stored.starts_with(before) && before.len() < stored.len(), "{end}");
        let roles: Vec<&Value> = end["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant"], "{kept}: {end}");
    }
    let unknown = client.get("/ag-ui?threadId=unknown").await.unwrap();
    assert_eq!(unknown, json!({"messages": [], "activeRun": null}));
    let ended = client.get("/ag-ui?threadId=server").await.unwrap();
    assert_eq!((&ended["activeRun"], &ended["messages"][1]["parts"][0]["type"]), (&Value::Null, &json!("text")));
    assert_eq!(client.get("/ag-ui").await.unwrap_err().code, "invalid_query");
    assert_eq!(client.get("/ag-ui?offset=-1&runId=unknown").await.unwrap_err().code, "run_not_found");
}
