//! The agent of a conversation, which its first run chooses for all later ones.

use reqwest::Method;
use serde_json::{Value, json};

use super::{call, completion, create, created};
use crate::support::{BlockStream, Client, Embedded, Holdfast};

async fn start() -> (Holdfast, Client) {
    let mut holdfast = Embedded::new().start();
    let client = holdfast.client();
    for name in ["alice", "bob"] {
        client.post("/v1/agents", json!({"name": name})).await.unwrap();
    }
    let profiles = json!({"profiles": {"quick": {"provider": "scripted", "model": "quick"}}});
    let (status, stored) = call(client.request(Method::PUT, "/v1/profiles").json(&profiles)).await;
    assert_eq!(status, 200, "{stored}");
    (holdfast, client)
}

async fn refused(request: reqwest::RequestBuilder) -> String {
    let (status, body) = call(request).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("conversation_of_another_model")), "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_response_that_continues_has_the_agent_of_the_first_one() {
    let (_holdfast, client) = start().await;
    let first = created(&client, &json!({"model": "alice", "input": "[tokens=2] x"})).await;
    assert_eq!(first["model"], "alice");
    let next = |model: &str| json!({"model": model, "input": "[tokens=2] y", "previous_response_id": first["id"]});
    let detail = refused(create(&client, &next("bob"))).await;
    assert!(detail.contains("\"alice\"") && detail.contains("default"), "{detail}");
    refused(create(&client, &next("quick"))).await;
    for model in ["alice", "default"] {
        assert_eq!(created(&client, &next(model)).await["model"], "alice", "asked for {model}");
    }
    let without = created(&client, &json!({"input": "[tokens=2] z", "previous_response_id": first["id"]})).await;
    assert_eq!(without["model"], "alice");
}

#[tokio::test]
async fn the_first_run_gives_a_conversation_its_agent() {
    let (_holdfast, client) = start().await;
    let conversation = || async {
        let made = call(client.request(Method::POST, "/openai/v1/conversations").json(&json!({}))).await.1;
        made["id"].as_str().unwrap().to_owned()
    };
    let asked = |id: &str, model: &str| json!({"model": model, "input": "[tokens=2] x", "conversation": id});
    let of_bob = conversation().await;
    let first = created(&client, &asked(&of_bob, "bob")).await;
    assert_eq!(first["model"], "bob");
    let run = client.run(first["metadata"]["run_id"].as_str().unwrap()).await;
    assert!(run["agent_id"].is_string(), "{run}");
    refused(create(&client, &asked(&of_bob, "alice"))).await;

    let plain = conversation().await;
    assert_eq!(created(&client, &asked(&plain, "quick")).await["model"], "quick");
    assert_eq!(created(&client, &asked(&plain, "default")).await["model"], "default");
    assert!(refused(create(&client, &asked(&plain, "alice"))).await.contains("\"default\""));

    let messages = json!([{"role": "user", "content": "[tokens=2] x"}]);
    let body = |model: &str, id: &str, stream: bool| json!({"model": model, "messages": messages, "metadata": {"conversation_id": id}, "stream": stream});
    refused(completion(&client, &body("alice", &of_bob, false))).await;
    let (_, whole) = call(completion(&client, &body("default", &of_bob, false))).await;
    assert_eq!(whole["model"], "bob", "{whole}");
    let frames = BlockStream::open(completion(&client, &body("default", &of_bob, true))).await.rest().await;
    assert_eq!(frames[0].json()["model"], "bob");
}

#[tokio::test]
async fn a_thread_of_ag_ui_keeps_its_agent() {
    let (_holdfast, client) = start().await;
    let post = |agent: Option<&str>, run: &str| {
        let message = json!({"id": format!("m-{run}"), "role": "user", "content": "[tokens=2] x"});
        let body = json!({"threadId": "t1", "runId": run, "messages": [message], "tools": [], "context": [], "state": {}, "forwardedProps": {}});
        let path = agent.map_or("/ag-ui".to_owned(), |name| format!("/ag-ui/agents/{name}"));
        client.request(Method::POST, &path).json(&body)
    };
    let first = post(Some("alice"), "r1").send().await.unwrap();
    assert_eq!((first.status().as_u16(), first.text().await.unwrap().contains("RUN_FINISHED")), (200, true));
    let (status, problem): (u16, Value) = call(post(Some("bob"), "r2")).await;
    assert_eq!((status, &problem["code"]), (409, &json!("thread_of_another_agent")), "{problem}");
    for (agent, run) in [(Some("alice"), "r3"), (None, "r4")] {
        let again = post(agent, run).send().await.unwrap();
        assert_eq!((again.status().as_u16(), again.text().await.unwrap().contains("RUN_FINISHED")), (200, true));
    }
}
