//! Histories that requests bring: the run keeps the newest messages, and a warning says what is left out.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, answer,
        tokens::{SECRET, claims, token},
    },
};

in_both_modes!(
    a_history_keeps_its_newest_messages_within_both_bounds,
    the_bytes_of_a_history_depend_on_the_caller,
    a_developer_without_a_name_has_the_bounds_of_a_user,
);

/// Asks for a completion after messages of the user with these texts, and returns its warnings and the words that the model
/// has read.
async fn complete(client: &Client, earlier: &[String]) -> (Vec<String>, u64) {
    let earlier = earlier.iter().map(|text| json!({"role": "user", "content": text}));
    let messages: Vec<Value> = earlier.chain([json!({"role": "user", "content": "[tokens=1] now"})]).collect();
    let request = client.request(Method::POST, "/openai/v1/chat/completions").json(&json!({"messages": messages}));
    let completion = answer(request).await.unwrap();
    let run: Uuid = completion["id"].as_str().unwrap().replace("chatcmpl-", "").parse().unwrap();
    let frames = client.events(&run.to_string(), None).await.rest().await;
    let warnings = frames.iter().filter(|frame| frame.event == "warning.raised");
    let warnings = warnings.map(|frame| {
        assert_eq!(frame.data["code"], "history_left_out");
        frame.data["message"].as_str().unwrap().to_owned()
    });
    (warnings.collect(), completion["usage"]["prompt_tokens"].as_u64().unwrap())
}

fn left_out(messages: usize) -> Vec<String> {
    vec![format!(
        "The model answers without the oldest {messages} messages and calls of the request's history, which is too long."
    )]
}

async fn a_history_keeps_its_newest_messages_within_both_bounds(deployment: Deployment) {
    // Each message of 100 letters counts 164 bytes.
    let mut deployment = deployment.with("HOLDFAST_MAX_HISTORY", 5).with("HOLDFAST_GIVEN_HISTORY_BYTES", 4 * 164);
    let client = deployment.client().user("ann");
    let words = |messages: usize, letters: usize| vec!["x".repeat(letters); messages];
    let (warnings, alone) = complete(&client, &[]).await;
    assert!(warnings.is_empty());
    let (warnings, with_one) = complete(&client, &words(1, 100)).await;
    let each = with_one - alone;
    assert!(warnings.is_empty() && each > 0);
    assert_eq!(complete(&client, &words(4, 100)).await, (vec![], alone + 4 * each));
    assert_eq!(complete(&client, &words(5, 100)).await, (left_out(1), alone + 4 * each));
    assert_eq!(complete(&client, &words(5, 1)).await.0, Vec::<String>::new());
    assert_eq!(complete(&client, &words(60, 1)).await.0, left_out(55));
    assert_eq!(complete(&client, &words(1, 4 * 164)).await, (left_out(1), alone));
}

async fn the_bytes_of_a_history_depend_on_the_caller(deployment: Deployment) {
    let mut deployment = deployment
        .with("HOLDFAST_JWT_KEY", SECRET)
        .with("HOLDFAST_GIVEN_HISTORY_BYTES", 3 * 164)
        .with("HOLDFAST_ANONYMOUS_GIVEN_HISTORY_BYTES", 164);
    let client = deployment.client();
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let stranger = client.token(made["token"].as_str().unwrap());
    let ann = client.token(&token(&claims("ann", json!({}))));
    let three = vec!["x".repeat(100); 3];
    assert_eq!(complete(&ann, &three).await.0, Vec::<String>::new());
    assert_eq!(complete(&stranger, &three).await.0, left_out(2));
    let instructed = |bytes: usize| {
        let messages =
            json!([{"role": "system", "content": "x".repeat(bytes)}, {"role": "user", "content": "[tokens=1]"}]);
        let request = stranger.request(Method::POST, "/openai/v1/chat/completions");
        request.json(&json!({"messages": messages})).send()
    };
    assert_eq!(instructed(164).await.unwrap().status(), 200);
    assert_eq!(instructed(165).await.unwrap().status(), 400);
}

async fn a_developer_without_a_name_has_the_bounds_of_a_user(deployment: Deployment) {
    let mut deployment =
        deployment.with("HOLDFAST_GIVEN_HISTORY_BYTES", 3 * 164).with("HOLDFAST_ANONYMOUS_GIVEN_HISTORY_BYTES", 164);
    let client = deployment.client();
    let words = |messages: usize| vec!["x".repeat(100); messages];
    assert_eq!(complete(&client, &words(3)).await.0, Vec::<String>::new());
    assert_eq!(complete(&client, &words(4)).await.0, left_out(1));
}
