//! Each limit, at its exact value and one above.

use std::io::{Read, Write};

use reqwest::Method;
use serde_json::json;

use crate::support::{
    Client, Embedded, answer,
    tokens::{SECRET, claims, token},
    upstream::TestUpstream,
};

#[tokio::test]
async fn a_content_of_64_kib_is_taken_and_a_byte_more_is_not() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let body = |bytes: usize| json!({"input": format!("[tokens=1]{}", "x".repeat(bytes - 10))});
    client.post("/v1/runs", body(65_536)).await.unwrap();
    let failure = client.post("/v1/runs", body(65_537)).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (400, "content_too_long"));
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_decision_keeps_to_the_length_of_a_message() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut stream = client.stream("[approval] [tokens=1]").await;
    let question_frames = stream.up_to("approval.requested").await;
    let question_frames = question_frames.last().unwrap().data["approval_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{}/approvals/{question_frames}", stream.run_id);
    let edited = |bytes: usize| json!({"decision": "approve", "edited_input": {"action": "x".repeat(bytes - 13)}});
    for too_long in [edited(65_537), json!({"decision": "deny", "reason": "x".repeat(65_537)})] {
        assert_eq!(client.post(&path, too_long).await.unwrap_err().code, "content_too_long");
    }
    client.post(&path, edited(65_536)).await.unwrap();
}

#[tokio::test]
async fn a_body_of_the_largest_size_is_read_and_a_byte_more_is_not() {
    let embedded = Embedded::new().with("HOLDFAST_MAX_BODY_BYTES", "1000").with("HOLDFAST_MAX_CONTENT_BYTES", "100000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let send = async |bytes: usize| {
        let frame = json!({"input": ""}).to_string().len();
        let body = json!({"input": "x".repeat(bytes - frame)}).to_string();
        assert_eq!(body.len(), bytes);
        answer(client.request(Method::POST, "/v1/runs").header("content-type", "application/json").body(body)).await
    };
    send(1000).await.unwrap();
    let failure = send(1001).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn titles_keys_and_names_have_a_longest() {
    let embedded = Embedded::new().with("HOLDFAST_MAX_TITLE_CHARS", "5");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    client.post("/v1/conversations", json!({"title": "这个五个字"})).await.unwrap();
    assert_eq!(client.post("/v1/conversations", json!({"title": "123456"})).await.unwrap_err().code, "invalid_title");
    let with_key = async |key: String| {
        answer(
            client
                .request(Method::POST, "/v1/runs")
                .header("idempotency-key", key)
                .json(&json!({"input": "[tokens=1]"})),
        )
        .await
    };
    with_key("k".repeat(255)).await.unwrap();
    assert_eq!(with_key("k".repeat(256)).await.unwrap_err().code, "invalid_idempotency_key");
    client.user(&"u".repeat(128)).get("/v1/runs").await.unwrap();
    assert_eq!(client.user(&"u".repeat(129)).get("/v1/runs").await.unwrap_err().code, "invalid_user");
}

#[tokio::test]
async fn one_worker_executes_no_more_runs_at_a_time_than_it_may() {
    let embedded = Embedded::new().with("HOLDFAST_WORKER_CONCURRENCY", "2");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(client.stream("[tokens=1000] [delay=20] hi").await);
    }
    for stream in &mut streams[..2] {
        stream.up_to("message.delta").await;
    }
    assert_eq!(client.run(&streams[2].run_id).await["status"], "queued");
    client.cancel(&streams[0].run_id.clone()).await;
    streams[2].up_to("message.delta").await;
}

#[tokio::test]
async fn a_conversation_takes_as_many_waiting_runs_as_it_may() {
    let embedded = Embedded::new().with("HOLDFAST_MAX_QUEUED", "2");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let post =
        async |mode: &str| client.post(&path, json!({"content": "[tokens=1000] [delay=20]", "mode": mode})).await;
    post("enqueue").await.unwrap();
    post("enqueue").await.unwrap();
    let failure = post("enqueue").await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (429, "too_many_queued"));
    post("interrupt").await.unwrap();
}

#[tokio::test]
async fn an_answer_of_the_largest_size_is_kept_and_a_byte_more_fails_the_run() {
    let upstream = TestUpstream::start(&["12345", "67890"]).await;
    for (limit, status, text) in [(10, "completed", "1234567890"), (9, "failed", "12345")] {
        let embedded = Embedded::new()
            .with("CHAT_MODEL_PROVIDER", "openai")
            .with("CHAT_MODEL_NAME", "gpt-test")
            .with("OPENAI_BASE_URL", &upstream.base_url)
            .with("HOLDFAST_MAX_ANSWER_BYTES", limit);
        let mut holdfast = embedded.start();
        let client = holdfast.client();
        let run = client.wait_for_run(client.start("hi").await["run"]["id"].as_str().unwrap()).await;
        assert_eq!((run["status"].as_str(), run["output_message"]["content"].as_str()), (Some(status), Some(text)));
        assert!(status == "completed" || run["error"]["code"] == "answer_too_long", "{run}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_arrive_times_out() {
    let embedded = Embedded::new().with("HOLDFAST_BODY_TIMEOUT_MS", "200");
    let mut holdfast = embedded.start();
    let mut slow = std::net::TcpStream::connect(holdfast.base().trim_start_matches("http://")).unwrap();
    slow.write_all(
        b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{",
    )
    .unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn an_owner_has_as_many_unfinished_runs_as_it_may_and_each_that_ends_makes_room() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_RUNS_PER_OWNER", "2");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let [ann, bob] = ["ann", "bob"].map(|name| client.token(&token(&claims(name, json!({})))));
    let endless = "[tokens=1000] [delay=20]";
    let start = |client: &Client, key: &str| {
        client.request(Method::POST, "/v1/runs").header("idempotency-key", key).json(&json!({"input": endless}))
    };
    let first = answer(start(&ann, "1")).await.unwrap();
    answer(start(&ann, "2")).await.unwrap();
    let refused = start(&ann, "3").send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    let failure = answer(start(&ann, "3")).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (429, "too_many_runs"));
    answer(start(&ann, "1")).await.expect("a repeated request starts nothing");
    answer(start(&bob, "1")).await.expect("another owner has its own");
    let run = first["run"]["id"].as_str().unwrap();
    ann.cancel(run).await;
    ann.wait_for_run(run).await;
    answer(start(&ann, "3")).await.unwrap();
}

/// Returns a client of an account, one of a new anonymous user, and that user's token.
async fn ann_and_an_anonymous_user(client: &Client) -> (Client, Client, String) {
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let secret = made["token"].as_str().unwrap().to_owned();
    (client.token(&token(&claims("ann", json!({})))), client.token(&secret), secret)
}

#[tokio::test]
async fn a_claim_beyond_a_quota_is_refused_and_moves_nothing() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_RUNS_PER_OWNER", "2");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let (ann, anonymous, secret) = ann_and_an_anonymous_user(&client).await;
    for caller in [&ann, &ann, &anonymous] {
        caller.start("[tokens=1000] [delay=20]").await;
    }
    let claim = || ann.post("/v1/users/me/claim", json!({"anonymous_token": secret}));
    let failure = claim().await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (429, "too_many_runs"));
    let runs = anonymous.get("/v1/runs").await.unwrap();
    let moved = runs["items"][0]["id"].as_str().expect("the run stays with the anonymous user").to_owned();
    anonymous.cancel(&moved).await;
    anonymous.wait_for_run(&moved).await;
    assert_eq!(claim().await.unwrap()["conversations"], 1);
}

#[tokio::test]
async fn a_claim_beyond_the_limit_of_a_workspace_is_refused_and_moves_nothing() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_WORKSPACE_ENTITIES", 3);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let (ann, anonymous, secret) = ann_and_an_anonymous_user(&client).await;
    for (caller, name) in [(&ann, "a"), (&ann, "b"), (&anonymous, "c"), (&anonymous, "d")] {
        caller.post("/v1/workspace/projects", json!({"name": name})).await.unwrap();
    }
    let claim = || ann.post("/v1/users/me/claim", json!({"anonymous_token": secret}));
    let failure = claim().await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (403, "workspace_full"));
    let projects = anonymous.get("/v1/workspace/projects").await.unwrap();
    assert_eq!(projects["items"].as_array().unwrap().len(), 2);
    let other = client.token(&token(&claims("bob", json!({}))));
    other.post("/v1/workspace/projects", json!({"name": "e"})).await.unwrap();
    other.post("/v1/users/me/claim", json!({"anonymous_token": secret})).await.expect("three fit");
}

#[tokio::test]
async fn an_owner_keeps_as_many_bytes_as_it_may_and_deleting_makes_room() {
    let embedded = Embedded::new().with("HOLDFAST_OWNER_BYTES", "10000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let agent = client.post("/v1/agents", json!({"name": "a"})).await.unwrap();
    let briefing = |bytes: usize| json!({"agent_id": agent["id"], "title": "t", "summary": "s".repeat(bytes - 1)});
    let briefing_kept = client.post("/v1/briefings", briefing(10_000)).await.unwrap();
    let refusals = [
        client.post("/v1/briefings", briefing(2)).await,
        client.post("/v1/conversations", json!({})).await,
        client.post("/v1/runs", json!({"input": "[tokens=1]"})).await,
    ];
    for refused in refusals {
        let failure = refused.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (403, "quota_exceeded"));
    }
    client.user("bob").start("[tokens=1]").await;
    client.delete(&format!("/v1/briefings/{}", briefing_kept["id"].as_str().unwrap())).await.unwrap();
    client.start("[tokens=1]").await;
}
