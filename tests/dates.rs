//! The date and the user's time zone in the requests to a model: never in the instructions, nor in what a user reads.

use chrono::Utc;
use holdfast_shared::time_zone::{RunDate, without_line};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, Embedded, agent, answer, of_kind, refusal, until, upstream::TestUpstream},
};

in_both_modes!(the_newest_turn_has_the_date_and_keeps_it_in_later_requests);

in_either_mode!(
    an_agent_without_a_clock_reads_no_date,
    a_subagent_reads_the_date_of_its_parents_user,
    a_summary_is_asked_for_with_the_date,
    a_wait_of_less_than_a_day_changes_no_line,
    a_client_package_sends_the_zone_that_its_program_names,
    a_request_has_its_own_zone_or_that_of_the_profile_or_of_the_deployment,
    each_wire_takes_the_zone_of_its_request_and_refuses_an_unknown_one,
);

/// Returns a deployment that uses this provider.
fn asking(deployment: Deployment, upstream: &TestUpstream) -> Deployment {
    deployment
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "m")
        .with("OPENAI_BASE_URL", &upstream.base_url)
}

/// Returns whether a text is another one after the line of today in a zone. Today may have begun during the test.
fn is_dated(text: &Value, zone: &str, rest: &str) -> bool {
    let hour = chrono::TimeDelta::hours(1);
    let lines = [Utc::now(), Utc::now() - hour].map(|at| RunDate { at, zone: zone.parse().unwrap() }.before(rest));
    lines.iter().any(|line| text == line)
}

/// Posts a message from this zone and waits for its answer; returns `{conversation, message, run}`.
async fn say(client: &Client, zone: Option<&str>, body: Value) -> Value {
    let mut request = client.request(Method::POST, "/v1/runs").json(&body);
    if let Some(zone) = zone {
        request = request.header("time-zone", zone);
    }
    let accepted = answer(request).await.unwrap();
    let run = client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "completed", "{run}");
    accepted
}

fn newest(upstream: &TestUpstream) -> Value {
    upstream.dated_requests().last().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

async fn the_newest_turn_has_the_date_and_keeps_it_in_later_requests(deployment: Deployment) {
    let upstream = TestUpstream::start(&["answer"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"system_prompt": "Be brief."})).await;
    let first = say(&client, Some("Asia/Tokyo"), json!({"input": "one", "agent_id": agent_id})).await;
    let conversation = first["conversation"]["id"].as_str().unwrap();
    say(&client, Some("Europe/Copenhagen"), json!({"input": "two", "conversation_id": conversation})).await;
    let requests = upstream.dated_requests();
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let [asked, again] = [&requests[0]["messages"], &requests[1]["messages"]];
    assert_eq!(asked[0], turn("system", "Be brief."));
    assert!(is_dated(&asked[1]["content"], "Asia/Tokyo", "one"), "{asked}");
    assert_eq!(again.as_array().unwrap()[..2], asked.as_array().unwrap()[..], "the prefix keeps its bytes");
    assert_eq!(again[2], turn("assistant", "answer"));
    assert!(is_dated(&again[3]["content"], "Europe/Copenhagen", "two"), "{again}");
    let run = first["run"]["id"].as_str().unwrap();
    for path in [
        format!("/v1/conversations/{conversation}"),
        format!("/v1/conversations/{conversation}/messages"),
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/messages"),
        format!("/v1/runs/{run}/events?snapshot=true"),
        format!("/api/chat/{conversation}/messages"),
        "/v1/conversations".to_owned(),
        "/v1/conversations?q=one".to_owned(),
    ] {
        let request = client.request(Method::GET, &path).header("accept", "application/json");
        let shown = answer(request).await.unwrap().to_string();
        assert!(!shown.contains("Today is") && !shown.contains("Asia/Tokyo"), "{path}: {shown}");
    }
}

async fn a_request_has_its_own_zone_or_that_of_the_profile_or_of_the_deployment(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_TIME_ZONE", "America/Lima");
    let client = deployment.client();
    let expect = async |zone: Option<&str>, expected: &str| {
        say(&client, zone, json!({"input": "hi"})).await;
        assert!(is_dated(&newest(&upstream), expected, "hi"), "{expected}: {}", newest(&upstream));
    };
    let path = "/v1/users/me/profile";
    let put = async |body: Value| answer(client.request(Method::PUT, path).json(&body)).await;
    assert_eq!(client.get(path).await.unwrap(), json!({"profile": null, "time_zone": null}));
    expect(None, "America/Lima").await;
    let stored = json!({"profile": null, "time_zone": "Asia/Kathmandu"});
    assert_eq!(put(json!({"time_zone": "asia/kathmandu"})).await.unwrap(), stored);
    expect(None, "Asia/Kathmandu").await;
    expect(Some("Europe/Copenhagen"), "Europe/Copenhagen").await;
    for unknown in ["Mars/Olympus", "", "Etc/Unknown"] {
        let refused = put(json!({"profile": "x", "time_zone": unknown})).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "unknown_time_zone"), "{unknown}");
    }
    assert_eq!(put(json!({"profile": "I keep bees."})).await.unwrap()["time_zone"], "Asia/Kathmandu");
    let both = json!({"profile": "I keep bees.", "time_zone": null});
    assert_eq!(put(json!({"time_zone": null})).await.unwrap(), both);
    assert_eq!(client.get(path).await.unwrap(), both);
    expect(None, "America/Lima").await;
    put(json!({"profile": null})).await.unwrap();
    assert_eq!(put(json!({"zone": "UTC"})).await.unwrap_err().code, "invalid_body");
}

/// The routes that start a run, each with a message.
fn wires() -> Vec<(&'static str, Value)> {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let graph = json!({"assistant_id": "agent", "input": {"messages": [{"type": "human", "content": "hi"}]}});
    let ui = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let ag_ui = json!([{"id": "m", "role": "user", "content": "hi"}]);
    let a2a = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
    vec![
        ("/v1/runs", json!({"input": "hi"})),
        ("/v1/sessions/harbour/messages", json!({"content": "hi"})),
        ("/api/chat", json!({"id": "chat", "messages": [ui], "trigger": "submit-message"})),
        ("/api/chat/stream", json!({"message": "hi"})),
        ("/api/agent/stream", json!({"message": "hi", "context_type": "global"})),
        ("/openai/v1/responses", json!({"model": "default", "input": "hi"})),
        ("/openai/v1/chat/completions", json!({"model": "default", "messages": messages})),
        ("/langgraph/runs/wait", graph),
        (
            "/ag-ui",
            json!({"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": ag_ui, "tools": [], "context": [],
                "state": {}, "forwardedProps": {}}),
        ),
        ("/a2a", json!({"jsonrpc": "2.0", "id": "r", "method": "SendMessage", "params": a2a})),
    ]
}

async fn each_wire_takes_the_zone_of_its_request_and_refuses_an_unknown_one(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_STREAM_AGENT", "tester");
    let client = deployment.client();
    agent(&client, json!([]), json!({})).await;
    for (path, body) in wires() {
        let post = |zone: &str| client.request(Method::POST, path).header("time-zone", zone).json(&body).send();
        let before = upstream.dated_requests().len();
        let refused = post("Mars/Olympus").await.unwrap();
        // A method of JSON-RPC fails with HTTP 200.
        assert_eq!(refused.status(), if path == "/a2a" { 200 } else { 400 }, "{path}");
        let refused = refused.text().await.unwrap();
        assert!(refused.contains("no time zone of this name"), "{path}: {refused}");
        let response = post("Asia/Kathmandu").await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        let asked = until("the provider is asked", || async { upstream.dated_requests().get(before).cloned() }).await;
        let content = &asked["messages"].as_array().unwrap().last().unwrap()["content"];
        assert!(is_dated(content, "Asia/Kathmandu", "hi"), "{path}: {asked}");
        response.text().await.unwrap();
    }
}

async fn an_agent_without_a_clock_reads_no_date(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"system_prompt": "Be brief."})).await;
    let first = say(&client, Some("Asia/Tokyo"), json!({"input": "one", "agent_id": agent_id})).await;
    client.patch(&format!("/v1/agents/{agent_id}"), json!({"clock": false})).await.unwrap();
    let second = json!({"input": "two", "conversation_id": first["conversation"]["id"]});
    say(&client, Some("Asia/Tokyo"), second).await;
    let requests = upstream.dated_requests();
    assert!(requests[0].to_string().contains("Today is"));
    assert!(!requests[1].to_string().contains("Today is") && !requests[1].to_string().contains("Tokyo"));
    assert_eq!(requests[1]["messages"][1]["content"], "one");
}

async fn a_subagent_reads_the_date_of_its_parents_user(deployment: Deployment) {
    let upstream = TestUpstream::start(&["counted"]).await;
    let mut deployment = deployment.with("OPENAI_BASE_URL", &upstream.base_url);
    let client = deployment.client();
    let helper = json!({"name": "helper", "model": {"provider": "openai", "name": "m"}});
    agent(&client, json!([]), helper).await;
    let lead = agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let input = "[delegate=helper count the ships] [tokens=2]";
    say(&client, Some("Asia/Kathmandu"), json!({"input": input, "agent_id": lead})).await;
    assert!(is_dated(&newest(&upstream), "Asia/Kathmandu", "count the ships"), "{}", newest(&upstream));
}

async fn a_summary_is_asked_for_with_the_date(deployment: Deployment) {
    let upstream = TestUpstream::start(&["short"]).await;
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_CONTEXT_TOKENS", 200);
    let client = deployment.client();
    let mut body = json!({"input": "word ".repeat(100)});
    for _ in 0..4 {
        let said = say(&client, Some("Asia/Kathmandu"), body.clone()).await;
        body["conversation_id"] = said["conversation"]["id"].clone();
    }
    let last = |request: &Value| request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let asked: Vec<Value> = upstream.dated_requests().iter().map(last).collect();
    let summaries = asked.iter().filter(|text| text.to_string().contains("Summarise our conversation"));
    let summaries: Vec<&Value> = summaries.collect();
    assert!(!summaries.is_empty(), "{asked:?}");
    assert!(summaries.iter().all(|text| is_dated(text, "Asia/Kathmandu", without_line(text.as_str().unwrap()))));
}

async fn a_wait_of_less_than_a_day_changes_no_line(deployment: Deployment) {
    let upstream = TestUpstream::calling("look {}", &["done"]).await;
    upstream.permit_words(1);
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let tool = json!({"name": "look", "description": "Looks.", "input_schema": {"type": "object"}});
    let request = client.request(Method::POST, "/v1/runs").header("time-zone", "Asia/Kathmandu");
    let accepted = answer(request.json(&json!({"input": "hi", "client_tools": [tool]}))).await.unwrap();
    let run = accepted["run"]["id"].as_str().unwrap();
    let frames = client.events(run, None).await.up_to("tool_call.started").await;
    let call = of_kind(&frames, "tool_call.started")[0]["call_id"].as_str().unwrap().to_owned();
    client.post(&format!("/v1/runs/{run}/tool_results/{call}"), json!({"output": "a ship"})).await.unwrap();
    assert_eq!(client.wait_for_run(run).await["status"], "completed");
    let requests = upstream.dated_requests();
    let asked = requests.iter().map(|request| &request["messages"][0]).collect::<Vec<_>>();
    assert_eq!((asked.len(), asked[0]), (2, asked[1]));
    assert!(is_dated(&asked[0]["content"], "Asia/Kathmandu", "hi"), "{}", asked[0]);
}

async fn a_client_package_sends_the_zone_that_its_program_names(deployment: Deployment) {
    let deployment = deployment.own();
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let package = holdfast_client::Client::new(client.base()).with_time_zone("Asia/Kathmandu");
    let run = package.start_run(&holdfast_client::NewRunBody::of("hi")).await.unwrap().run;
    client.wait_for_run(&run.id).await;
    assert!(is_dated(&newest(&upstream), "Asia/Kathmandu", "hi"), "{}", newest(&upstream));
}

#[test]
fn an_unknown_zone_is_refused_at_the_start() {
    let embedded = Embedded::new().with("HOLDFAST_TIME_ZONE", "Mars/Olympus");
    let sentence = refusal(&mut embedded.command());
    assert!(sentence.contains("HOLDFAST_TIME_ZONE") && sentence.contains("Europe/Copenhagen"), "{sentence}");
}
