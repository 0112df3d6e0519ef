//! Every limit at its edge.

use reqwest::Method;
use serde_json::json;

use crate::support::{Embedded, answer};

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
