//! Agents: their definitions, their conversations, and the traces of their runs.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, Embedded, ErrorResponse, Holdfast, agent, refusal, tools::ToolServer,
        upstream::TestUpstream,
    },
};

in_both_modes!(
    agents_are_defined_listed_changed_and_deleted,
    secrets_are_written_and_never_read_back,
    a_run_keeps_the_definition_that_it_was_submitted_with,
    a_deleted_agent_is_hidden_and_its_conversations_continue,
    an_unknown_agent_creates_no_conversation,
    a_conversations_agent_wins_over_a_later_one,
    the_trace_has_everything_and_the_conversation_has_the_messages,
    a_conversation_is_forked_from_a_checkpoint,
    metadata_goes_from_run_to_run,
);

in_either_mode!(a_definition_that_cannot_work_is_refused);

fn failure_of(result: Result<Value, ErrorResponse>) -> (u16, String) {
    let failure = result.expect_err("it was accepted");
    (failure.status, failure.code)
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// Starts a run, waits for its end, and returns it.
async fn run(client: &Client, body: Value) -> Value {
    let submission = client.post("/v1/runs", body).await.unwrap();
    client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).await.unwrap()["items"].as_array().unwrap().clone()
}

async fn agents_are_defined_listed_changed_and_deleted(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let response = client.request(Method::POST, "/v1/agents").json(&json!({"name": "ops"})).send().await.unwrap();
    assert_eq!(response.status(), 201);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let made: Value = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/agents/{}", id(&made)));
    assert_eq!(
        (made["name"].as_str(), made["version"].as_u64(), made["origin"].as_str()),
        (Some("ops"), Some(1), Some("api"))
    );
    assert_eq!(client.get(&location).await.unwrap(), made);
    let patch = json!({"description": "d", "system_prompt": "Be brief.", "limits": {"max_steps": 3}});
    let changed = client.patch(&location, patch).await.unwrap();
    assert_eq!((changed["version"].as_u64(), changed["limits"]["max_steps"].as_u64()), (Some(2), Some(3)));
    let changed = client.patch(&location, json!({"description": null})).await.unwrap();
    assert_eq!((changed.get("description"), changed["system_prompt"].as_str()), (None, Some("Be brief.")));
    assert_eq!(client.patch(&location, changed.clone()).await.unwrap(), changed, "as it was shown, it changes nothing");
    assert_eq!(own_agents(&client).await, [changed]);
    assert_eq!(client.delete(&location).await.unwrap(), Value::Null);
    for result in
        [client.get(&location).await, client.delete(&location).await, client.patch(&location, json!({})).await]
    {
        assert_eq!(failure_of(result), (404, "agent_not_found".into()));
    }
}

/// Returns the agents but for those of the program.
async fn own_agents(client: &Client) -> Vec<Value> {
    items(client, "/v1/agents").await.into_iter().filter(|agent| agent["origin"] != "builtin").collect()
}

async fn a_definition_that_cannot_work_is_refused(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let stdio = json!({"name": "a", "mcp_servers": [{"name": "s", "transport": "stdio", "command": "true"}]});
    assert_eq!(failure_of(client.post("/v1/agents", stdio).await), (403, "stdio_not_allowed".into()));
    for (definition, code) in [
        (json!({}), "invalid_body"),
        (json!(["a"]), "invalid_body"),
        (json!({"name": ""}), "invalid_agent"),
        (json!({"name": "a", "colour": "red"}), "invalid_body"),
        (json!({"name": "a", "access": "friends"}), "invalid_agent"),
        (json!({"name": "a", "access": [""]}), "invalid_agent"),
        (json!({"name": "a", "approvers": {"owner": true}}), "invalid_agent"),
        (json!({"name": "a", "model": {"temperature": 9}}), "invalid_agent"),
        (json!({"name": "a", "mcp_servers": [{"name": "s", "transport": "sse", "url": "http://a"}]}), "invalid_body"),
        (json!({"name": "a", "tools": {"s__t": {"effect": "once"}}}), "invalid_agent"),
    ] {
        assert_eq!(failure_of(client.post("/v1/agents", definition.clone()).await), (400, code.into()), "{definition}");
    }
    let made = client.post("/v1/agents", json!({"name": "a"})).await.unwrap();
    let path = format!("/v1/agents/{}", id(&made));
    assert_eq!(
        failure_of(client.patch(&path, json!({"limits": {"max_steps": 0}})).await),
        (400, "invalid_agent".into())
    );
    assert_eq!(client.get(&path).await.unwrap(), made);
    assert!(own_agents(&client).await.len() == 1, "nothing that was refused is kept");
}

async fn secrets_are_written_and_never_read_back(deployment: Deployment) {
    let mut deployment = deployment.own();
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let described = json!({"name": "kb", "transport": "rpc", "url": server.url, "auth": {"bearer": "hunter2"}});
    let agent_id = agent(&client, json!([described]), json!({})).await;
    let path = format!("/v1/agents/{agent_id}");
    let redacted = client.get(&path).await.unwrap();
    assert_eq!(redacted["mcp_servers"][0]["auth"]["bearer"], json!({"redacted": true}));
    // A client that sends a redacted secret back does not change it.
    let patched = client.patch(&path, json!({"mcp_servers": redacted["mcp_servers"]})).await.unwrap();
    let run_record = run(&client, json!({"agent_id": agent_id, "input": "[tokens=1] [call=kb__count]"})).await;
    assert_eq!(run_record["status"], "completed");
    assert_eq!(server.authorizations().last().map(String::as_str), Some("Bearer hunter2"));
    // A client that changes the server's address must send the secret again.
    let elsewhere =
        json!([{"name": "kb", "transport": "rpc", "url": "http://elsewhere/", "auth": {"bearer": {"redacted": true}}}]);
    assert_eq!(failure_of(client.patch(&path, json!({"mcp_servers": elsewhere})).await), (400, "invalid_agent".into()));
    let run_id = id(&run_record);
    let everything_shown = [
        json!(patched),
        client.get("/v1/agents").await.unwrap(),
        client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap(),
        client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap(),
        json!(
            client.events(&run_id, None).await.rest().await.iter().map(|frame| frame.raw.clone()).collect::<Vec<_>>()
        ),
    ];
    assert!(everything_shown.iter().all(|text| !text.to_string().contains("hunter2")));
    assert!(!deployment.log().contains("hunter2"), "it is in the log");
}

async fn a_run_keeps_the_definition_that_it_was_submitted_with(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"system_prompt": "one"})).await;
    let busy = client.post("/v1/runs", json!({"agent_id": agent_id, "input": "[approval]"})).await.unwrap();
    let (run_id, conversation) = (id(&busy["run"]), id(&busy["conversation"]));
    client.events(&run_id, None).await.up_to("approval.requested").await;
    client.patch(&format!("/v1/agents/{agent_id}"), json!({"system_prompt": "two"})).await.unwrap();
    let approvals = items(&client, &format!("/v1/runs/{run_id}/approvals")).await;
    let path = format!("/v1/runs/{run_id}/approvals/{}", id(&approvals[0]));
    client.post(&path, json!({"decision": "approve"})).await.unwrap();
    client.wait_for_run(&run_id).await;
    let prompt =
        async |run_id: &str| items(&client, &format!("/v1/runs/{run_id}/messages")).await[0]["content"].clone();
    assert_eq!(prompt(&run_id).await, "one");
    let next = run(&client, json!({"conversation_id": conversation, "input": "[tokens=1] again"})).await;
    assert_eq!(prompt(&id(&next)).await, "two");
}

async fn a_deleted_agent_is_hidden_and_its_conversations_continue(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"system_prompt": "kept"})).await;
    let conversation = client.post("/v1/conversations", json!({"agent_id": agent_id})).await.unwrap();
    client.delete(&format!("/v1/agents/{agent_id}")).await.unwrap();
    assert_eq!(
        failure_of(client.post("/v1/conversations", json!({"agent_id": agent_id})).await),
        (400, "agent_not_found".into())
    );
    let run_record = run(&client, json!({"conversation_id": id(&conversation), "input": "[tokens=1] hi"})).await;
    assert_eq!(
        (run_record["status"].as_str(), run_record["agent_id"].as_str()),
        (Some("completed"), Some(agent_id.as_str()))
    );
    let trace = items(&client, &format!("/v1/runs/{}/messages", id(&run_record))).await;
    assert_eq!(trace[0]["content"], "kept");
}

async fn an_unknown_agent_creates_no_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let unknown = json!("00000000-0000-4000-8000-000000000000");
    for (path, body) in
        [("/v1/conversations", json!({"agent_id": unknown})), ("/v1/runs", json!({"agent_id": unknown, "input": "hi"}))]
    {
        let failure = client.post(path, body).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, "agent_not_found"));
        assert!(failure.body["detail"].as_str().unwrap().contains(unknown.as_str().unwrap()));
    }
    assert!(items(&client, "/v1/conversations").await.is_empty());
}

async fn a_conversations_agent_wins_over_a_later_one(mut deployment: Deployment) {
    let client = deployment.client();
    let first = agent(&client, json!([]), json!({"name": "first"})).await;
    let second = agent(&client, json!([]), json!({"name": "second"})).await;
    let first_run = run(&client, json!({"agent_id": first, "input": "[tokens=1] hi"})).await;
    let conversation = first_run["conversation_id"].clone();
    let later =
        run(&client, json!({"conversation_id": conversation, "agent_id": second, "input": "[tokens=1] hi"})).await;
    assert_eq!(later["agent_id"], first.as_str());
    let plain = run(&client, json!({"input": "[tokens=1] hi"})).await;
    let body = json!({"conversation_id": plain["conversation_id"], "agent_id": second, "input": "[tokens=1] hi"});
    assert_eq!(run(&client, body).await["agent_id"], Value::Null, "an existing conversation stays plain");
}

async fn the_trace_has_everything_and_the_conversation_has_the_messages(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({"system_prompt": "Count."})).await;
    let run_record = run(&client, json!({"agent_id": agent_id, "input": "[tokens=1] [call=kb__count]"})).await;
    let (run_id, conversation) = (id(&run_record), run_record["conversation_id"].as_str().unwrap());
    let messages = items(&client, &format!("/v1/conversations/{conversation}/messages")).await;
    let roles =
        |items: &[Value]| items.iter().map(|item| item["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(roles(&messages), ["user", "assistant"]);
    assert_eq!(
        (&messages[0]["retrieval_context"], &messages[1]["retrieval_context"]),
        (&Value::Null, &json!({"agent_run_id": run_id}))
    );
    let trace = items(&client, &format!("/v1/runs/{run_id}/messages")).await;
    assert_eq!(roles(&trace), ["system", "user", "assistant", "tool", "assistant"]);
    let calls = items(&client, &format!("/v1/runs/{run_id}/tool_calls")).await;
    assert_eq!(trace[2]["tool_calls"][0]["call_id"], calls[0]["call_id"]);
    assert_eq!(
        (calls[0]["status"].as_str(), calls[0]["effect"].as_str(), calls[0]["output"].as_str()),
        (Some("completed"), Some("once"), Some("counted"))
    );
    assert!(trace[2]["usage"]["output_tokens"].as_u64().unwrap() > 0, "usage is kept per step");
    assert_eq!(
        failure_of(client.user("eve").get(&format!("/v1/runs/{run_id}/messages")).await),
        (404, "run_not_found".into())
    );
    assert_eq!(
        failure_of(client.user("eve").get(&format!("/v1/runs/{run_id}/tool_calls")).await),
        (404, "run_not_found".into())
    );
    assert_eq!(
        failure_of(client.user("eve").get(&format!("/v1/runs/{run_id}/approvals")).await),
        (404, "run_not_found".into())
    );
}

async fn a_conversation_is_forked_from_a_checkpoint(mut deployment: Deployment) {
    let client = deployment.client();
    let first = run(&client, json!({"input": "[tokens=1] first"})).await;
    let conversation = first["conversation_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{conversation}");
    let second = run(
        &client,
        json!({"conversation_id": conversation, "input": "[tokens=2] [call=scripted__echo {\"text\":\"a\"}]"}),
    )
    .await;
    run(&client, json!({"conversation_id": conversation, "input": "[tokens=1] third"})).await;
    let checkpoints = items(&client, &format!("{path}/checkpoints")).await;
    let of_second: Vec<&Value> = checkpoints.iter().rev().filter(|point| point["run_id"] == second["id"]).collect();
    let nodes: Vec<&str> = of_second.iter().map(|point| point["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["input", "process", "tools", "process", "respond"]);
    let page = client.get(&format!("{path}/checkpoints?limit=2")).await.unwrap();
    let next =
        client.get(&format!("{path}/checkpoints?limit=2&cursor={}", page["next"].as_str().unwrap())).await.unwrap();
    assert_eq!(
        [page["items"].as_array().unwrap().clone(), next["items"].as_array().unwrap().clone()].concat(),
        checkpoints[..4]
    );

    // This checkpoint is after the first model call of the second run, and before the tool call.
    let point = of_second[1];
    let state = client.get(&format!("{path}/checkpoints/{}", id(point))).await.unwrap();
    assert_eq!(
        (state["trace"].as_array().unwrap().len(), state["tool_calls"][0]["status"].as_str()),
        (2, Some("requested"))
    );
    assert_eq!(state["tool_calls"][0]["output"], Value::Null);
    let forked = client.post(&format!("{path}/fork"), json!({"checkpoint_id": point["id"]})).await.unwrap();
    assert_eq!(forked["forked_from"], point["id"]);
    assert_eq!(forked["forked_conversation_id"], point["conversation_id"]);
    let contents = async |conversation: &str| {
        let messages = items(&client, &format!("/v1/conversations/{conversation}/messages")).await;
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (source, copies) = (contents(&conversation).await, contents(&id(&forked)).await);
    assert_eq!(copies[..3], source[..3]);
    assert_eq!(copies[3..], ["Calling scripted__echo. "]);
    // Both conversations continue independently.
    let went_on = run(&client, json!({"conversation_id": forked["id"], "input": "[tokens=1] elsewhere"})).await;
    assert_eq!(
        went_on["usage"]["input_tokens"].as_u64().unwrap() as usize,
        copies.iter().map(|text| text.split_whitespace().count()).sum::<usize>() + 2
    );
    assert_eq!(contents(&conversation).await, source);
    let again =
        client.post(&format!("/v1/conversations/{}/fork", id(&forked)), json!({"checkpoint_id": point["id"]})).await;
    assert_eq!(failure_of(again), (404, "checkpoint_not_found".into()));
    for path in [format!("{path}/checkpoints"), format!("{path}/checkpoints/{}", id(point))] {
        assert_eq!(failure_of(client.user("eve").get(&path).await), (404, "conversation_not_found".into()));
    }
    let stolen = client.user("eve").post(&format!("{path}/fork"), json!({"checkpoint_id": point["id"]})).await;
    assert_eq!(failure_of(stolen), (404, "conversation_not_found".into()));
}

async fn metadata_goes_from_run_to_run(mut deployment: Deployment) {
    let client = deployment.client();
    let first = run(&client, json!({"input": "[tokens=1]", "metadata": {"topic": "tides", "turn": 1}})).await;
    assert_eq!(first["metadata"], json!({"topic": "tides", "turn": 1}));
    let conversation = first["conversation_id"].as_str().unwrap();
    run(&client, json!({"conversation_id": conversation, "input": "[tokens=1]", "metadata": {"turn": 2}})).await;
    let newest = items(&client, &format!("/v1/conversations/{conversation}/checkpoints")).await[0].clone();
    assert_eq!(newest["metadata"], json!({"topic": "tides", "turn": 2}));
    for metadata in [json!("text"), json!({"long": "x".repeat(16_384)})] {
        let refusal = client.post("/v1/runs", json!({"input": "hi", "metadata": metadata})).await;
        assert_eq!(failure_of(refusal), (400, "invalid_metadata".into()));
    }
}

#[tokio::test]
async fn the_model_gets_the_agents_prompt_options_and_last_messages() {
    let upstream = TestUpstream::start(&["answer"]).await;
    let embedded = Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-test")
        .with("OPENAI_BASE_URL", &upstream.base_url);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let more =
        json!({"system_prompt": "Be brief.", "history_limit": 2, "model": {"name": "gpt-other", "temperature": 0.25}});
    let agent_id = agent(&client, json!([]), more).await;
    let first = run(&client, json!({"agent_id": agent_id, "input": "one"})).await;
    for input in ["two", "three"] {
        run(&client, json!({"conversation_id": first["conversation_id"], "input": input})).await;
    }
    assert_eq!(first["model"], "openai/gpt-other");
    let requests = upstream.requests();
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let prompt = turn("system", "Be brief.");
    assert_eq!(requests[0]["messages"], json!([prompt, turn("user", "one")]), "the first message goes alone");
    let with_summary = "[Summary of the conversation so far]\nanswer\n[End of the summary]\n\ntwo";
    let third = requests.iter().rfind(|request| request["messages"][0] == prompt).unwrap();
    let [_, summarised, answer, question] = third["messages"].as_array().unwrap().as_slice() else { panic!("{third}") };
    let paragraphs = summarised["content"].as_str().unwrap().split("\n\n");
    let undated: Vec<&str> = paragraphs.filter(|paragraph| !paragraph.starts_with("[Today is ")).collect();
    assert_eq!((undated.join("\n\n").as_str(), answer), (with_summary, &turn("assistant", "answer")));
    assert_eq!(question, &turn("user", "three"));
    assert_eq!((requests[0]["model"].as_str(), requests[0]["temperature"].as_f64()), (Some("gpt-other"), Some(0.25)));
}

#[tokio::test]
async fn an_agent_whose_model_is_not_configured_fails_its_runs_with_a_reason() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let agent_id =
        agent(&client, json!([]), json!({"model": {"provider": "anthropic", "name": "claude-sonnet-4-5"}})).await;
    let run_record = run(&client, json!({"agent_id": agent_id, "input": "hi"})).await;
    assert_eq!(run_record["error"]["code"], "model_not_configured");
    assert_eq!(run_record["error"]["message"], "the agent's model is not set up on this server");
    let logged = holdfast.wait_for_log("ANTHROPIC_API_KEY");
    assert!(logged.contains(run_record["id"].as_str().unwrap()), "{logged}");
}

#[tokio::test]
async fn an_agent_uses_only_the_variables_that_are_listed() {
    let server = ToolServer::answering_at_once().await;
    let embedded = Embedded::new().with("KB_TOKEN", "hunter2").with("POSTGRES_PASSWORD", "hunter3");
    let described = |variable: &str| {
        let auth = json!({"bearer": {"env": variable}});
        json!({"name": "ops", "mcp_servers": [{"name": "kb", "transport": "rpc", "url": server.url, "auth": auth}]})
    };
    let mut holdfast = Holdfast::start(embedded.command().env("HOLDFAST_AGENT_SECRETS", "CRM_TOKEN,KB_TOKEN"));
    let client = holdfast.client();
    let failure = client.post("/v1/agents", described("POSTGRES_PASSWORD")).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_agent"));
    assert!(failure.body["detail"].as_str().unwrap().contains("HOLDFAST_AGENT_SECRETS"), "{}", failure.body);
    let agent_id = id(&client.post("/v1/agents", described("KB_TOKEN")).await.unwrap());
    let input = json!({"agent_id": agent_id, "input": "[tokens=1] [call=kb__count]"});
    run(&client, input.clone()).await;
    assert_eq!(server.authorizations().last().map(String::as_str), Some("Bearer hunter2"));
    drop(holdfast);
    // A worker that no longer lists the variable sends it nowhere, also for old definitions.
    let (sent, mut holdfast) = (server.authorizations().len(), embedded.start());
    let run_record = run(&holdfast.client(), input).await;
    let calls = items(&holdfast.client(), &format!("/v1/runs/{}/tool_calls", id(&run_record))).await;
    assert_eq!((calls[0]["error"]["code"].as_str(), server.authorizations().len()), (Some("tool_unavailable"), sent));
    holdfast.wait_for_log("KB_TOKEN is not one that agents may use");
}

#[tokio::test]
async fn a_file_of_agents_is_a_deployment() {
    let embedded = Embedded::new();
    let file = embedded.folder.path().join("agents.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let start = || {
        let mut holdfast = Holdfast::start(embedded.command().env("HOLDFAST_AGENTS", &file));
        let client = holdfast.client();
        (holdfast, client)
    };
    write(
        "agents:\n  - name: one\n  - name: two\n    mcp_servers:\n      - {name: s, transport: stdio, command: 'true'}\n",
    );
    let (holdfast, client) = start();
    let named = |agents: &[Value], name: &str| agents.iter().find(|agent| agent["name"] == name).cloned();
    let agents = items(&client, "/v1/agents").await;
    let (one, two) = (named(&agents, "one").unwrap(), named(&agents, "two").unwrap());
    assert_eq!((one["origin"].as_str(), two["mcp_servers"][0]["command"].as_str()), (Some("file"), Some("true")));
    let path = format!("/v1/agents/{}", id(&one));
    assert_eq!(failure_of(client.patch(&path, json!({"description": "d"})).await), (409, "agent_in_file".into()));
    assert_eq!(failure_of(client.delete(&path).await), (409, "agent_in_file".into()));
    let conversation = client.post("/v1/conversations", json!({"agent_id": one["id"]})).await.unwrap();
    holdfast.kill();
    // The file lacks the first agent and has changed the second; both keep their ids.
    write("agents:\n  - name: two\n    description: changed\n");
    let (holdfast, client) = start();
    let agents = own_agents(&client).await;
    assert_eq!(agents.len(), 1);
    assert_eq!((&agents[0]["id"], agents[0]["version"].as_u64()), (&two["id"], Some(2)));
    let went_on = run(&client, json!({"conversation_id": conversation["id"], "input": "[tokens=1] hi"})).await;
    assert_eq!(went_on["status"], "completed");
    holdfast.kill();
    write("agents:\n  - name: one\n");
    let (_holdfast, client) = start();
    assert_eq!(items(&client, "/v1/agents").await[0]["id"], one["id"]);
}

#[tokio::test]
async fn a_wrong_file_of_agents_ends_the_start_with_a_sentence() {
    let embedded = Embedded::new();
    let file = embedded.folder.path().join("agents.toml");
    std::fs::write(&file, "[[agents]]\nname = \"a\"\ncolour = \"red\"\n").unwrap();
    let sentence = refusal(embedded.command().env("HOLDFAST_AGENTS", &file));
    assert!(sentence.contains("HOLDFAST_AGENTS") && sentence.contains("line 3"), "{sentence}");
}
