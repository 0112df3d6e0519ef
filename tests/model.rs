//! A real provider's protocol, end to end: the requests to it, and how its failures reach the user.

use serde_json::{Value, json};

use crate::support::{Embedded, ScaledOut, fold, upstream::TestUpstream};

fn on(upstream: &TestUpstream) -> Embedded {
    Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-test")
        .with("OPENAI_BASE_URL", &upstream.base_url)
}

#[tokio::test]
async fn an_openai_compatible_server_answers_delta_by_delta() {
    let upstream = TestUpstream::start(&["Hel", "lo, ", "世界"]).await;
    let mut holdfast = on(&upstream).start();
    holdfast.wait_for_log("model: openai, gpt-test");
    let client = holdfast.client();
    let frames = client.stream("hi").await.rest().await;
    let deltas: Vec<&str> = frames
        .iter()
        .filter(|frame| frame.event == "message.delta")
        .map(|frame| frame.data["text"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, ["Hel", "lo, ", "世界"]);
    let run = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    assert_eq!(run["model"], "openai/gpt-test");
    assert_eq!((run["usage"]["input_tokens"].as_u64(), run["usage"]["output_tokens"].as_u64()), (Some(7), Some(3)));
    assert_eq!(fold(&frames), "Hello, 世界");
}

#[tokio::test]
async fn the_model_sees_the_last_messages_and_never_a_later_one() {
    let upstream = TestUpstream::start(&["answer"]).await;
    let embedded = on(&upstream).with("CHAT_HISTORY_LIMIT", 3);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    // Most likely all messages arrive before the first answer. The input of each run does not depend on that.
    let mut runs = Vec::new();
    for text in ["one", "two", "three"] {
        runs.push(
            client.post(&path, json!({"content": text})).await.unwrap()["run"]["id"].as_str().unwrap().to_owned(),
        );
    }
    for run in &runs {
        assert_eq!(client.wait_for_run(run).await["status"], "completed");
    }
    let lists = upstream.requests().into_iter().map(|body| body["messages"].clone());
    let message_lists: Vec<Value> = lists.filter(|list| !list.to_string().contains("Summarise our")).collect();
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    assert_eq!(message_lists[0], json!([turn("user", "one")]));
    assert_eq!(message_lists[1], json!([turn("user", "one"), turn("assistant", "answer"), turn("user", "two")]));
    assert_eq!(
        message_lists[2],
        json!([
            turn("user", "[Summary of the conversation so far]\nanswer\n[End of the summary]"),
            turn("assistant", "answer"),
            turn("user", "two"),
            turn("assistant", "answer"),
            turn("user", "three")
        ])
    );
    assert!(upstream.requests().iter().all(|body| body["model"] == "gpt-test" && body["stream"] == true));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_fails_the_run_with_a_reason() {
    let port = test_servers::free_port();
    let embedded = Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-test")
        .with("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1"))
        .with("HOLDFAST_MODEL_RETRY_MS", 1);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let frames = client.stream("hi").await.rest().await;
    let error = &frames.last().unwrap().data["error"];
    assert_eq!(error["code"], "model_unreachable");
    assert!(error["message"].as_str().unwrap().contains("gpt-test"), "{error}");
}

#[tokio::test]
async fn a_character_that_no_database_keeps_is_replaced() {
    let upstream = TestUpstream::start(&["a\u{0}", "b"]).await;
    let scaled = ScaledOut::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-test")
        .with("OPENAI_BASE_URL", &upstream.base_url);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let frames = client.stream("hi").await.rest().await;
    let run = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    assert_eq!(
        (run["status"].as_str(), run["output_message"]["content"].as_str()),
        (Some("completed"), Some("a\u{fffd}b"))
    );
    assert_eq!(fold(&frames), "a\u{fffd}b");
}
