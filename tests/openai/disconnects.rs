//! Clients of chat completions that close the connection: nothing leads back to the answer, so the run ends.

use serde_json::{Value, json};

use super::{call, completion};
use crate::support::{
    BlockStream, Client, Embedded, Holdfast,
    providers::{OPENAI, Part, RuledProvider, ScriptedReply},
    until,
};

async fn start(setting: Option<&str>) -> (Holdfast, Client, RuledProvider) {
    let provider = RuledProvider::start(OPENAI, []).await;
    let mut embedded = Embedded::new();
    if let Some(setting) = setting {
        embedded = embedded.with("HOLDFAST_COMPLETIONS_ON_DISCONNECT", setting);
    }
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    (holdfast, client, provider)
}

/// Lets the provider hold its answer after the first word.
fn hold(provider: &RuledProvider) {
    provider.reply_with([ScriptedReply::Answer(vec![Part::Text("One."), Part::Hold, Part::Text("Two.")])]);
}

fn body(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "x"}], "stream": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn newest_run(client: &Client) -> String {
    until("the run exists", async || {
        let runs = client.get("/v1/runs?limit=1").await.unwrap();
        runs["items"][0]["id"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_run_ends_when_the_client_of_its_completion_hangs_up() {
    let (_holdfast, client, provider) = start(None).await;
    for streams in [true, false] {
        hold(&provider);
        let request = completion(&client, &body(json!({"stream": streams})));
        let run_id = if streams {
            let mut stream = BlockStream::open(request).await;
            while !stream.next().await.unwrap().unwrap().data.contains("One.") {}
            drop(stream);
            newest_run(&client).await
        } else {
            let waiting = tokio::spawn(request.send());
            let taken = provider.taken().len();
            until("the provider is asked", async || (provider.taken().len() > taken).then_some(())).await;
            let run_id = newest_run(&client).await;
            waiting.abort();
            run_id
        };
        assert_eq!(ended(&client, &run_id).await, "cancelled", "streams: {streams}");
    }
}

/// Returns the status of a run after its end. A wait for the run would follow it, and a run that is followed continues.
async fn ended(client: &Client, run_id: &str) -> Value {
    until("the run has ended", async || {
        let mut run = client.get(&format!("/v1/runs/{run_id}")).await.unwrap();
        run["finished_at"].is_string().then(|| run["status"].take())
    })
    .await
}

#[tokio::test]
async fn a_run_continues_if_another_request_can_return_to_it() {
    let (_holdfast, client, provider) = start(None).await;
    let (_, conversation) =
        call(client.request(reqwest::Method::POST, "/openai/v1/conversations").json(&json!({}))).await;
    let kept = json!({"metadata": {"conversation_id": conversation["id"]}});
    let requests = [
        completion(&client, &body(json!({"background": true}))),
        completion(&client, &body(json!({}))).header("idempotency-key", "k"),
        completion(&client, &body(kept)),
    ];
    for request in requests {
        continues(&client, &provider, request).await;
    }
}

#[tokio::test]
async fn with_the_setting_every_run_continues() {
    let (_holdfast, client, provider) = start(Some("continue")).await;
    continues(&client, &provider, completion(&client, &body(json!({})))).await;
}

/// Hangs up in the middle of an answer, whose run is completed nevertheless.
async fn continues(client: &Client, provider: &RuledProvider, request: reqwest::RequestBuilder) {
    hold(provider);
    let mut stream = BlockStream::open(request).await;
    while !stream.next().await.unwrap().unwrap().data.contains("One.") {}
    drop(stream);
    let run_id = newest_run(client).await;
    // A sleep, because nothing happens when a run is not cancelled 2 s after the end of its connection.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    provider.release();
    let run = client.wait_for_run(&run_id).await;
    assert_eq!((&run["status"], &run["output_message"]["content"]), (&json!("completed"), &json!("One.Two.")));
}
