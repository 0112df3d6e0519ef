//! LangGraph's wire: messages that a client adds to a thread without a run, and messages that a cancel takes back.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    langgraph::{body, get, json_of, kinds, post, run_program, steps},
    support::{Client, Deployment},
};

in_both_modes!(the_sdk_adds_messages_to_a_thread, a_cancel_takes_the_message_of_its_run_back);
in_either_mode!(
    the_python_sdk_adds_messages_too,
    an_update_of_another_kind_is_refused_in_words,
    messages_of_an_update_are_on_every_wire,
    a_stream_of_an_older_run_has_no_later_message,
    a_list_has_the_runs_of_one_status,
);

fn result_of<'a>(steps: &[&'a Value], n: usize) -> &'a Value {
    &steps[n]["result"]
}

fn texts(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

/// Expects the steps `update`, `state`, `update`, `state`, `again`, `state` from the step `n` on.
fn expect_updates(all: &[&Value], n: usize) {
    let (first, then) = (result_of(all, n + 1), result_of(all, n + 3));
    let checkpoint = &result_of(all, n)["checkpoint"];
    assert_eq!(*checkpoint, first["checkpoint"], "an update returns the newest checkpoint");
    assert_eq!(kinds(&first["values"]["messages"]), ["human", "ai"]);
    assert_eq!((&first["values"]["messages"][0]["id"], &first["next"]), (&json!("h1"), &json!([])));
    assert_eq!(first["metadata"]["source"], "update");
    assert_eq!((kinds(&then["values"]["messages"]).len(), &then["next"]), (3, &json!(["agent"])));
    let answered = result_of(all, n + 4);
    assert_eq!(kinds(&answered["messages"]), ["human", "ai", "human", "ai"], "a run without an input answers");
    assert_eq!(texts(&answered["messages"])[..3], ["Remember teal.", "Noted.", "[tokens=3] go"]);
    assert_eq!((&result_of(all, n + 5)["values"], &result_of(all, n + 5)["next"]), (answered, &json!([])));
}

fn updates() -> [Value; 2] {
    let two = json!([{"type": "human", "content": "Remember teal.", "id": "h1"}, {"type": "ai", "content": "Noted."}]);
    [json!({"messages": two}), json!({"messages": [{"role": "user", "content": "[tokens=3] go"}]})]
}

async fn the_sdk_adds_messages_to_a_thread(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let [two, question] = updates();
    let script = json!([
        {"do": "create"}, {"do": "update", "values": two, "asNode": "agent"}, {"do": "state"},
        {"do": "update", "values": question}, {"do": "state"}, {"do": "again"}, {"do": "state"}, {"do": "history"},
        {"do": "update", "values": {"messages": {"type": "ai", "content": "One more thing."}}}, {"do": "copy"},
        {"do": "patch", "metadata": {"colour": "teal"}}, {"do": "read"}, {"do": "again"}
    ]);
    let reports = run_program(&client, "langgraph-node", json!({"thread": "t", "steps": script})).await;
    let all = steps(&reports);
    expect_updates(&all, 1);
    let history = result_of(&all, 7).as_array().unwrap();
    let sizes: Vec<usize> = history.iter().map(|state| state["values"]["messages"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [4, 3, 2, 1, 0]);
    assert!(history.iter().any(|state| state["checkpoint"] == result_of(&all, 1)["checkpoint"]));
    let copied = texts(&result_of(&all, 9)["values"]["messages"]);
    assert_eq!((copied.len(), copied[4]), (5, "One more thing."), "a copy has the messages after the newest run");
    assert_eq!(result_of(&all, 11)["metadata"]["colour"], "teal");
    assert_eq!(result_of(&all, 12)["failed"], 409, "the thread has no message without an answer");
}

async fn the_python_sdk_adds_messages_too(deployment: Deployment) {
    let mut deployment = deployment.own();
    let [two, question] = updates();
    let script = json!([
        {"do": "create"}, {"do": "update", "values": two, "as_node": "agent"}, {"do": "state"},
        {"do": "update", "values": question}, {"do": "state"}, {"do": "again"}, {"do": "state"}
    ]);
    let parameters = json!({"thread": "t", "steps": script});
    let reports = run_program(&deployment.client(), "langgraph-python", parameters).await;
    expect_updates(&steps(&reports), 1);
}

async fn refused(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert!(body["detail"].as_str().unwrap().ends_with('.'), "{body}");
    (status, body["code"].as_str().unwrap().to_owned())
}

fn update(client: &Client, thread: &str, values: Value) -> RequestBuilder {
    post(client, &format!("/threads/{thread}/state"), &json!({"values": values}))
}

fn ai(text: &str) -> Value {
    json!({"messages": [{"type": "ai", "content": text}]})
}

async fn an_update_of_another_kind_is_refused_in_words(mut deployment: Deployment) {
    let client = deployment.client();
    let values = json_of(post(&client, "/threads/t/runs/wait", &body("[tokens=3] one"))).await;
    let message = |message: Value| json!({"messages": [message]});
    let with = |field: &str, value: Value| {
        let mut update = json!({"values": ai("x")});
        update[field] = value;
        post(&client, "/threads/t/state", &update)
    };
    let answer = values["messages"][1].clone();
    let many: Vec<Value> = (0..33).map(|n| json!({"type": "ai", "content": n.to_string()})).collect();
    for (request, expected) in [
        (update(&client, "t", json!({})), (422, "not_supported")),
        (update(&client, "t", Value::Null), (422, "not_supported")),
        (update(&client, "t", json!({"messages": many})), (422, "not_supported")),
        (update(&client, "t", json!({"messages": [], "topic": "x"})), (422, "not_supported")),
        (
            update(&client, "t", message(json!({"type": "tool", "content": "x", "tool_call_id": "c"}))),
            (422, "not_supported"),
        ),
        (update(&client, "t", message(json!({"type": "remove", "id": "x"}))), (422, "not_supported")),
        (
            update(
                &client,
                "t",
                message(json!({"type": "ai", "content": "x", "tool_calls": [{"id": "c", "name": "y"}]})),
            ),
            (422, "not_supported"),
        ),
        (update(&client, "t", ai("")), (400, "empty_content")),
        (update(&client, "t", message(json!({"type": "human", "content": 5}))), (400, "invalid_body")),
        (update(&client, "t", message(answer)), (409, "message_exists")),
        (with("as_node", json!("painter")), (422, "not_supported")),
        (with("checkpoint_id", json!("00000000-0000-7000-8000-000000000000")), (404, "checkpoint_not_found")),
        (update(&client, "nowhere", ai("x")), (404, "conversation_not_found")),
        (update(&client.user("bob"), "t", ai("x")), (404, "conversation_not_found")),
    ] {
        let label =
            format!("{:?}", request.try_clone().unwrap().build().unwrap().body().and_then(|body| body.as_bytes()));
        assert_eq!(refused(request).await, (expected.0, expected.1.to_owned()), "{label}");
    }
    let before = json_of(get(&client, "/threads/t/state")).await;
    assert_eq!(before["values"], values, "a refused update adds nothing");
    json_of(with("checkpoint", before["checkpoint"].clone())).await;
    let waiting = json_of(post(&client, "/threads/t/runs/wait", &body("[approval] [tokens=2] x"))).await;
    assert!(waiting["__interrupt__"].is_array());
    assert_eq!(refused(update(&client, "t", ai("x"))).await, (409, "conversation_busy".to_owned()));
    let again = json!({"assistant_id": "agent", "input": null});
    assert_eq!(refused(post(&client, "/threads/t/runs", &again)).await, (409, "conversation_busy".to_owned()));
}

async fn messages_of_an_update_are_on_every_wire(mut deployment: Deployment) {
    let client = deployment.client();
    let thread = json_of(post(&client, "/threads", &json!({"thread_id": "t"}))).await;
    assert_eq!(thread["status"], "idle");
    let [two, _] = updates();
    json_of(update(&client, "t", two)).await;
    let found = client.get("/v1/conversations").await.unwrap();
    let id = found["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(found["items"][0]["title"], "Remember teal.");
    let stored = client.get(&format!("/v1/conversations/{id}/messages")).await.unwrap();
    let rows: Vec<_> = stored["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["role"].as_str().unwrap(), &item["run_id"]))
        .collect();
    assert_eq!(rows, [("user", &Value::Null), ("assistant", &Value::Null)]);
    let chat = client.get("/api/chat/t/messages").await.unwrap();
    assert_eq!(chat[1]["parts"][0]["text"], "Noted.", "{chat}");
    json_of(post(&client, "/threads/t/runs/wait", &body("[tokens=2] x"))).await;
    let ag_ui = client.request(Method::GET, "/ag-ui/threads/t").send().await.unwrap();
    let (status, ag_ui) = (ag_ui.status(), ag_ui.text().await.unwrap());
    assert!(ag_ui.contains("Noted."), "{status} {ag_ui}");
    let path = format!("/openai/v1/conversations/conv_{}/items?order=asc", id.replace('-', ""));
    let items = client.get(&path).await.unwrap();
    assert!(items.to_string().contains("Noted."), "{items}");
}

async fn a_stream_of_an_older_run_has_no_later_message(mut deployment: Deployment) {
    let client = deployment.client();
    let values = json_of(post(&client, "/threads/t/runs/wait", &body("[tokens=3] one"))).await;
    json_of(update(&client, "t", ai("Later."))).await;
    let runs = json_of(get(&client, "/threads/t/runs")).await;
    let path = format!("/threads/t/runs/{}/stream?stream_mode=values", runs[0]["run_id"].as_str().unwrap());
    let stream = get(&client, &path).send().await.unwrap().text().await.unwrap();
    assert!(!stream.contains("Later."), "{stream}");
    assert!(stream.contains(&values["messages"][1]["id"].to_string()), "{stream}");
}

async fn a_cancel_takes_the_message_of_its_run_back(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let long = |text: &str| json!({"do": "start", "say": format!("[gate=closed] {text}")});
    let script = json!([
        {"do": "create"}, {"do": "wait", "say": "[tokens=2] one"}, long("two"),
        {"do": "cancel", "wait": true, "action": "rollback"}, {"do": "run"}, {"do": "state"}, long("three"),
        {"do": "cancelMany", "action": "rollback"}, {"do": "wait", "say": "[tokens=2] four"}
    ]);
    for program in ["langgraph-node", "langgraph-python"] {
        let reports = run_program(&client, program, json!({"thread": program, "steps": script})).await;
        let all = steps(&reports);
        assert_eq!(result_of(&all, 4)["status"], "interrupted", "{program}");
        let state = result_of(&all, 5);
        assert_eq!((kinds(&state["values"]["messages"]), &state["next"]), (vec!["human", "ai"], &json!([])));
        let values = result_of(&all, 8);
        assert_eq!(kinds(&values["messages"]), ["human", "ai", "human", "ai"], "{values}");
        assert_eq!(texts(&values["messages"])[2], "[tokens=2] four");
    }
}

async fn a_list_has_the_runs_of_one_status(mut deployment: Deployment) {
    let client = deployment.client();
    let mut started: Vec<(Value, &str)> = Vec::new();
    for n in 0..2 {
        for (text, status) in
            [("[tokens=1] x", "success"), ("[fail] [tokens=1] x", "error"), ("[approval] [tokens=1] x", "interrupted")]
        {
            // The next message ends the wait of the one before, whose run is then cancelled.
            json_of(post(&client, "/threads/t/runs/wait", &body(&format!("{text} {n}")))).await;
            let newest = json_of(get(&client, "/threads/t/runs?limit=1")).await;
            started.insert(0, (newest[0]["run_id"].clone(), status));
        }
    }
    let listed = async |query: &str| -> Vec<Value> {
        let runs = json_of(get(&client, &format!("/threads/t/runs?{query}"))).await;
        runs.as_array().unwrap().iter().map(|run| run["run_id"].clone()).collect()
    };
    let expected = |status: &str| -> Vec<Value> {
        started.iter().filter(|(_, of)| *of == status).map(|(id, _)| id.clone()).collect()
    };
    for status in ["success", "error", "interrupted"] {
        assert_eq!(listed(&format!("status={status}")).await, expected(status), "{status}");
        assert_eq!(listed(&format!("status={status}&limit=1&offset=1")).await, expected(status)[1..], "{status}");
    }
    for status in ["pending", "running", "timeout"] {
        assert!(listed(&format!("status={status}")).await.is_empty(), "{status}");
    }
    let all: Vec<Value> = started.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(listed("").await, all);
}
