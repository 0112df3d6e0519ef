//! AG-UI's wire: its own client, and frames one by one.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    files::asking,
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, ClientProgram, Deployment, Proxy, StreamBlock, agent, upstream::TestUpstream},
};

in_both_modes!(
    the_client_of_the_protocol_shows_an_answer_with_an_approval,
    a_tool_of_the_front_end_ends_the_run_and_its_result_continues_it,
    a_stream_continues_after_every_frame,
    a_lost_worker_leaves_no_text_of_its_own,
);
in_either_mode!(
    a_repeated_request_is_the_same_run,
    an_answer_names_the_rest_of_its_run_once,
    a_message_runs_again_under_another_name,
    a_queued_message_hides_no_running_answer,
    a_request_has_each_answer_once_and_not_too_many,
    a_client_of_whole_messages_gets_the_questions,
    a_resumable_agent_shows_the_stored_messages_despite_cuts_and_a_killed_server,
    a_resumable_agent_replaces_a_silent_connection,
    a_resumable_agent_refuses_a_page_instead_of_a_stream,
    an_agent_is_reached_by_its_name,
    a_client_before_version_1_gets_no_outcome_that_it_refuses,
    the_model_reads_the_context_of_a_request,
    a_subagent_begins_and_ends_in_every_stream_of_its_run,
    invalid_requests_of_the_protocol_are_refused,
    threads_and_runs_of_others_do_not_exist,
);

const TALK: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [approval] [tokens=12] hello"#;

fn input(thread: &str, run: &str, text: &str) -> Value {
    let messages = json!([{"id": format!("m-{run}"), "role": "user", "content": text}]);
    json!({"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": messages, "tools": [], "context": [],
        "state": {}, "forwardedProps": {}})
}

fn post(client: &Client, body: &Value) -> RequestBuilder {
    client.request(Method::POST, "/ag-ui").json(body)
}

async fn frames(request: RequestBuilder) -> Vec<StreamBlock> {
    BlockStream::open(request).await.rest().await
}

/// Returns the frames without comments, which tell that a quiet stream is alive.
fn pairs(frames: &[StreamBlock]) -> Vec<(String, Value)> {
    frames.iter().map(|frame| (frame.id.clone().expect("each frame has an id"), frame.json())).collect()
}

fn types(frames: &[StreamBlock]) -> Vec<String> {
    frames.iter().map(|frame| frame.json()["type"].as_str().unwrap().to_owned()).collect()
}

/// Returns the reports of the steps of a client's program.
fn steps(reports: &[Value]) -> Vec<&Value> {
    reports.iter().filter(|report| report["step"].is_u64()).collect()
}

/// Returns the messages of a thread, as a new client gets them.
async fn stored(client: &Client, thread: &str) -> Value {
    let frames = frames(client.request(Method::GET, &format!("/ag-ui/threads/{thread}?protocolVersion=1.0"))).await;
    let snapshot = frames.iter().map(StreamBlock::json).find(|event| event["type"] == "MESSAGES_SNAPSHOT");
    snapshot.expect("a thread has its messages")["messages"].clone()
}

async fn the_client_of_the_protocol_shows_an_answer_with_an_approval(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let script = json!([{"say": TALK}, {"answer": {"approved": true}}, {"say": "[tokens=2] again"}]);
    let program = ClientProgram::start("ag-ui", client.base(), json!({"thread": "t", "steps": script})).await;
    let (reports, messages) = program.rest().await;
    let steps = steps(&reports);
    assert_eq!(steps[0]["interrupts"][0]["reason"], "approval", "{}", steps[0]);
    assert_eq!(steps[1]["interrupts"], json!([]), "{}", steps[1]);
    assert_eq!(messages, stored(&client, "t").await, "what the client has shown is what the server has stored");
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "assistant", "tool", "reasoning", "assistant", "user", "assistant"]
    );
}

async fn a_tool_of_the_front_end_ends_the_run_and_its_result_continues_it(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let tools = json!([{"name": "ask", "description": "Asks.", "parameters": {"type": "object"}}]);
    let script = json!([{"say": "[clienttool=Which colour?] [tokens=3] x"}, {"result": "teal"}]);
    let parameters = json!({"thread": "t", "tools": tools, "steps": script});
    let (reports, messages) = ClientProgram::start("ag-ui", client.base(), parameters).await.rest().await;
    let ends: Vec<&Value> = reports.iter().filter(|event| event["type"] == "RUN_FINISHED").collect();
    let pending = &ends[0]["outcome"]["pendingToolCallIds"];
    assert_eq!((&ends[0]["outcome"]["type"], pending.as_array().unwrap().len()), (&json!("success"), 1));
    assert_eq!(ends[1]["outcome"], json!({"type": "success"}));
    let results: Vec<&Value> =
        messages.as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 1, "the client's own result is there once: {messages}");
    let stored = stored(&client, "t").await;
    let texts = |messages: &Value| -> Vec<String> {
        messages.as_array().unwrap().iter().map(|message| message["content"].to_string()).collect()
    };
    assert_eq!(texts(&messages), texts(&stored));
}

/// Cuts the stream of a request after each of its frames: the rest of the frames comes, with equal ids.
async fn expect_the_rest(request: impl Fn() -> RequestBuilder, all: &[StreamBlock]) {
    let all = pairs(all);
    for (n, (id, _)) in all.iter().enumerate() {
        let response = request().header("last-event-id", id).send().await.unwrap();
        let rest = match response.status().as_u16() {
            204 => Vec::new(),
            200 => {
                let end = &all.last().unwrap().1;
                let has_ended = end["type"] == "RUN_ERROR" || end["outcome"]["type"] == "success";
                assert!(n + 1 < all.len() || !has_ended, "a client that has the end of a run gets 204");
                pairs(&BlockStream::of(response).rest().await)
            }
            status => panic!("{status} after {id}: {}", response.text().await.unwrap()),
        };
        assert_eq!(rest, all[n + 1..], "after {id}");
    }
}

async fn a_stream_continues_after_every_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let body = input("t", "first", TALK);
    let first = frames(post(&client, &body)).await;
    let interrupt = pairs(&first).pop().unwrap().1["outcome"]["interrupts"][0].clone();
    expect_the_rest(|| post(&client, &body), &first).await;
    let resume = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
    let mut answer = input("t", "second", "");
    answer["messages"] = json!([]);
    answer["resume"] = resume;
    let second = frames(post(&client, &answer)).await;
    assert_eq!(second[0].json()["runId"], "second");
    expect_the_rest(|| post(&client, &answer), &second).await;
    let by_name = || client.request(Method::GET, "/ag-ui/runs/second?threadId=t&protocolVersion=1.0");
    assert_eq!(pairs(&frames(by_name()).await), pairs(&second), "the answer's name is that of the rest of the run");
    expect_the_rest(by_name, &second).await;
    expect_the_rest(|| post(&client, &body), &first).await;
    let whole = frames(client.request(Method::GET, "/ag-ui/runs/first?threadId=t&protocolVersion=1.0")).await;
    expect_the_rest(|| client.request(Method::GET, "/ag-ui/runs/first?threadId=t&protocolVersion=1.0"), &whole).await;
    let failed = input("u", "fails", "[tokens=6] [fail] hello");
    let frames_of_failed = frames(post(&client, &failed)).await;
    assert_eq!(types(&frames_of_failed).last().unwrap(), "RUN_ERROR");
    expect_the_rest(|| post(&client, &failed), &frames_of_failed).await;
}

async fn a_lost_worker_leaves_no_text_of_its_own(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let body = input("t", "r", "[tokens=200] [delay=20] hello");
    let mut stream = BlockStream::open(post(&client, &body)).await;
    stream.until_sent("TEXT_MESSAGE_CONTENT").await;
    let before = stream.take(12).await;
    let last = before.last().unwrap().id.clone().unwrap();
    deployment.kill_worker();
    let client = deployment.client();
    let rest = if deployment.is_embedded() {
        frames(post(&client, &body).header("last-event-id", &last)).await
    } else {
        stream.rest().await
    };
    let all = types(&rest);
    let snapshot = all.iter().position(|kind| kind == "MESSAGES_SNAPSHOT").expect("the messages come again");
    let messages = rest[snapshot].json()["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1, "the text of the lost worker is gone: {messages}");
    let texts = rest[snapshot..].iter().map(StreamBlock::json).filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    let text: String = texts.map(|event| event["delta"].as_str().unwrap().to_owned()).collect();
    assert_eq!(stored(&client, "t").await[1]["content"], text);
}

async fn a_repeated_request_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let body = input("t", "r", "[tokens=3] hello");
    let first = BlockStream::open(post(&client, &body)).await;
    let run_id = first.run_id.clone();
    let all = first.rest().await;
    let again = BlockStream::open(post(&client, &body)).await;
    assert_eq!(again.run_id, run_id);
    assert_eq!(pairs(&again.rest().await), pairs(&all));
    let other = post(&client, &input("t", "r", "[tokens=3] good bye")).send().await.unwrap();
    assert_eq!(other.status(), 422);
    assert_eq!(other.json::<Value>().await.unwrap()["code"], "idempotency_key_reused");
}

async fn an_answer_names_the_rest_of_its_run_once(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let first = frames(post(&ann, &input("t", "first", "[approval] [tokens=2] x"))).await;
    let interrupt = pairs(&first).pop().unwrap().1["outcome"]["interrupts"][0].clone();
    let answer = |name: &str| {
        let mut answer = input("t", name, "");
        answer["messages"] = json!([]);
        answer["resume"] =
            json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
        answer
    };
    let second = frames(post(&ann, &answer("second"))).await;
    assert_eq!(pairs(&frames(post(&ann, &answer("third"))).await).len(), second.len());
    let follow = async |client: &Client, name: &str| {
        client.request(Method::GET, &format!("/ag-ui/runs/{name}")).send().await.unwrap().status().as_u16()
    };
    assert_eq!(follow(&ann, "second").await, 200);
    assert_eq!(follow(&ann, "third").await, 404, "a pause has one name");
    assert_eq!(follow(&bob, "second").await, 404);
}

async fn a_message_runs_again_under_another_name(mut deployment: Deployment) {
    let client = deployment.client();
    let first = frames(post(&client, &input("t", "r", "[tokens=3] [fail] hello"))).await;
    assert_eq!(types(&first).last().unwrap(), "RUN_ERROR");
    let mut again = input("t", "r", "[tokens=3] hello");
    again["runId"] = "again".into();
    let second = frames(post(&client, &again)).await;
    assert_eq!(types(&second).last().unwrap(), "RUN_FINISHED");
    let messages = stored(&client, "t").await;
    assert_eq!(messages.as_array().unwrap().len(), 2, "the message and its new answer: {messages}");
}

async fn a_queued_message_hides_no_running_answer(mut deployment: Deployment) {
    let client = deployment.client();
    let mut first = BlockStream::open(post(&client, &input("t", "first", "[gate=closed] hello"))).await;
    first.until_sent("TEXT_MESSAGE_CONTENT").await;
    let conversation = client.run(&first.run_id).await["conversation_id"].clone();
    let path = format!("/v1/conversations/{}/messages", conversation.as_str().unwrap());
    let queued = client.post(&path, json!({"content": "[tokens=1] x"})).await.unwrap();
    let thread = BlockStream::open(client.request(Method::GET, "/ag-ui/threads/t?protocolVersion=1.0")).await;
    assert_eq!(thread.run_id, first.run_id);
    client.cancel(&first.run_id).await;
    let rest = thread.rest().await;
    assert_eq!(rest.last().unwrap().json()["outcome"]["type"], "cancelled");
    client.wait_for_run(queued["run"]["id"].as_str().unwrap()).await;
}

async fn a_request_has_each_answer_once_and_not_too_many(mut deployment: Deployment) {
    let client = deployment.client();
    let first = frames(post(&client, &input("t", "first", "[approval] [tokens=3] hello"))).await;
    let interrupt = pairs(&first).pop().unwrap().1["outcome"]["interrupts"][0].clone();
    let entry = json!({"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}});
    let mut answer = input("t", "answer", "");
    answer["messages"] = json!([]);
    answer["resume"] = json!(vec![entry.clone(); 257]);
    assert_eq!(post(&client, &answer).send().await.unwrap().status(), 400, "more than 256 answers");
    answer["resume"] = json!(vec![entry; 256]);
    assert_eq!(types(&frames(post(&client, &answer)).await).last().unwrap(), "RUN_FINISHED");
}

async fn a_client_of_whole_messages_gets_the_questions(mut deployment: Deployment) {
    let client = deployment.client();
    let body = input("t", "r", "[approval] [tokens=3] hello");
    let first = frames(client.request(Method::POST, "/ag-ui?stream_mode=messages").json(&body)).await;
    let expected =
        ["RUN_STARTED", "CUSTOM", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "CUSTOM", "RUN_FINISHED"];
    assert_eq!(types(&first), expected);
    assert_eq!(first.last().unwrap().json()["outcome"]["type"], "interrupt");
}

async fn a_resumable_agent_shows_the_stored_messages_despite_cuts_and_a_killed_server(deployment: Deployment) {
    let mut deployment = deployment.own();
    let proxy = Proxy::before(deployment.client().base()).await;
    let text = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=200] [delay=20] hello"#;
    let parameters = json!({"resumable": true, "thread": "t", "steps": [{"say": text}, {"connect": true}]});
    let mut program = ClientProgram::start("ag-ui", &proxy.base, parameters).await;
    let is_text = |event: &Value| event["type"] == "TEXT_MESSAGE_CONTENT";
    program.up_to_nth(10, is_text).await;
    proxy.reset();
    program.up_to_nth(10, is_text).await;
    deployment.kill_worker();
    proxy.until_refused().await;
    proxy.lead_to(deployment.client().base());
    program.up_to_nth(1, |event| event["type"] == "MESSAGES_SNAPSHOT").await;
    program.up_to_nth(10, is_text).await;
    proxy.reset();
    let (reports, connected) = program.rest().await;
    let steps = steps(&reports);
    assert_eq!(steps[0]["messages"], connected, "a new client has what the old one has");
    assert_eq!(connected, stored(&deployment.client(), "t").await);
}

async fn a_resumable_agent_replaces_a_silent_connection(deployment: Deployment) {
    let mut deployment = deployment.own();
    let proxy = Proxy::before(deployment.client().base()).await;
    let steps = json!([{"say": "[tokens=60] [delay=20] hello"}, {"connect": true}]);
    let parameters = json!({"resumable": true, "silence": 1000, "thread": "t", "steps": steps});
    let mut program = ClientProgram::start("ag-ui", &proxy.base, parameters).await;
    program.up_to_nth(10, |event: &Value| event["type"] == "TEXT_MESSAGE_CONTENT").await;
    proxy.silence();
    let (reports, connected) = program.rest().await;
    let steps = self::steps(&reports);
    assert_eq!(steps[0]["messages"], connected);
    assert_eq!(connected, stored(&deployment.client(), "t").await);
}

async fn a_resumable_agent_refuses_a_page_instead_of_a_stream(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    // The chat page answers here.
    let parameters = json!({"resumable": true, "thread": "t", "path": "/c/x?", "steps": [{"connect": true}]});
    let (reports, _) = ClientProgram::start("ag-ui", client.base(), parameters).await.rest().await;
    let refused = reports.iter().find_map(|report| report["refused"].as_str()).unwrap();
    assert!(refused.contains("no stream"), "{refused}");
}

async fn an_agent_is_reached_by_its_name(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = client.post("/v1/agents", json!({"name": "Pilot", "system_prompt": "Steer."})).await.unwrap();
    let stream =
        BlockStream::open(client.request(Method::POST, "/ag-ui/agents/Pilot").json(&input("t", "r", "[tokens=1] x")))
            .await;
    let run = client.run(&stream.run_id).await;
    assert_eq!(run["agent_id"], agent["id"]);
    let unknown =
        client.request(Method::POST, "/ag-ui/agents/Nobody").json(&input("u", "s", "x")).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(unknown.json::<Value>().await.unwrap()["code"], "agent_not_found");
}

async fn a_client_before_version_1_gets_no_outcome_that_it_refuses(mut deployment: Deployment) {
    let client = deployment.client();
    let early = |thread: &str, text: &str| {
        let mut body = input(thread, &format!("run-{thread}"), text);
        body.as_object_mut().unwrap().remove("protocolVersion");
        body["tools"] = json!([{"name": "ask", "description": "Asks.", "parameters": {"type": "object"}}]);
        body
    };
    let asked = frames(post(&client, &early("t", "[clienttool=Which colour?] x"))).await;
    assert_eq!(asked.last().unwrap().json()["outcome"], json!({"type": "success"}), "the call is in the messages");
    let mut stream = BlockStream::open(post(&client, &early("u", "[gate=closed] x"))).await;
    stream.until_sent("TEXT_MESSAGE_CONTENT").await;
    client.cancel(&stream.run_id).await;
    let end = stream.rest().await.last().unwrap().json();
    assert_eq!((&end["type"], &end["outcome"]), (&json!("RUN_FINISHED"), &Value::Null));
    for (version, outcome) in [("1.0", json!({"type": "cancelled"})), ("0.0.59", Value::Null)] {
        let path = format!("/ag-ui/threads/u?protocolVersion={version}");
        let again = frames(client.request(Method::GET, &path)).await;
        assert_eq!(again.last().unwrap().json()["outcome"], outcome, "{version}");
    }
}

async fn the_model_reads_the_context_of_a_request(deployment: Deployment) {
    let upstream = TestUpstream::start(&["Aye."]).await;
    let mut deployment = asking(deployment, &upstream).with("HOLDFAST_MAX_CONTENT_BYTES", 1000);
    let client = deployment.client();
    let mut body = input("t", "r", "Which ship?");
    body["context"] =
        json!([{"description": "The ship", "value": "Ketch"}, {"description": "Crew", "value": {"cook": "Ann"}}]);
    let first = frames(post(&client, &body)).await;
    assert_eq!(types(&first).last().unwrap(), "RUN_FINISHED");
    let told = upstream.requests()[0]["messages"][0].clone();
    assert_eq!(told["role"], "system");
    let text = told["content"].as_str().unwrap();
    let lines: Vec<Value> = text.lines().rev().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!([lines[1], lines[0]]), body["context"], "{text}");
    // The context holds for its run.
    frames(post(&client, &input("t", "later", "And now?"))).await;
    assert!(!upstream.requests().last().unwrap().to_string().contains("Ketch"));
    let mut refused = input("t", "refused", "x");
    refused["context"] = json!([{"description": "The ship", "value": "x".repeat(1001)}]);
    assert_eq!(post(&client, &refused).send().await.unwrap().status(), 400);
}

async fn a_subagent_begins_and_ends_in_every_stream_of_its_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    agent(&client, json!([]), json!({"name": "helper"})).await;
    agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let steps =
        json!([{"say": "[delegate=helper [approval] [tokens=2] x] [tokens=2]"}, {"answer": {"approved": true}}]);
    let parameters = json!({"thread": "t", "path": "/ag-ui/agents/lead", "steps": steps});
    let (reports, _) = ClientProgram::start("ag-ui", client.base(), parameters).await.rest().await;
    let is_about = |event: &&Value| event["type"].as_str().is_some_and(|kind| kind.starts_with("SUBAGENT_"));
    let seen: Vec<(&Value, &Value)> =
        reports.iter().filter(is_about).map(|event| (&event["type"], &event["outcome"])).collect();
    let (began, ended, suspended) =
        (json!("SUBAGENT_STARTED"), json!("SUBAGENT_FINISHED"), json!({"type": "suspended"}));
    assert_eq!(seen, [(&began, &Value::Null), (&ended, &suspended), (&began, &Value::Null), (&ended, &Value::Null)]);
    let last = reports.iter().rfind(is_about).unwrap();
    assert!(last["result"].as_str().is_some_and(|result| !result.is_empty()), "{last}");
}

async fn invalid_requests_of_the_protocol_are_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let refused = async |body: Value| {
        let response = post(&client, &body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap()["code"].as_str().unwrap().to_owned())
    };
    let with = |field: &str, value: Value| {
        let mut body = input("t", "r", "x");
        body[field] = value;
        body
    };
    let resume = |entry: Value| with("resume", json!([entry]));
    let id = "01a201b8-a903-7000-8000-000000000000";
    for (body, status, code) in [
        (with("threadId", json!("")), 400, "invalid_body"),
        (with("threadId", json!("x".repeat(129))), 400, "invalid_body"),
        (with("runId", json!("x".repeat(129))), 400, "invalid_body"),
        (with("messages", json!([])), 409, "nothing_to_run"),
        (with("messages", json!([{"id": "a", "role": "assistant", "content": "x"}])), 409, "nothing_to_run"),
        (
            with("messages", json!([{"id": "a", "role": "user", "content": [{"type": "video"}]}])),
            400,
            "unsupported_part",
        ),
        (with("messages", json!([{"id": "a", "role": "user", "content": 7}])), 400, "invalid_body"),
        (with("messages", json!([{"id": "a", "role": "user", "content": ""}])), 400, "empty_content"),
        (resume(json!({"interruptId": "x", "status": "resolved", "payload": true})), 400, "invalid_body"),
        (resume(json!({"interruptId": id, "status": "resolved"})), 400, "invalid_body"),
        (resume(json!({"interruptId": id, "status": "cancelled"})), 404, "conversation_not_found"),
    ] {
        assert_eq!(refused(body.clone()).await, (status, code.to_owned()), "{body}");
    }
    let malformed = post(&client, &input("t", "r", "x")).header("last-event-id", "1-2.x").send().await.unwrap();
    assert_eq!(malformed.json::<Value>().await.unwrap()["code"], "invalid_event_id");
}

async fn threads_and_runs_of_others_do_not_exist(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let of_ann = BlockStream::open(post(&ann, &input("t", "r", "[tokens=2] x"))).await;
    let run_id = of_ann.run_id.clone();
    of_ann.rest().await;
    for path in ["/ag-ui/runs/r".to_owned(), format!("/ag-ui/runs/{run_id}")] {
        assert_eq!(bob.request(Method::GET, &path).send().await.unwrap().status(), 404, "{path}");
        assert_eq!(ann.request(Method::GET, &path).send().await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(bob.request(Method::GET, "/ag-ui/threads/t").send().await.unwrap().status(), 204);
    let of_bob = BlockStream::open(post(&bob, &input("t", "r", "[tokens=2] x"))).await;
    assert_ne!(of_bob.run_id, run_id, "each user has names of his own");
}
