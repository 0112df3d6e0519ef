//! LangGraph's wire: its own SDKs, and frames one by one.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, ClientProgram, Deployment, Proxy, StreamBlock},
};

in_both_modes!(
    the_sdk_shows_an_answer_with_an_approval,
    the_python_sdk_streams_joins_and_resumes,
    a_stream_continues_after_every_frame,
    a_lost_worker_leaves_no_text_twice,
    a_thread_has_a_name_metadata_and_a_status,
);
in_either_mode!(
    the_deprecated_second_version_of_the_sdk_works_too,
    the_examples_of_the_page_run,
    the_sdk_comes_back_after_a_reset_connection,
    a_page_shows_an_answer_once_despite_a_reload,
    a_run_is_waited_for_listed_and_cancelled,
    a_disconnect_cancels_a_run_only_on_request,
    a_tool_of_the_client_is_an_interrupt,
    an_earlier_state_is_read_and_continued,
    a_thread_gets_the_assistant_of_its_first_run,
    assistants_are_the_agents_that_admit_the_caller,
    a_repeated_request_is_the_same_run,
    a_list_of_threads_has_their_first_and_newest_messages,
    an_inbox_answers_and_resolves_interrupts,
    a_list_has_at_most_a_page,
    missing_functions_are_refused_in_words,
    threads_and_runs_of_others_do_not_exist,
);

const TALK: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [approval] [tokens=12] hello"#;

pub fn body(text: &str) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    let modes = json!(["values", "messages-tuple", "updates", "custom", "tasks", "tools"]);
    json!({"assistant_id": "agent", "input": {"messages": messages}, "stream_mode": modes, "if_not_exists": "create"})
}

pub fn post(client: &Client, path: &str, body: &Value) -> RequestBuilder {
    client.request(Method::POST, &format!("/langgraph{path}")).json(body)
}

pub fn get(client: &Client, path: &str) -> RequestBuilder {
    client.request(Method::GET, &format!("/langgraph{path}"))
}

pub async fn json_of(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn frames(request: RequestBuilder) -> Vec<StreamBlock> {
    BlockStream::open(request).await.rest().await
}

/// Returns the id, the kind and the data of each frame.
fn parts(frames: &[StreamBlock]) -> Vec<(String, String, Value)> {
    let part = |frame: &StreamBlock| {
        (frame.id.clone().expect("each frame has an id"), frame.event.clone().expect("a kind"), frame.json())
    };
    frames.iter().map(part).collect()
}

/// Returns the reports of the steps of a client's program.
pub fn steps(reports: &[Value]) -> Vec<&Value> {
    reports.iter().filter(|report| report["step"].is_u64()).collect()
}

/// Returns the frames of one kind.
fn of_kind<'a>(reports: &'a [Value], kind: &str) -> Vec<&'a Value> {
    reports.iter().filter(|report| report["event"] == kind).map(|report| &report["data"]).collect()
}

/// Returns the last values of a program's stream that have no interrupts.
fn last_messages(reports: &[Value]) -> Value {
    let values = of_kind(reports, "values").into_iter().rfind(|values| values["__interrupt__"].is_null());
    values.expect("a stream has values")["messages"].clone()
}

pub fn kinds(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["type"].as_str().unwrap()).collect()
}

pub async fn run_program(client: &Client, name: &str, parameters: Value) -> Vec<Value> {
    ClientProgram::start(name, client.base(), parameters).await.rest().await.0
}

async fn approves(client: &Client, program: &str, sdk: &str) {
    let script = json!([
        {"do": "create"}, {"do": "stream", "say": TALK}, {"do": "state"}, {"do": "run"},
        {"do": "resume", "value": {"approved": true}}, {"do": "run"}, {"do": "state"}, {"do": "history"},
        {"do": "joinStream"}
    ]);
    let parameters = json!({"sdk": sdk, "thread": "tide", "steps": script});
    let reports = run_program(client, program, parameters).await;
    let results: Vec<&Value> = steps(&reports);
    let interrupts: Vec<&Value> =
        of_kind(&reports, "values").into_iter().filter(|values| values["__interrupt__"].is_array()).collect();
    assert_eq!(interrupts[0]["__interrupt__"].as_array().unwrap().len(), 1);
    assert_eq!(results[2]["result"]["tasks"][0]["interrupts"], interrupts[0]["__interrupt__"]);
    assert_eq!(results[2]["result"]["next"], json!(["tools"]));
    assert_eq!(results[3]["result"]["status"], "interrupted");
    assert_ne!(results[1]["runId"], results[4]["runId"], "the answer begins a run of its own for the client");
    assert_eq!(results[5]["result"]["status"], "success");
    let end = results[6]["result"].clone();
    assert_eq!((&end["next"], &end["tasks"]), (&json!([]), &json!([])));
    assert_eq!(kinds(&end["values"]["messages"]), ["human", "ai", "tool", "ai", "tool", "ai"]);
    assert_eq!(last_messages(&reports), end["values"]["messages"], "the stream ends with the stored messages");
    let history = results[7]["result"].as_array().unwrap();
    assert_eq!(history[0]["values"], end["values"]);
    assert_eq!(history.len(), 3, "after the answer, after the question, and before both");
    let last: Vec<&Value> = reports.iter().filter(|report| report["event"].is_string()).collect();
    assert_eq!(last.last().unwrap()["event"], "end");
}

async fn the_sdk_shows_an_answer_with_an_approval(deployment: Deployment) {
    let mut deployment = deployment.own();
    approves(&deployment.client(), "langgraph-node", "@langchain/langgraph-sdk").await;
}

async fn the_deprecated_second_version_of_the_sdk_works_too(deployment: Deployment) {
    let mut deployment = deployment.own();
    approves(&deployment.client(), "langgraph-node", "langgraph-sdk-2").await;
}

async fn the_python_sdk_streams_joins_and_resumes(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    approves(&client, "langgraph-python", "").await;
    let script = json!([
        {"do": "create"}, {"do": "wait", "say": "[tokens=3] one"}, {"do": "start", "say": "[tokens=3] two"}, {"do": "join"},
        {"do": "joinStream"}, {"do": "start", "say": "[gate=closed] three"}, {"do": "cancel", "wait": true},
        {"do": "run"}, {"do": "wait", "say": "[tokens=2] [fail] four"}, {"do": "search"}
    ]);
    let reports = run_program(&client, "langgraph-python", json!({"thread": "second", "steps": script})).await;
    let results = steps(&reports);
    assert_eq!(kinds(&results[1]["result"]["messages"]), ["human", "ai"]);
    assert_eq!(kinds(&results[3]["result"]["messages"]), ["human", "ai", "human", "ai"]);
    assert_eq!(last_messages(&reports), results[3]["result"]["messages"]);
    assert_eq!(results[7]["result"]["status"], "interrupted");
    assert!(results[8]["result"]["__error__"]["message"].is_string(), "{}", results[8]);
    let threads: Vec<&Value> = results[9]["result"].as_array().unwrap().iter().collect();
    assert_eq!((&threads[0]["thread_id"], &threads[0]["status"]), (&json!("second"), &json!("error")));
}

async fn the_examples_of_the_page_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let page = std::fs::read_to_string("docs/langgraph.md").unwrap();
    for (program, file, language) in
        [("langgraph-node", "example.mjs", "js"), ("langgraph-python", "example.py", "python")]
    {
        let example = std::fs::read_to_string(format!("tests/clients/{program}/{file}")).unwrap();
        assert!(page.contains(&format!("```{language}\n{example}```")), "docs/langgraph.md shows {file}");
        let (lines, _) = ClientProgram::start(program, client.base(), json!({"example": true})).await.rest().await;
        let text: String = lines.iter().map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n");
        assert!(text.contains("This is Holdfast's"), "{text}");
    }
}

/// Cuts the stream of a run after each of its frames: the rest of the frames comes, with equal ids.
async fn expect_the_rest(client: &Client, path: &str, all: &[StreamBlock]) {
    let all = parts(all);
    for (n, (id, ..)) in all.iter().enumerate() {
        let rest = frames(get(client, path).header("last-event-id", id)).await;
        assert_eq!(parts(&rest), all[n + 1..], "after {id}");
    }
    let again = frames(get(client, path).header("last-event-id", "-1")).await;
    assert_eq!(parts(&again), all, "from the start");
}

/// Returns the address at which a client follows a run again.
fn location(response: &reqwest::Response) -> String {
    response.headers()["location"].to_str().unwrap().to_owned()
}

async fn a_stream_continues_after_every_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let two =
        r#"[think] [call=scripted__echo {"text":"hi"}] [call=scripted__echo {"text":"ho"}] [approval] [tokens=6] x"#;
    let first = post(&client, "/threads/t/runs/stream", &body(two)).send().await.unwrap();
    let at = location(&first);
    assert!(at.starts_with("/threads/t/runs/") && at.contains("/stream?stream_mode=values"), "{at}");
    let first = BlockStream::of(first).rest().await;
    expect_the_rest(&client, &at, &first).await;
    let resume = json!({"assistant_id": "agent", "command": {"resume": true}, "stream_mode": body("")["stream_mode"]});
    let second = post(&client, "/threads/t/runs/stream", &resume).send().await.unwrap();
    let then = location(&second);
    let second = BlockStream::of(second).rest().await;
    assert_eq!(parts(&second)[0].1, "metadata");
    assert!(then.contains(parts(&second)[0].2["run_id"].as_str().unwrap()));
    expect_the_rest(&client, &then, &second).await;
    expect_the_rest(&client, &at, &first).await;
    let failed = post(&client, "/threads/u/runs/stream", &body("[tokens=6] [fail] hello")).send().await.unwrap();
    let at = location(&failed);
    let failed = BlockStream::of(failed).rest().await;
    assert_eq!(parts(&failed).last().unwrap().1, "error");
    expect_the_rest(&client, &at, &failed).await;
}

/// Returns the texts of the messages that a client has joined from pieces, by their ids, after the newest values.
fn joined(parts: &[(String, String, Value)]) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for (_, kind, data) in parts {
        match kind.as_str() {
            "values" => messages.retain(|_| false),
            "messages" => {
                let (id, text) = (data[0]["id"].as_str().unwrap(), data[0]["content"].as_str().unwrap());
                match messages.iter_mut().find(|(known, _)| known == id) {
                    Some((_, known)) => known.push_str(text),
                    None => messages.push((id.to_owned(), text.to_owned())),
                }
            }
            _ => {}
        }
    }
    messages
}

async fn a_lost_worker_leaves_no_text_twice(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let response =
        post(&client, "/threads/t/runs/stream", &body("[tokens=150] [delay=20] hello")).send().await.unwrap();
    let at = location(&response);
    let mut stream = BlockStream::of(response);
    stream.until_sent("AIMessageChunk").await;
    let before = stream.take(12).await;
    let last = before.last().unwrap().id.clone().unwrap();
    let lost_id = parts(&before).last().unwrap().2[0]["id"].clone();
    deployment.kill_worker();
    let client = deployment.client();
    let rest = if deployment.is_embedded() {
        frames(get(&client, &at).header("last-event-id", &last)).await
    } else {
        stream.rest().await
    };
    let rest = parts(&rest);
    let taken_over = rest.iter().position(|(_, kind, data)| kind == "metadata" && data["attempt"] != 1);
    let taken_over = taken_over.expect("the next attempt begins");
    let after = &rest[taken_over..];
    assert_eq!(after[1].1, "values");
    assert_eq!(kinds(&after[1].2["messages"]), ["human"], "the text of the lost worker is gone");
    let end = after.iter().rposition(|(_, kind, _)| kind == "values").unwrap();
    let shown = joined(&after[..end]);
    let answer = after[end].2["messages"][1].clone();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(answer["content"], shown[0].1);
    assert_ne!(lost_id, json!(shown[0].0), "clients join pieces with one id, so the new pieces have another");
    let state = json_of(get(&client, "/threads/t/state")).await;
    assert_eq!(state["values"]["messages"], after[end].2["messages"]);
}

async fn the_sdk_comes_back_after_a_reset_connection(deployment: Deployment) {
    let mut deployment = deployment.own();
    let proxy = Proxy::before(deployment.client().base()).await;
    let steps_of_client = json!([
        {"do": "stream", "say": "[tokens=200] [delay=20] hello", "ifNotExists": "create", "streamMode": ["messages-tuple", "custom"]},
        {"do": "state"}
    ]);
    let parameters = json!({"thread": "t", "steps": steps_of_client});
    let mut program = ClientProgram::start("langgraph-node", &proxy.base, parameters).await;
    let is_text = |report: &Value| report["event"] == "messages";
    let mut reports = program.up_to_nth(20, is_text).await;
    proxy.reset();
    reports.extend(program.up_to_nth(20, is_text).await);
    proxy.reset();
    let (rest, _) = program.rest().await;
    reports.extend(rest);
    let text: String = of_kind(&reports, "messages").iter().map(|data| data[0]["content"].as_str().unwrap()).collect();
    let state = &steps(&reports)[1]["result"];
    assert_eq!(state["values"]["messages"][1]["content"], text, "no piece is missing, and none comes twice");
    assert!(of_kind(&reports, "values").is_empty(), "the modes of the stream stay");
}

async fn a_page_shows_an_answer_once_despite_a_reload(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let page = json!([
        {"say": "[tokens=500] [delay=20] hello", "until": "loading"}, {"reload": true},
        {"say": "[approval] [tokens=3] again"}, {"resume": {"approved": true}}
    ]);
    let program = ClientProgram::start("langgraph-node", client.base(), json!({"page": page})).await;
    let (reports, end) = program.rest().await;
    let reload = reports.iter().find(|report| report["before"].is_string()).expect("the page was loaded again");
    let answer = end["messages"][1]["content"].as_str().unwrap();
    for shown in ["before", "after"] {
        let shown = reload[shown].as_str().unwrap();
        assert!(answer.starts_with(shown), "{shown:?} is no beginning of {answer:?}");
    }
    let asked = reports.iter().find(|report| report["interrupt"].is_object()).expect("the page shows the question");
    assert_eq!(asked["interrupt"]["value"]["type"], "approval");
    let thread_id = end["threadId"].as_str().unwrap();
    let state = json_of(get(&client, &format!("/threads/{thread_id}/state"))).await;
    let texts = |messages: &Value| -> Vec<Value> {
        messages.as_array().unwrap().iter().map(|message| message["content"].clone()).collect()
    };
    assert_eq!(texts(&end["messages"]), texts(&state["values"]["messages"]));
    assert_eq!(reports.last().unwrap()["error"], Value::Null);
}

async fn a_thread_has_a_name_metadata_and_a_status(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let script = json!([
        {"do": "create", "metadata": {"team": "blue", "size": 3}}, {"do": "create"}, {"do": "create", "ifExists": "do_nothing"},
        {"do": "change", "metadata": {"size": 4}}, {"do": "search", "metadata": {"team": "blue", "size": 4}},
        {"do": "search", "metadata": {"team": "red"}}, {"do": "search", "metadata": {"graph_id": "agent"}, "status": "idle"},
        {"do": "search", "status": "busy"}, {"do": "count", "metadata": {"team": "blue"}},
        {"do": "stream", "say": "[approval] [tokens=2] x"}, {"do": "search", "status": "interrupted"}, {"do": "read"},
        {"do": "resume", "value": true}, {"do": "copy"}, {"do": "remove"}, {"do": "read"}
    ]);
    let reports = run_program(&client, "langgraph-node", json!({"thread": "a name: ü/1", "steps": script})).await;
    let all = steps(&reports);
    let result = |n: usize| &all[n]["result"];
    assert_eq!((&result(0)["thread_id"], &result(0)["status"]), (&json!("a name: ü/1"), &json!("idle")));
    assert_eq!(result(0)["metadata"]["team"], "blue");
    assert_eq!(result(1)["failed"], 409);
    assert_eq!(result(2)["metadata"], result(0)["metadata"]);
    assert_eq!((&result(3)["metadata"]["team"], &result(3)["metadata"]["size"]), (&json!("blue"), &json!(4)));
    assert_eq!((result(4)[0]["thread_id"].as_str(), result(5)), (Some("a name: ü/1"), &json!([])));
    assert_eq!((result(6).as_array().unwrap().len(), result(7), result(8)), (1, &json!([]), &json!(1)));
    assert_eq!(result(10)[0]["thread_id"], "a name: ü/1");
    assert_eq!(
        (&result(11)["status"], result(11)["interrupts"].as_object().unwrap().len()),
        (&json!("interrupted"), 1)
    );
    assert_eq!(kinds(&result(13)["values"]["messages"]), ["human", "ai", "tool", "ai"], "a copy has the messages");
    assert_eq!(result(15)["failed"], 404);
}

async fn a_run_is_waited_for_listed_and_cancelled(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let script = json!([
        {"do": "create"}, {"do": "wait", "say": "[tokens=3] one"}, {"do": "start", "say": "[gate=closed] two"},
        {"do": "start", "say": "[tokens=2] three", "multitaskStrategy": "reject"}, {"do": "runs"}, {"do": "read"},
        {"do": "cancel", "wait": true}, {"do": "run"}, {"do": "runs", "status": "success"},
        {"do": "start", "say": "[gate=closed] four"},
        {"do": "wait", "say": "[tokens=2] five", "multitaskStrategy": "rollback"}, {"do": "runs", "limit": 1, "offset": 1}
    ]);
    let reports = run_program(&client, "langgraph-node", json!({"thread": "t", "steps": script})).await;
    let all = steps(&reports);
    let result = |n: usize| &all[n]["result"];
    assert_eq!(kinds(&result(1)["messages"]), ["human", "ai"]);
    assert!(["pending", "running"].contains(&result(2)["status"].as_str().unwrap()));
    assert_eq!(result(3)["failed"], 409);
    assert_eq!((result(4).as_array().unwrap().len(), &result(4)[0]["run_id"]), (2, &result(2)["run_id"]));
    assert_eq!((&result(5)["status"], &result(7)["status"]), (&json!("busy"), &json!("interrupted")));
    assert_eq!(result(8).as_array().unwrap().len(), 1);
    let texts: Vec<&Value> =
        result(10)["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert!(!texts.contains(&&json!("[gate=closed] four")), "a rollback removes the message: {texts:?}");
    assert!(texts.contains(&&json!("[tokens=2] five")));
    assert_eq!(result(11).as_array().unwrap().len(), 1);
    let many = json!({"status": "all"});
    assert_eq!(post(&client, "/runs/cancel", &many).send().await.unwrap().status(), 204);
    let batch = json!([body("[tokens=1] a"), body("[tokens=1] b")]);
    let runs = json_of(post(&client, "/runs/batch", &batch)).await;
    for run in runs.as_array().unwrap() {
        let path =
            format!("/threads/{}/runs/{}/join", run["thread_id"].as_str().unwrap(), run["run_id"].as_str().unwrap());
        assert_eq!(kinds(&json_of(get(&client, &path)).await["messages"]), ["human", "ai"]);
    }
}

async fn a_list_of_threads_has_their_first_and_newest_messages(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let long = format!("[tokens=2] {}", "ü".repeat(2_000));
    let script = json!([
        {"do": "create"}, {"do": "search", "ids": ["t"]}, {"do": "wait", "say": long}, {"do": "wait", "say": "[tokens=2] two"},
        {"do": "wait", "say": "[tokens=2] three"}, {"do": "read"}, {"do": "search", "metadata": {"graph_id": "agent"}, "limit": 5000},
        {"do": "search", "select": ["thread_id"]}
    ]);
    let reports = run_program(&client, "langgraph-node", json!({"thread": "t", "steps": script})).await;
    let all = steps(&reports);
    let result = |n: usize| &all[n]["result"];
    assert_eq!(result(1)[0]["values"]["messages"], json!([]), "a thread without messages");
    let messages = result(5)["values"]["messages"].as_array().unwrap();
    let (first, newest) = (&messages[0], messages.last().unwrap());
    let shown = result(6)[0]["values"]["messages"].as_array().unwrap();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!((&shown[0]["id"], &shown[1]["id"]), (&first["id"], &newest["id"]));
    let beginning: String = first["content"].as_str().unwrap().chars().take(1_000).collect();
    assert_eq!(shown[0]["content"], beginning);
    assert_eq!(shown[1]["content"].as_str().unwrap().trim_end(), newest["content"].as_str().unwrap().trim_end());
    assert_eq!(*result(7), json!([{"thread_id": "t"}]));
}

async fn an_inbox_answers_and_resolves_interrupts(mut deployment: Deployment) {
    let client = deployment.client();
    let asking = async |thread: &str| {
        let all =
            json_of(post(&client, &format!("/threads/{thread}/runs/wait"), &body("[approval=Sail?] [tokens=3] x")))
                .await;
        let value = all["__interrupt__"][0]["value"].clone();
        assert_eq!(value["action_request"]["args"], value["input"], "Agent Inbox shows it: {value}");
        assert!(value["config"]["allow_accept"].as_bool().unwrap());
    };
    let answer = async |thread: &str, command: Value| {
        let body = json!({"assistant_id": "agent", "input": {}, "command": command});
        let values = json_of(post(&client, &format!("/threads/{thread}/runs/wait"), &body)).await;
        let thread = json_of(get(&client, &format!("/threads/{thread}"))).await;
        assert_eq!(thread["status"], "idle", "{thread}");
        values["messages"][2]["content"].as_str().unwrap_or_default().to_owned()
    };
    let args = json!({"action": "scripted__approval", "args": {"action": "Row?"}});
    for (thread, response, result) in [
        ("a", json!({"type": "accept", "args": null}), "done: Sail?"),
        ("b", json!({"type": "edit", "args": args}), "done: Row?"),
        (
            "c",
            json!({"type": "response", "args": "not today"}),
            "this call was not made: a human has denied it: not today",
        ),
        ("d", json!({"type": "ignore", "args": null}), "this call was not made: a human has denied it"),
    ] {
        asking(thread).await;
        let told = answer(thread, json!({"resume": [response]})).await;
        assert!(told.starts_with(result), "{thread}: {told}");
    }
    asking("e").await;
    assert_eq!(answer("e", json!({"goto": "__end__"})).await, "", "no answer to the call");
    let runs = json_of(get(&client, "/threads/e/runs")).await;
    assert_eq!(runs[0]["status"], "interrupted");
    asking("f").await;
    let ended = json_of(post(&client, "/threads/f/state", &json!({"values": null, "as_node": "__end__"}))).await;
    let state = json_of(get(&client, "/threads/f/state")).await;
    assert_eq!((&state["checkpoint"], &state["next"]), (&ended["checkpoint"], &json!([])));
    asking("g").await;
    let list = json!([{"type": "accept"}, {"type": "accept"}]);
    let refused = post(&client, "/threads/g/runs/wait", &json!({"assistant_id": "agent", "command": {"resume": list}}));
    assert_eq!(refused.send().await.unwrap().status(), 400, "two answers to one question");
}

async fn a_list_has_at_most_a_page(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    json_of(post(&client, "/threads/t/runs/wait", &body("[tokens=1] x"))).await;
    assert_eq!(
        json_of(post(&client, "/threads/t/history", &json!({"limit": 1000}))).await.as_array().unwrap().len(),
        3
    );
    for (path, count) in [("/threads/search", 1), ("/assistants/search", 2)] {
        let found = json_of(post(&client, path, &json!({"limit": 1000}))).await;
        assert_eq!(found.as_array().unwrap().len(), count, "{path}");
    }
    assert_eq!(json_of(get(&client, "/threads/t/runs?limit=100000")).await.as_array().unwrap().len(), 1);
    let none = post(&client, "/threads/t/history", &json!({"limit": 0})).send().await.unwrap();
    assert_eq!(none.status(), 400);
}

async fn a_disconnect_cancels_a_run_only_on_request(mut deployment: Deployment) {
    let client = deployment.client();
    let run_of = async |on_disconnect: Value, thread: &str, text: &str| {
        let mut body = body(text);
        body["on_disconnect"] = on_disconnect;
        let mut stream = BlockStream::open(post(&client, &format!("/threads/{thread}/runs/stream"), &body)).await;
        stream.until_sent("AIMessageChunk").await;
        stream.run_id.clone()
    };
    let cancelled = run_of(json!("cancel"), "a", "[tokens=1000] [delay=20] x").await;
    let continued = run_of(Value::Null, "b", "[tokens=40] [delay=20] x").await;
    assert_eq!(client.wait_for_run(&cancelled).await["status"], "cancelled");
    assert_eq!(client.wait_for_run(&continued).await["status"], "completed");
}

async fn a_tool_of_the_client_is_an_interrupt(mut deployment: Deployment) {
    let client = deployment.client();
    let tools = json!([{"name": "ask", "description": "Asks.", "parameters": {"type": "object"}}]);
    let asking = async |thread: &str| {
        let mut body = body("[clienttool=Which colour?] [tokens=3] x");
        body["input"]["tools"] = tools.clone();
        let all = parts(&frames(post(&client, &format!("/threads/{thread}/runs/stream"), &body)).await);
        let values = all.iter().rfind(|(_, kind, _)| kind == "values").unwrap();
        values.2["__interrupt__"][0].clone()
    };
    let interrupt = asking("a").await;
    assert_eq!(
        (&interrupt["value"]["type"], &interrupt["value"]["tool_call"]["name"]),
        (&json!("tool"), &json!("ask"))
    );
    let id = interrupt["id"].as_str().unwrap();
    let result = json!({"assistant_id": "agent", "command": {"resume": {id: "teal"}}});
    let values = json_of(post(&client, "/threads/a/runs/wait", &result)).await;
    assert_eq!(kinds(&values["messages"]), ["human", "ai", "tool", "ai"]);
    assert_eq!(values["messages"][2]["content"], "teal");
    let id = asking("b").await["id"].clone();
    let message = json!({"type": "tool", "tool_call_id": id, "content": "red"});
    let result = json!({"assistant_id": "agent", "input": {"messages": [message]}});
    let values = json_of(post(&client, "/threads/b/runs/wait", &result)).await;
    assert_eq!(values["messages"][2]["content"], "red");
}

async fn an_earlier_state_is_read_and_continued(mut deployment: Deployment) {
    let client = deployment.client();
    for text in ["[tokens=2] one", "[tokens=2] two"] {
        json_of(post(&client, "/threads/t/runs/wait", &body(text))).await;
    }
    let history = json_of(post(&client, "/threads/t/history", &json!({}))).await;
    let sizes: Vec<usize> =
        history.as_array().unwrap().iter().map(|state| state["values"]["messages"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [4, 3, 2, 1, 0]);
    for pair in history.as_array().unwrap().windows(2) {
        assert_eq!(pair[0]["parent_checkpoint"], pair[1]["checkpoint"]);
    }
    let after_one = &history[2]["checkpoint"];
    let path = format!("/threads/t/state/{}", after_one["checkpoint_id"].as_str().unwrap());
    assert_eq!(json_of(get(&client, &path)).await["values"], history[2]["values"]);
    let older = json_of(post(&client, "/threads/t/history", &json!({"before": after_one, "limit": 1}))).await;
    assert_eq!(older, json!([history[3]]));
    let mut edit = body("[tokens=2] deux");
    edit["checkpoint"] = after_one.clone();
    let values = json_of(post(&client, "/threads/t/runs/wait", &edit)).await;
    let texts: Vec<&Value> = values["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!((texts.len(), texts[2]), (4, &json!("[tokens=2] deux")), "the new message replaces the later ones");
    let again = json!({"assistant_id": "agent", "checkpoint": history[3]["checkpoint"]});
    let values = json_of(post(&client, "/threads/t/runs/wait", &again)).await;
    assert_eq!(kinds(&values["messages"]), ["human", "ai"], "the first message is answered again");
}

async fn a_thread_gets_the_assistant_of_its_first_run(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = client.post("/v1/agents", json!({"name": "Pilot", "system_prompt": "Steer."})).await.unwrap();
    let thread = json_of(post(&client, "/threads", &json!({}))).await;
    let path = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
    let mut with_pilot = body("[tokens=1] x");
    with_pilot["assistant_id"] = "Pilot".into();
    let run = json_of(post(&client, &path, &with_pilot)).await;
    assert_eq!(run["assistant_id"], agent["id"]);
    let run = json_of(post(&client, &path, &body("[tokens=1] y"))).await;
    assert_eq!(run["assistant_id"], agent["id"], "the thread keeps its assistant");
    json_of(post(&client, "/threads/plain/runs/wait", &body("[tokens=1] x"))).await;
    let refused = post(&client, "/threads/plain/runs", &with_pilot).send().await.unwrap();
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "thread_of_another_agent");
}

async fn assistants_are_the_agents_that_admit_the_caller(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let agent = client.post("/v1/agents", json!({"name": "Pilot", "system_prompt": "Steer."})).await.unwrap();
    let found = json_of(post(&client, "/assistants/search", &json!({"graph_id": "agent"}))).await;
    let names: Vec<&Value> = found.as_array().unwrap().iter().map(|assistant| &assistant["name"]).collect();
    assert!(names[0] == "agent" && names.contains(&&json!("Pilot")), "{names:?}");
    assert_eq!(json_of(post(&client, "/assistants/count", &json!({"name": "Pilot"}))).await, 1);
    let id = agent["id"].as_str().unwrap();
    assert_eq!(json_of(get(&client, &format!("/assistants/{id}"))).await["name"], "Pilot");
    assert_eq!(json_of(get(&client, "/assistants/agent")).await["graph_id"], "agent");
    assert_eq!(json_of(get(&client, "/assistants/agent/graph")).await["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(json_of(get(&client, "/assistants/agent/schemas")).await["graph_id"], "agent");
    assert_eq!(json_of(post(&client, "/assistants/agent/versions", &json!({}))).await[0]["version"], 1);
    assert_eq!(get(&client, "/assistants/Nemo").send().await.unwrap().status(), 404);
}

async fn a_repeated_request_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let start = |text: &str| post(&client, "/threads/t/runs", &body(text)).header("idempotency-key", "once");
    let first = json_of(start("[tokens=1] x")).await;
    assert_eq!(json_of(start("[tokens=1] x")).await["run_id"], first["run_id"]);
    assert_eq!(start("[tokens=1] y").send().await.unwrap().status(), 422);
}

async fn missing_functions_are_refused_in_words(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let refused = async |request: RequestBuilder| {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        assert!(body["detail"].as_str().unwrap().ends_with('.'), "{body}");
        status
    };
    let with = |field: &str, value: Value| {
        let mut body = body("x");
        body[field] = value;
        post(&client, "/threads/t/runs/stream", &body)
    };
    for (request, status) in [
        (with("after_seconds", json!(-1)), 400),
        (with("webhook", json!("http://example.org")), 422),
        (with("on_completion", json!("delete")), 422),
        (with("interrupt_before", json!(["agent"])), 422),
        (with("command", json!({"update": {"x": 1}})), 422),
        (with("stream_mode", json!("video")), 422),
        (with("assistant_id", json!("Nemo")), 404),
        (with("input", json!({"messages": []})), 409),
        (with("input", json!({"messages": [{"role": "assistant", "content": "x"}]})), 409),
        (with("input", json!({"messages": [{"role": "mate", "content": "x"}]})), 400),
        (with("stream_mode", json!({"values": true})), 400),
        (post(&client, "/runs", &json!({"assistant_id": "agent"})), 409),
        (post(&client, "/threads", &json!({"thread_id": "%C3%BC"})), 400),
        (post(&client, "/threads/count", &json!({"limit": 0})), 400),
        (post(&client, "/threads/t/commands", &json!({"id": u64::MAX, "method": "state.get"})), 400),
        (post(&client, "/assistants/count", &json!({"limit": 0})), 400),
        (post(&client, "/runs/cancel?action=forget", &json!({"status": "all"})), 422),
        (with("input", json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]})), 400),
        (with("command", json!({"resume": true})), 404),
        (with("if_not_exists", json!("reject")), 404),
        (with("checkpoint_id", json!("x")), 404),
        (post(&client, "/threads", &json!({"ttl": 5})), 422),
        (post(&client, "/threads/search", &json!({"values": {"x": 1}})), 422),
        (post(&client, "/store/items/search", &json!({})), 404),
        (get(&client, "/store/items"), 404),
        (post(&client, "/runs/crons", &json!({})), 404),
        (post(&client, "/runs/crons/search", &json!({})), 404),
        (post(&client, "/assistants", &json!({})), 404),
        (client.request(Method::PATCH, "/langgraph/assistants/agent").json(&json!({})), 405),
        (with("command", json!({"goto": "agent"})), 422),
        (post(&client, "/threads/t/commands", &json!({})), 400),
        (get(&client, "/nowhere"), 404),
    ] {
        let built = request.try_clone().unwrap().build().unwrap();
        assert_eq!(
            refused(request).await,
            status,
            "{} {:?}",
            built.url(),
            built.body().and_then(|body| body.as_bytes())
        );
    }
    assert_eq!(json_of(get(&client, "/ok")).await, json!({"ok": true}));
    assert_eq!(json_of(get(&client, "/info")).await["flags"]["crons"], false);
    json_of(post(&client, "/threads/t/runs/wait", &body("[tokens=1] x"))).await;
    let resume = json!({"assistant_id": "agent", "command": {"resume": true}});
    assert_eq!(refused(post(&client, "/threads/t/runs/wait", &resume)).await, 409, "the thread waits for nothing");
    let runs = json_of(get(&client, "/threads/t/runs")).await;
    let run = format!("/threads/t/runs/{}", runs[0]["run_id"].as_str().unwrap());
    assert_eq!(refused(post(&client, &format!("{run}/cancel?action=forget"), &json!({}))).await, 422);
    assert_eq!(refused(get(&client, "/threads/t/runs?status=asleep")).await, 422);
    assert_eq!(refused(client.request(Method::DELETE, &format!("/langgraph{run}"))).await, 409);
    assert_eq!(refused(get(&client, &format!("{run}/stream")).header("last-event-id", "1-2.x")).await, 400);
}

async fn threads_and_runs_of_others_do_not_exist(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let of_ann = json_of(post(&ann, "/threads/t/runs", &body("[tokens=2] x"))).await;
    let run = of_ann["run_id"].as_str().unwrap();
    for path in ["/threads/t".to_owned(), format!("/threads/t/runs/{run}"), format!("/runs/{run}/stream")] {
        assert_eq!(get(&bob, &path).send().await.unwrap().status(), 404, "{path}");
        assert_eq!(get(&ann, &path).send().await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(json_of(post(&bob, "/threads/search", &json!({}))).await, json!([]));
    let of_bob = json_of(post(&bob, "/threads/t/runs", &body("[tokens=2] x"))).await;
    assert_ne!(of_bob["run_id"], of_ann["run_id"], "each user has names of his own");
    json_of(get(&bob, &format!("/threads/t/runs/{}/join", of_bob["run_id"].as_str().unwrap()))).await;
    assert_eq!(get(&bob, &format!("/threads/t/runs/{run}")).send().await.unwrap().status(), 404);
}
