//! Several messages in one conversation, and repetitions of one message.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Embedded, ScaledOut, answer};

async fn conversation(client: &Client) -> String {
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    format!("/v1/conversations/{}", conversation["id"].as_str().unwrap())
}

fn id(value: &Value) -> String {
    value["run"]["id"].as_str().unwrap().to_owned()
}

async fn two_messages_at_once_are_answered_one_after_the_other(client: &Client) {
    let path = conversation(client).await;
    let messages = format!("{path}/messages");
    let post = async |text: &str| {
        client.post(&messages, json!({"content": format!("[tokens=10] [delay=10] {text}")})).await.unwrap()
    };
    let (first, second) = tokio::join!(post("one"), post("two"));
    let (first, second) = (client.wait_for_run(&id(&first)).await, client.wait_for_run(&id(&second)).await);
    assert_eq!((first["status"].as_str(), second["status"].as_str()), (Some("completed"), Some("completed")));
    let (earlier, later) =
        if first["started_at"].as_str() < second["started_at"].as_str() { (first, second) } else { (second, first) };
    assert!(
        earlier["finished_at"].as_str() <= later["started_at"].as_str(),
        "{earlier} and {later} ran at the same time"
    );
    assert!(client.get(&path).await.unwrap()["live_run_id"].is_null());
}

#[tokio::test]
async fn embedded_two_messages_at_once_are_queued() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    two_messages_at_once_are_answered_one_after_the_other(&holdfast.client()).await;
}

#[tokio::test]
async fn scaled_out_two_messages_at_once_are_queued() {
    let scaled = ScaledOut::new();
    let (mut api, _worker, _other) = (scaled.api(), scaled.worker(), scaled.worker());
    two_messages_at_once_are_answered_one_after_the_other(&api.client()).await;
}

#[tokio::test]
async fn a_busy_conversation_refuses_a_message_that_asks_for_it() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let path = conversation(&client).await;
    let messages = format!("{path}/messages");
    let post = async || client.post(&messages, json!({"content": "[gate=closed]", "mode": "reject"})).await;
    let (first, second) = tokio::join!(post(), post());
    let (accepted, refused) = if first.is_ok() { (first, second) } else { (second, first) };
    let (accepted, refused) = (accepted.unwrap(), refused.unwrap_err());
    assert_eq!((refused.status, refused.code.as_str()), (409, "conversation_busy"));
    assert_eq!(client.get(&messages).await.unwrap()["items"].as_array().unwrap().len(), 1);
    client.cancel(&id(&accepted)).await;
    client.wait_for_run(&id(&accepted)).await;
    post().await.unwrap();
}

#[tokio::test]
async fn an_interrupting_message_cancels_queued_and_running_runs() {
    let scaled = ScaledOut::new();
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let path = conversation(&client).await;
    let messages = format!("{path}/messages");
    let running = client.post(&messages, json!({"content": "[tokens=1000] [delay=20]"})).await.unwrap();
    let mut stream = client.events(&id(&running), None).await;
    stream.up_to_nth("message.delta", 5).await;
    let queued = client.post(&messages, json!({"content": "[tokens=3] queued"})).await.unwrap();
    let next = client.post(&messages, json!({"content": "[tokens=3] next", "mode": "interrupt"})).await.unwrap();
    assert_eq!(client.run(&id(&queued)).await["status"], "cancelled");
    assert_eq!(client.wait_for_run(&id(&next)).await["status"], "completed");
    let running = client.run(&id(&running)).await;
    assert_eq!(
        (running["status"].as_str(), running["output_message"]["status"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    assert!(!running["output_message"]["content"].as_str().unwrap().is_empty());
}

async fn the_same_key_in_parallel(clients: &[Client]) {
    let body = json!({"input": "[tokens=3] hi"});
    let post = |client: Client, body: Value, key: &'static str| {
        tokio::spawn(async move {
            answer(client.request(Method::POST, "/v1/runs").header("idempotency-key", key).json(&body)).await
        })
    };
    let posts: Vec<_> = (0..20).map(|index| post(clients[index % clients.len()].clone(), body.clone(), "k1")).collect();
    let mut answers = Vec::new();
    for posted in posts {
        answers.push(posted.await.unwrap().unwrap());
    }
    assert!(
        answers.iter().all(|answer| id(answer) == id(&answers[0]) && answer["message"] == answers[0]["message"]),
        "{answers:?}"
    );
    let client = &clients[0];
    client.wait_for_run(&id(&answers[0])).await;
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len(), 1);
    let other = post(client.clone(), json!({"input": "[tokens=4] hi"}), "k1").await.unwrap().unwrap_err();
    assert_eq!((other.status, other.code.as_str()), (422, "idempotency_key_reused"));
    let stream = client
        .request(Method::POST, "/v1/runs")
        .header("idempotency-key", "k1")
        .header("accept", "text/event-stream")
        .json(&body);
    let response = stream.send().await.unwrap();
    assert_eq!(response.headers()["x-run-id"].to_str().unwrap(), id(&answers[0]));
    let stream_text = response.text().await.unwrap();
    assert!(stream_text.contains("event: run.queued") && stream_text.contains("event: run.completed"));
    // A client that repeats its POST after a broken connection resumes where it stopped.
    let request =
        client.request(Method::POST, "/v1/runs").header("idempotency-key", "k1").header("accept", "text/event-stream");
    let rest = request.header("last-event-id", "1-1").json(&body).send().await.unwrap().text().await.unwrap();
    assert!(!rest.contains("event: run.queued") && rest.contains("id: 1-2\n") && rest.contains("event: run.completed"));
}

#[tokio::test]
async fn embedded_the_same_key_twenty_times_in_parallel_gives_one_run() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    the_same_key_in_parallel(&[holdfast.client()]).await;
}

#[tokio::test]
async fn scaled_out_the_same_key_twenty_times_in_parallel_gives_one_run() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, _worker) = (scaled.api(), scaled.api(), scaled.worker());
    the_same_key_in_parallel(&[first.client(), second.client()]).await;
}
