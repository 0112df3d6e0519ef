//! Methods one by one: what they return, and what they refuse.

use reqwest::Method;
use serde_json::{Value, json};

use super::{KeptTask, call, decision, error, frames, message, request, result, results, text, text_of};
use crate::{
    in_either_mode,
    support::{BlockStream, Client, Deployment, Embedded, tokens::SECRET},
};

in_either_mode!(
    a_card_describes_an_agent_to_clients_of_both_versions,
    a_message_waits_for_the_end_or_returns_at_once,
    a_repeated_message_is_the_same_task,
    a_context_is_the_conversation,
    files_of_a_message_reach_the_run,
    an_approval_is_decided_once_and_by_its_name,
    a_call_of_a_front_end_is_answered_by_its_result,
    parameters_have_the_names_of_the_protocols_definition_too,
    a_text_steers_a_task_that_works,
    a_task_is_cancelled_once,
    tasks_are_listed_page_by_page,
    tasks_of_others_do_not_exist,
    invalid_requests_are_refused_in_the_form_of_json_rpc,
    methods_that_this_server_lacks_say_so,
);

async fn a_card_describes_an_agent_to_clients_of_both_versions(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let card = client.get("/a2a/.well-known/agent-card.json").await.unwrap();
    let url = format!("{}/a2a", client.base());
    let interface = |version: &str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": version});
    assert_eq!(card["supportedInterfaces"], json!([interface("1.0"), interface("0.3")]));
    assert_eq!((&card["url"], &card["preferredTransport"]), (&json!(url), &json!("JSONRPC")));
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(client.get("/.well-known/agent-card.json").await.unwrap(), card);
    let read = client.request(Method::GET, "/a2a/.well-known/agent-card.json").send().await.unwrap();
    assert_eq!(read.headers()["cache-control"], "private, max-age=60");
    let again = client.request(Method::GET, "/a2a/.well-known/agent-card.json");
    let again = again.header("if-none-match", &read.headers()["etag"]).send().await.unwrap();
    assert_eq!(again.status(), 304, "the card is the same");
    client.post("/v1/agents", json!({"name": "Pilot", "description": "Steers.", "system_prompt": "x"})).await.unwrap();
    let card = client.get("/a2a/agents/Pilot/.well-known/agent-card.json").await.unwrap();
    assert_eq!((&card["name"], &card["description"]), (&json!("Pilot"), &json!("Steers.")));
    assert_eq!(card["url"], format!("{}/a2a/agents/Pilot", client.base()));
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": message("m-1", "[tokens=1] x")});
    let response = client.request(Method::POST, "/a2a/agents/Pilot").json(&body).send().await.unwrap();
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["id"], 7);
    let run = client.run(response["result"]["task"]["id"].as_str().unwrap()).await;
    assert!(run["agent_id"].is_string(), "{run}");
    let missing = client.request(Method::GET, "/a2a/agents/Nobody/.well-known/agent-card.json").send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

async fn a_message_waits_for_the_end_or_returns_at_once(mut deployment: Deployment) {
    let client = deployment.client();
    let task = result(&client, "SendMessage", message("m-1", "[tokens=3] x")).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(text_of(&task["artifacts"][0]), "This is Holdfast's ");
    assert_eq!(task["history"][0]["parts"][0]["text"], "[tokens=3] x");
    let mut params = message("m-2", "[tokens=500] [delay=50] x");
    params["configuration"] = json!({"returnImmediately": true, "historyLength": 0});
    let task = result(&client, "SendMessage", params.clone()).await["task"].clone();
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&task["status"]["state"].as_str().unwrap()));
    assert_eq!(task["history"], Value::Null);
    client.cancel(&text(&task["id"])).await;
    params["configuration"]["historyLength"] = json!(-1);
    assert_eq!(error(&client, "SendMessage", params).await, -32602);
    let asked = result(&client, "SendMessage", message("m-3", "[approval] [tokens=1] x")).await["task"].clone();
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "a question ends the wait");
    let read = result(&client, "GetTask", json!({"id": asked["id"]})).await;
    assert_eq!(read["status"], asked["status"]);
}

async fn a_repeated_message_is_the_same_task(mut deployment: Deployment) {
    let client = deployment.client();
    let first = frames(request(&client, "SendStreamingMessage", &message("m-1", "[tokens=3] x"))).await;
    let again = frames(request(&client, "SendStreamingMessage", &message("m-1", "[tokens=3] x"))).await;
    assert_eq!(results(&first), results(&again));
    let whole = result(&client, "SendMessage", message("m-1", "[tokens=3] x")).await;
    assert_eq!(whole["task"]["id"], results(&first)[0].1["task"]["id"]);
    let response = call(&client, "SendMessage", message("m-1", "[tokens=4] x")).await;
    assert_eq!(response["error"]["code"], -32602);
    assert_eq!(response["error"]["data"][0]["metadata"]["code"], "idempotency_key_reused");
}

async fn a_context_is_the_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let within = |id: &str, context: &str| {
        let mut params = message(id, "[tokens=1] x");
        params["message"]["contextId"] = context.into();
        params
    };
    let first = result(&client, "SendMessage", within("m-1", "tide")).await["task"].clone();
    let second = result(&client, "SendMessage", within("m-2", "tide")).await["task"].clone();
    assert_eq!((&first["contextId"], &second["contextId"]), (&json!("tide"), &json!("tide")));
    let conversation = client.run(&text(&first["id"])).await["conversation_id"].clone();
    assert_eq!(client.run(&text(&second["id"])).await["conversation_id"], conversation);
    assert_eq!(result(&client, "GetTask", json!({"id": second["id"]})).await["contextId"], "tide");
    let third = result(&client, "SendMessage", within("m-3", &text(&conversation))).await["task"].clone();
    assert_eq!(client.run(&text(&third["id"])).await["conversation_id"], conversation);
    let alone = result(&client, "SendMessage", message("m-4", "[tokens=1] x")).await["task"].clone();
    let own = client.run(&text(&alone["id"])).await["conversation_id"].clone();
    assert_eq!(alone["contextId"], own, "a conversation without a name has its id");
    let elsewhere = result(&client, "SendMessage", within("m-1", "wind")).await["task"].clone();
    assert_ne!(elsewhere["id"], first["id"], "a message's id is one of its context only");
    let again = result(&client, "SendMessage", within("m-1", "tide")).await["task"].clone();
    assert_eq!(again["id"], first["id"]);
    let mut foreign = within("m-5", "tide");
    foreign["message"]["taskId"] = alone["id"].clone();
    assert_eq!(error(&client, "SendMessage", foreign).await, -32602, "the task is in another context");
}

async fn files_of_a_message_reach_the_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let mut params = message("m-1", "[tokens=1] x");
    let file = json!({"raw": "aGVsbG8=", "mediaType": "text/plain", "filename": "note.txt"});
    params["message"]["parts"].as_array_mut().unwrap().extend([file, json!({"data": {"depth": 3}})]);
    let task = result(&client, "SendMessage", params).await["task"].clone();
    let parts = task["history"][0]["parts"].as_array().unwrap().clone();
    let kinds: Vec<bool> = parts.iter().map(|part| part["url"].is_string()).collect();
    assert_eq!(kinds, [false, true, false], "{parts:?}");
    assert_eq!(parts[2]["text"], r#"{"depth":3}"#);
    let path = text(&parts[1]["url"]).replace(client.base(), "");
    assert_eq!(client.request(Method::GET, &path).send().await.unwrap().status(), 200);
    let mut video = message("m-2", "x");
    video["message"]["parts"] = json!([{"url": "ftp://example.com/video"}]);
    assert_eq!(error(&client, "SendMessage", video).await, -32005);
}

/// Starts a task that asks, and returns it.
async fn asking(client: &Client, id: &str, text: &str) -> KeptTask {
    let frames = frames(request(client, "SendStreamingMessage", &message(id, text))).await;
    let task = KeptTask::of(&results(&frames));
    assert_eq!(task.state, "TASK_STATE_INPUT_REQUIRED");
    task
}

async fn an_approval_is_decided_once_and_by_its_name(mut deployment: Deployment) {
    let client = deployment.client();
    let task = asking(&client, "m-1", "[approval=2] [approval] [tokens=2] x").await;
    assert_eq!(
        error(&client, "SendMessage", message_to(&task.id, "m-2", "yes")).await,
        -32602,
        "a text is no decision"
    );
    let wrong = decision("m-3", &task.id, json!({"decision": "perhaps"}));
    assert_eq!(error(&client, "SendMessage", wrong).await, -32602);
    let deny = decision("m-4", &task.id, json!({"decision": "deny", "reason": "too deep"}));
    let denied = result(&client, "SendMessage", deny.clone()).await["task"].clone();
    let calls = client.get(&format!("/v1/runs/{}/approvals", task.id)).await.unwrap();
    assert_eq!(calls["items"][0]["status"], "denied");
    assert_eq!(calls["items"][0]["reason"], "too deep");
    assert_eq!(denied["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the run asks again");
    assert_eq!(error(&client, "SendMessage", deny.clone()).await, -32602, "the second question needs its name");
    let asked = &denied["status"]["message"]["parts"][1]["data"];
    assert_ne!(asked["approvalId"], task.questions[0]["approvalId"]);
    let approve = json!({"decision": "approve", "approvalId": asked["approvalId"]});
    let approve = decision("m-5", &task.id, approve);
    let end = result(&client, "SendMessage", approve.clone()).await["task"].clone();
    assert_eq!(end["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(result(&client, "SendMessage", approve).await["task"]["id"], task.id.as_str(), "a repeated answer");
    let mut other = deny;
    other["message"]["parts"][0]["data"]["approvalId"] = asked["approvalId"].clone();
    result(&client, "SendMessage", other).await;
    let approvals = client.get(&format!("/v1/runs/{}/approvals", task.id)).await.unwrap();
    assert_eq!(approvals["items"][1]["status"], "approved", "the first decision counts: {approvals}");
}

async fn a_call_of_a_front_end_is_answered_by_its_result(mut deployment: Deployment) {
    let client = deployment.client();
    let answers = [
        ("m-1", json!({"result": {"depth": 3}}), json!(r#"{"depth":3}"#)),
        ("m-2", json!({"result": null}), json!("null")),
        ("m-3", json!({"error": "no echo"}), json!("no echo")),
    ];
    for (id, mut part, expected) in answers {
        let task = asking(&client, id, "[clienttool] [tokens=1] x").await;
        let question = &task.questions[0];
        assert_eq!((&question["type"], &question["name"]), (&json!("client_tool"), &json!("scripted__clienttool")));
        part["callId"] = question["callId"].clone();
        let both = json!({"callId": part["callId"], "result": 1, "error": "x"});
        for wrong in [json!({"callId": "call_x", "result": 1}), both] {
            let wrong = decision("a-1", &task.id, wrong);
            assert_eq!(error(&client, "SendMessage", wrong.clone()).await, -32602, "{wrong}");
        }
        let answer = decision("a-2", &task.id, part);
        let end = results(&frames(request(&client, "SendStreamingMessage", &answer)).await);
        assert_eq!(end[0].1["task"]["status"]["state"], "TASK_STATE_WORKING");
        assert_eq!(KeptTask::of(&end).state, "TASK_STATE_COMPLETED");
        let calls = client.get(&format!("/v1/runs/{}/tool_calls", task.id)).await.unwrap();
        let call = &calls["items"][0];
        assert!([&call["output"], &call["error"]["message"]].contains(&&expected), "{call}");
        assert_eq!(result(&client, "SendMessage", answer).await["task"]["id"], task.id.as_str(), "a repeated result");
    }
}

async fn parameters_have_the_names_of_the_protocols_definition_too(mut deployment: Deployment) {
    let client = deployment.client();
    let message =
        json!({"message_id": "m-1", "context_id": "tide", "role": "ROLE_USER", "parts": [{"text": "[tokens=1] x"}]});
    let params = json!({"message": message, "configuration": {"history_length": 0}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let response = client.request(Method::POST, "/a2a/").json(&body).send().await.unwrap();
    let task = response.json::<Value>().await.unwrap()["result"]["task"].clone();
    assert_eq!((&task["contextId"], &task["history"]), (&json!("tide"), &Value::Null));
    let listed = result(&client, "ListTasks", json!({"context_id": "none", "page_size": 7})).await;
    assert_eq!((&listed["tasks"], &listed["pageSize"]), (&json!([]), &json!(7)));
    let listed = result(&client, "ListTasks", json!({"context_id": "tide", "include_artifacts": true})).await;
    assert_eq!(text_of(&listed["tasks"][0]["artifacts"][0]), "This ");
}

/// Returns the parameters of a text for a task.
fn message_to(task_id: &str, id: &str, text: &str) -> Value {
    let mut params = message(id, text);
    params["message"]["taskId"] = task_id.into();
    params
}

async fn a_text_steers_a_task_that_works(mut deployment: Deployment) {
    let client = deployment.client();
    let text = "[tokens=900] [delay=50] x";
    let mut stream = BlockStream::open(request(&client, "SendStreamingMessage", &message("m-1", text))).await;
    stream.until_sent("artifactUpdate").await;
    let task_id = stream.run_id.clone();
    let steering = message_to(&task_id, "m-2", "[tokens=1] y");
    let steered = BlockStream::open(request(&client, "SendStreamingMessage", &steering)).await;
    client.cancel(&task_id).await;
    let steered = KeptTask::of(&results(&steered.rest().await));
    assert_eq!((&steered.id, steered.state.as_str()), (&task_id, "TASK_STATE_CANCELED"));
    stream.rest().await;
    let messages = client.get("/v1/runs?limit=10").await.unwrap();
    assert_eq!(messages["items"].as_array().unwrap().len(), 2, "the message is stored: {messages}");
    assert_eq!(error(&client, "SendMessage", message_to(&task_id, "m-3", "z")).await, -32004, "the task has ended");
}

async fn a_task_is_cancelled_once(mut deployment: Deployment) {
    let client = deployment.client();
    let mut stream =
        BlockStream::open(request(&client, "SendStreamingMessage", &message("m-1", "[tokens=900] [delay=50] x"))).await;
    stream.until_sent("artifactUpdate").await;
    let params = json!({"id": stream.run_id});
    let task = result(&client, "CancelTask", params.clone()).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(KeptTask::of(&results(&stream.rest().await)).state, "TASK_STATE_CANCELED");
    assert_eq!(error(&client, "CancelTask", params.clone()).await, -32002);
    assert_eq!(error(&client, "SubscribeToTask", params).await, -32004, "nothing can follow");
    let waiting = asking(&client, "m-2", "[approval] x").await;
    let task = result(&client, "CancelTask", json!({"id": waiting.id})).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(error(&client, "CancelTask", json!({"id": "x"})).await, -32001);
}

async fn tasks_are_listed_page_by_page(mut deployment: Deployment) {
    let client = deployment.client();
    let mut ids = Vec::new();
    for n in 0..5 {
        let mut params = message(&format!("m-{n}"), if n == 3 { "[fail] x" } else { "[tokens=1] x" });
        params["message"]["contextId"] = if n == 4 { "other" } else { "tide" }.into();
        ids.insert(0, result(&client, "SendMessage", params).await["task"]["id"].clone());
    }
    let listed = |page: &Value| -> Vec<Value> {
        page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect()
    };
    let mut token = String::new();
    let mut all = Vec::new();
    loop {
        let page = result(&client, "ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
        all.extend(listed(&page));
        token = text(&page["nextPageToken"]);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(all, ids);
    let tide = result(&client, "ListTasks", json!({"contextId": "tide", "includeArtifacts": true})).await;
    assert_eq!((listed(&tide), &tide["totalSize"]), (ids[1..].to_vec(), &json!(4)));
    assert_eq!(text_of(&tide["tasks"][3]["artifacts"][0]), "This ");
    let failed = result(&client, "ListTasks", json!({"status": "TASK_STATE_FAILED"})).await;
    assert_eq!((listed(&failed), &failed["tasks"][0]["artifacts"]), (vec![ids[1].clone()], &Value::Null));
    assert_eq!(result(&client, "ListTasks", json!({"contextId": "none"})).await["tasks"], json!([]));
    for wrong in [
        json!({"pageSize": 101}),
        json!({"pageSize": 0}),
        json!({"pageToken": "x"}),
        json!({"status": "TASK_STATE_SUNK"}),
        json!({"statusTimestampAfter": "2026-01-01T00:00:00Z"}),
    ] {
        assert_eq!(error(&client, "ListTasks", wrong.clone()).await, -32602, "{wrong}");
    }
}

async fn tasks_of_others_do_not_exist(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let of_ann = asking(&ann, "m-1", "[approval] [tokens=1] x").await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(error(&bob, method, json!({"id": of_ann.id})).await, -32001, "{method}");
    }
    let approve = decision("m-2", &of_ann.id, json!({"decision": "approve"}));
    assert_eq!(error(&bob, "SendMessage", approve).await, -32001);
    assert_eq!(result(&bob, "ListTasks", json!({})).await["tasks"], json!([]));
    let of_bob = result(&bob, "SendMessage", message("m-1", "[tokens=1] x")).await;
    assert_ne!(of_bob["task"]["id"], of_ann.id, "each user has names of his own");
}

async fn invalid_requests_are_refused_in_the_form_of_json_rpc(mut deployment: Deployment) {
    let client = deployment.client();
    let posted = async |body: String| {
        let request = client.request(Method::POST, "/a2a").header("content-type", "application/json").body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let response: Value = response.json().await.unwrap();
        (status, response["error"]["code"].as_i64().unwrap(), response["id"].clone())
    };
    let null = Value::Null;
    assert_eq!(posted("{".into()).await, (200, -32700, null.clone()));
    assert_eq!(posted("[]".into()).await, (200, -32600, null.clone()));
    assert_eq!(posted(r#"{"id": 1, "method": "GetTask"}"#.into()).await, (200, -32600, json!(1)));
    assert_eq!(
        posted(r#"{"jsonrpc": "2.0", "id": {}, "method": "GetTask"}"#.into()).await,
        (200, -32600, null.clone())
    );
    assert_eq!(posted(r#"{"jsonrpc": "2.0", "id": 2, "method": "Sink"}"#.into()).await, (200, -32601, json!(2)));
    assert_eq!(posted(r#"{"jsonrpc": "2.0", "id": 3, "method": "GetTask"}"#.into()).await, (200, -32602, json!(3)));
    let long = json!({"jsonrpc": "2.0", "id": "x".repeat(257), "method": "GetTask"}).to_string();
    assert_eq!(posted(long).await, (200, -32600, null));
    let with = |field: &str, value: Value| {
        let mut params = message("m-1", "x");
        params["message"][field] = value;
        params
    };
    for params in [
        with("messageId", json!("")),
        with("messageId", json!("x".repeat(129))),
        with("contextId", json!("x".repeat(129))),
        with("role", json!("ROLE_AGENT")),
        with("parts", json!([])),
        with("parts", json!([{"text": ""}])),
        json!({}),
    ] {
        assert_eq!(error(&client, "SendMessage", params.clone()).await, -32602, "{params}");
    }
    let version = request(&client, "ListTasks", &json!({})).header("a2a-version", "2.0").send().await.unwrap();
    assert_eq!(version.json::<Value>().await.unwrap()["error"]["code"], -32009);
    let plain =
        client.request(Method::POST, "/a2a").header("content-type", "text/plain").body("{}").send().await.unwrap();
    assert_eq!(plain.status(), 415);
    let plain: Value = plain.json().await.unwrap();
    assert_eq!((&plain["jsonrpc"], &plain["error"]["code"]), (&json!("2.0"), &json!(-32005)));
}

async fn methods_that_this_server_lacks_say_so(mut deployment: Deployment) {
    let client = deployment.client();
    for method in
        ["CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", "ListTaskPushNotificationConfigs"]
    {
        assert_eq!(error(&client, method, json!({"taskId": "x", "url": "http://h"})).await, -32003, "{method}");
    }
    let mut params = message("m-1", "x");
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": "http://h"}});
    assert_eq!(error(&client, "SendMessage", params).await, -32003);
    assert_eq!(error(&client, "GetExtendedAgentCard", json!({})).await, -32007);
}

#[tokio::test]
async fn an_anonymous_caller_pays_for_refusals_as_for_runs() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", "3/hour");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let anonymous = client.token(made["token"].as_str().unwrap());
    for _ in 0..3 {
        assert_eq!(error(&anonymous, "SendMessage", json!({})).await, -32602);
    }
    let refused = request(&anonymous, "SendMessage", &message("m-1", "[tokens=1] x")).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let body: Value = refused.json().await.unwrap();
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!("r-1"), &json!(-32000)));
}

#[tokio::test]
async fn refusals_before_the_method_keep_their_status() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_ANONYMOUS", "false");
    let mut holdfast = embedded.start();
    let unknown = request(&holdfast.client(), "ListTasks", &json!({})).send().await.unwrap();
    assert_eq!(unknown.status(), 401);
    assert!(unknown.headers().contains_key("www-authenticate"));
    let body: Value = unknown.json().await.unwrap();
    assert_eq!((&body["jsonrpc"], &body["error"]["code"]), (&json!("2.0"), &json!(-32000)));
    let embedded = Embedded::new().with("HOLDFAST_MAX_CHAT_BODY_BYTES", 4096).with("HOLDFAST_MAX_BODY_BYTES", 4096);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let large = request(&client, "SendMessage", &message("m-1", &"x".repeat(5000))).send().await.unwrap();
    assert_eq!(large.status(), 413);
    let body: Value = large.json().await.unwrap();
    assert_eq!(
        (&body["jsonrpc"], &body["error"]["data"][0]["metadata"]["code"]),
        (&json!("2.0"), &json!("body_too_large"))
    );
}
