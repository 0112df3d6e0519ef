//! Responses that clients do not read, or read slowly: how many bytes the server keeps for a caller, and how long.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Embedded, answer,
    tokens::{SECRET, claims, token},
    until,
    upstream::TestUpstream,
};

/// Stores briefings for ann. Their first page has about a mebibyte.
async fn store_long_list(client: &Client) -> Client {
    let agent = client.post("/v1/agents", json!({"name": "clerk"})).await.unwrap();
    let ann = client.user("ann");
    let body = json!({"agent_id": agent["id"], "title": "t", "summary": "s".repeat(60_000), "data": {"x": "x".repeat(60_000)}});
    for _ in 0..10 {
        ann.post("/v1/briefings", body.clone()).await.unwrap();
    }
    ann
}

/// Requests the list, and reads the first line of the response.
fn request_list(client: &Client) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(client.base().trim_start_matches("http://")).unwrap();
    socket.write_all(b"GET /v1/briefings HTTP/1.1\r\nhost: localhost\r\nx-user: ann\r\n\r\n").unwrap();
    let mut line = [0; 12];
    socket.read_exact(&mut line).unwrap();
    (socket, String::from_utf8_lossy(&line).into_owned())
}

#[tokio::test]
async fn a_caller_with_unread_responses_receives_no_more_until_it_has_read_them() {
    let embedded = Embedded::new().with("HOLDFAST_ANSWERS_PER_CALLER_BYTES", "1500000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ann = store_long_list(&client).await;
    let (first, status) = request_list(&client);
    assert_eq!(status, "HTTP/1.1 200");
    // A compressed list would be short.
    let whole = || answer(ann.request(Method::GET, "/v1/briefings").header("accept-encoding", "identity"));
    let refused = whole().await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (429, "too_many_answers"));
    ann.get("/v1/runs").await.expect("a short answer has room");
    client.user("bob").get("/v1/briefings").await.expect("another caller has room");
    drop(first);
    until("the server has dropped the unread response", || async { whole().await.ok() }).await;
}

#[tokio::test]
async fn a_full_budget_refuses_before_the_work_is_done() {
    for (variable, status, code) in [
        ("HOLDFAST_ANSWERS_PER_CALLER_BYTES", 429, "too_many_answers"),
        ("HOLDFAST_ANSWERS_BYTES", 503, "answers_busy"),
    ] {
        let embedded = Embedded::new().with(variable, "1000000");
        let mut holdfast = embedded.start();
        let client = holdfast.client();
        let ann = store_long_list(&client).await;
        let run = ann.start("[tokens=1000] [delay=20]").await;
        let (first, line) = request_list(&client);
        assert_eq!(line, "HTTP/1.1 200", "one response is always sent, however long");
        let refused = ann.request(Method::POST, "/v1/conversations").json(&json!({})).send().await.unwrap();
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"] == "1"), (status, true));
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], code);
        let probe = client.request(Method::GET, "/healthz").send().await.unwrap();
        assert_eq!(probe.status(), 200, "probes pass");
        ann.cancel(run["run"]["id"].as_str().unwrap()).await;
        drop(first);
        let conversations = until("there is room", || async { ann.get("/v1/conversations").await.ok() }).await;
        assert_eq!(conversations["items"].as_array().unwrap().len(), 1, "only the run's own: {conversations}");
    }
}

#[tokio::test]
async fn a_client_that_reads_a_response_too_slowly_is_disconnected() {
    let embedded = Embedded::new().with("HOLDFAST_ANSWER_TIMEOUT_MS", "1000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ann = store_long_list(&client).await;
    let all = ann.get("/v1/briefings").await.expect("a client that reads gets all of it");
    let (mut trickling, _) = request_list(&client);
    let stalled = "holdfast_connections_stalled_total 1";
    until("the trickling connection is closed", || {
        trickling.read_exact(&mut [0; 100]).unwrap();
        let metrics = client.request(Method::GET, "/metrics").send();
        async { metrics.await.unwrap().text().await.unwrap().contains(stalled).then_some(()) }
    })
    .await;
    let mut rest = Vec::new();
    let _ = trickling.read_to_end(&mut rest);
    assert!(rest.len() < all.to_string().len() / 2, "the client received {} bytes", rest.len());
}

#[tokio::test]
async fn a_response_without_pages_is_bounded_by_what_one_run_may_write() {
    let upstream = TestUpstream::start(&["12345", "67890"]).await;
    let embedded = Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-test")
        .with("OPENAI_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_MAX_PAGE_BYTES", "1")
        .with("HOLDFAST_MAX_ANSWER_BYTES", "10");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let submission = client.start("hi").await;
    let run_id = submission["run"]["id"].as_str().unwrap();
    let run = client.wait_for_run(run_id).await;
    assert_eq!(run["output_message"]["content"], "1234567890");
    let snapshot = client.request(Method::GET, &format!("/v1/runs/{run_id}/events?snapshot=true"));
    let snapshot = answer(snapshot.header("accept", "application/json")).await.unwrap();
    assert_eq!(snapshot["snapshot"]["text"], "1234567890");
    let chat = submission["conversation"]["id"].as_str().unwrap();
    let history = client.get(&format!("/api/chat/{chat}/messages")).await.unwrap();
    assert_eq!(history.as_array().unwrap().len(), 1, "a history ends after the message that exceeds it: {history}");
    assert!(history.to_string().contains("1234567890"), "{history}");
    let page = client.get(&format!("/v1/conversations/{chat}/messages")).await.unwrap();
    assert_eq!((page["items"].as_array().unwrap().len(), page["next"].is_string()), (1, true));
}

#[tokio::test]
async fn the_approvals_of_a_run_are_listed_in_pages() {
    let embedded = Embedded::new().with("HOLDFAST_MAX_PAGE_BYTES", "1");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut stream = client.stream("[approval] [approval] [parallel] [tokens=1]").await;
    stream.up_to("agent.state").await;
    let path = format!("/v1/runs/{}/approvals", stream.run_id);
    let first = client.get(&path).await.unwrap();
    let next = first["next"].as_str().expect("the page ends after one");
    let second = client.get(&format!("{path}?cursor={next}")).await.unwrap();
    assert_eq!((first["items"].as_array().unwrap().len(), second["items"].as_array().unwrap().len()), (1, 1));
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    assert_eq!((&second["may_decide"], &second["next"]), (&json!(true), &Value::Null));
    assert_eq!(client.get(&format!("{path}?cursor=x")).await.unwrap_err().code, "invalid_cursor");
}

#[tokio::test]
async fn head_waits_for_nothing_and_holds_no_stream() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_STREAMS_PER_USER", "1");
    let mut holdfast = embedded.start();
    let ann = holdfast.client().token(&token(&claims("ann", json!({}))));
    let run = ann.start("[tokens=100000] [delay=20] hi").await;
    let (run_id, chat) = (run["run"]["id"].as_str().unwrap(), run["conversation"]["id"].as_str().unwrap());
    let events = format!("/v1/runs/{run_id}/events");
    let _open = ann.request(Method::GET, &events).send().await.unwrap();
    let paths = [
        format!("/v1/runs/{run_id}/wait?timeout_ms=600000"),
        events.clone(),
        format!("{events}?snapshot=true"),
        format!("/api/chat/{chat}/stream"),
        format!("/api/chat/{chat}/stream?startIndex=0"),
        format!("/v1/stream/runs/{run_id}?offset=-1&live=long-poll"),
    ];
    for path in paths {
        let head = ann.request(Method::HEAD, &path).send().await.unwrap();
        assert_eq!(head.status(), 200, "{path}");
    }
}
