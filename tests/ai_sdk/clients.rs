//! The AI SDK's own clients, each major version: what one of them shows in the end is the chat's history, whatever breaks.

use serde_json::{Value, json};

use super::{history, untimed};
use crate::support::{Client, ClientProgram, Deployment, Proxy};

const LONG: &str = "[think] [call=scripted__echo {\"text\":\"hi\"}] [tokens=300] [delay=20] hello";

/// A program of `tests/clients/ai-sdk` that talks in the chat `c`.
async fn talks(sdk: &str, base: &str, text: &str) -> ClientProgram {
    with(sdk, base, json!({ "text": text })).await
}

async fn with(sdk: &str, base: &str, mut parameters: Value) -> ClientProgram {
    parameters["sdk"] = sdk.into();
    parameters["chat"] = "c".into();
    ClientProgram::start("ai-sdk", base, parameters).await
}

fn says(got: &Value) -> bool {
    got["said"].is_u64()
}

/// The messages that the program shows in the end, and what it was given meanwhile.
async fn final_messages(program: ClientProgram) -> (Value, Vec<Value>) {
    let (received, end) = program.rest().await;
    (end["messages"].clone(), received)
}

/// The messages without what a stream cannot say on every version: how an approval was answered, and how long the model
/// reasoned.
fn without_verdicts(mut messages: Value) -> Value {
    let parts =
        messages.as_array_mut().unwrap().iter_mut().flat_map(|message| message["parts"].as_array_mut().unwrap());
    for part in parts {
        part.as_object_mut().unwrap().remove("providerMetadata");
        if let Some(approval) = part.get_mut("approval").and_then(Value::as_object_mut) {
            approval.retain(|field, _| field == "id");
        }
    }
    messages
}

/// Version 5 gives no names to pieces of reasoning.
fn without_names_of_reasoning(mut messages: Value) -> Value {
    let parts =
        messages.as_array_mut().unwrap().iter_mut().flat_map(|message| message["parts"].as_array_mut().unwrap());
    for part in parts.filter(|part| part["type"] == "reasoning") {
        part.as_object_mut().unwrap().remove("id");
    }
    messages
}

/// The history also says when a user has said something.
async fn what_is_known(client: &Client) -> Value {
    let mut history = history(client, "c").await;
    for message in history.as_array_mut().unwrap().iter_mut().filter(|message| message["role"] == "user") {
        *message = untimed(message);
    }
    history
}

async fn is_the_history(client: &Client, sdk: &str, messages: Value) {
    let mut history = without_verdicts(what_is_known(client).await);
    // The client names its own messages, and the server keeps the names.
    if sdk == "ai5" {
        history = without_names_of_reasoning(history);
    }
    let messages = if sdk == "ai5" { without_names_of_reasoning(messages) } else { messages };
    assert_eq!(without_verdicts(messages), history, "{sdk}");
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

/// Connections that are reset, at once and in the middle of a frame, and the death of the process behind them.
async fn survives(sdk: &str, mut deployment: Deployment) {
    let (messages, _) = shown_after_breaks(sdk, &mut deployment).await;
    is_the_history(&deployment.client(), sdk, messages).await;
}

/// The messages that are shown in the end, and all that the program was given.
async fn shown_after_breaks(sdk: &str, deployment: &mut Deployment) -> (Value, Vec<Value>) {
    let proxy = Proxy::before(deployment.client().base()).await;
    let mut program = talks(sdk, &proxy.base, LONG).await;
    let mut received = program.up_to_nth(5, says).await;
    proxy.reset_and_again_after_text("{\"type\":\"text-delta\"");
    proxy.until_breaks(1).await;
    received.extend(program.up_to_nth(5, says).await);
    deployment.kill_api();
    proxy.until_refused().await;
    let client = deployment.client();
    if deployment.is_embedded() {
        is_taken_over(&client).await;
    }
    proxy.lead_to(client.base());
    let (messages, rest) = final_messages(program).await;
    received.extend(rest);
    (messages, received)
}

/// Waits until the second attempt has begun: whoever comes back before it also shows what it takes back.
async fn is_taken_over(client: &Client) {
    let runs = client.get("/v1/runs").await.unwrap();
    let run_id = runs["items"][0]["id"].as_str().unwrap();
    client.events(run_id, None).await.up_to_nth("attempt.started", 2).await;
}

/// An approval, which breaks off right after it was answered, and a tool of the front end.
async fn answers(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let tool = "[call=locate {\"city\":\"Ulm\"}]";
    let text = if sdk == "ai5" { format!("{tool} [tokens=30]") } else { format!("[approval] {tool} [tokens=30]") };
    let (messages, received) = final_messages(talks(sdk, client.base(), &text).await).await;
    assert_eq!(received.iter().filter(|got| got["call"]["city"] == "Ulm").count(), 1);
    assert_eq!(received.iter().any(|got| got["asked"].is_string()), sdk != "ai5");
    is_the_history(&client, sdk, messages).await;
}

async fn is_denied(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let program = with(sdk, client.base(), json!({"text": "[approval] [tokens=3]", "approve": false})).await;
    let (messages, _) = final_messages(program).await;
    let states: Vec<&Value> = messages[1]["parts"].as_array().unwrap().iter().map(|part| &part["state"]).collect();
    assert!(states.contains(&&json!("output-denied")), "{states:?}");
    assert_eq!(messages, what_is_known(&client).await);
}

async fn stops(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let program = with(sdk, client.base(), json!({"text": "[tokens=5000] [delay=10]", "stop": true})).await;
    let (messages, _) = final_messages(program).await;
    is_the_history(&client, sdk, messages).await;
}

/// A failure is the client's error, and what was said before it stays; so do calls of tools that there are not.
async fn fails(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let text = "[call=scripted__nothing {\"a\":1}] [call=nothing] [tokens=4] [think] [fail]";
    let (_, end) = talks(sdk, client.base(), text).await.rest().await;
    assert!(end["error"].as_str().unwrap().contains("as [fail] told it to"), "{end}");
    is_the_history(&client, sdk, end["messages"].clone()).await;
}

macro_rules! each_client {
    ($($client:ident: $sdk:literal, $story:ident, $deployment:ident;)+) => {
        $(#[tokio::test]
        async fn $client() {
            $story($sdk, Deployment::$deployment()).await;
        })+
    };
}

each_client! {
    version_5_loses_nothing: "ai5", survives, embedded;
    version_6_loses_nothing: "ai6", survives, embedded;
    version_6_loses_nothing_scaled_out: "ai6", survives, scaled_out;
    version_7_loses_nothing: "ai7", survives, embedded;
    version_7_loses_nothing_scaled_out: "ai7", survives, scaled_out;
    the_hook_of_react_loses_nothing: "react", survives, embedded;
    the_hook_of_react_loses_nothing_scaled_out: "react", survives, scaled_out;
    the_transport_that_counts_chunks_loses_nothing: "workflow", survives, embedded;
    version_5_answers_what_it_is_asked: "ai5", answers, embedded;
    version_6_answers_what_it_is_asked: "ai6", answers, embedded;
    version_6_answers_what_it_is_asked_scaled_out: "ai6", answers, scaled_out;
    version_7_answers_what_it_is_asked: "ai7", answers, embedded;
    the_hook_of_react_answers_what_it_is_asked: "react", answers, embedded;
    the_transport_that_counts_chunks_answers_what_it_is_asked: "workflow", answers, embedded;
    version_6_denies: "ai6", is_denied, embedded;
    version_7_denies: "ai7", is_denied, embedded;
    version_5_shows_a_failure: "ai5", fails, embedded;
    version_6_shows_a_failure: "ai6", fails, embedded;
    version_7_shows_a_failure: "ai7", fails, embedded;
    the_hook_of_react_shows_a_failure: "react", fails, embedded;
    version_5_stops: "ai5", stops, embedded;
    version_6_stops: "ai6", stops, embedded;
    version_6_stops_scaled_out: "ai6", stops, scaled_out;
    the_hook_of_react_stops: "react", stops, embedded;
}

/// It comes back behind what it has got, and the page has nothing to do.
#[tokio::test]
async fn the_transport_that_counts_chunks_loses_nothing_scaled_out() {
    let mut deployment = Deployment::scaled_out();
    let (messages, received) = shown_after_breaks("workflow", &mut deployment).await;
    assert!(!received.iter().any(|got| got["resumed"].is_u64()), "{received:?}");
    is_the_history(&deployment.client(), "workflow", messages).await;
}

/// It only ever appends, so it also keeps what a dead worker has said. Nothing of either is missing, and nothing comes twice.
#[tokio::test]
async fn the_transport_that_counts_chunks_keeps_the_text_of_a_dead_worker() {
    let mut deployment = Deployment::scaled_out();
    let client = deployment.client();
    let mut program = talks("workflow", client.base(), LONG).await;
    program.up_to_nth(10, says).await;
    deployment.kill_worker();
    deployment.client();
    let (messages, received) = final_messages(program).await;
    assert!(received.iter().all(says), "{received:?}");
    let parts = messages[1]["parts"].as_array().unwrap();
    let attempt = parts.iter().position(|part| part["type"] == "data-attempt").expect("it is told of the new attempt");
    let (before, after) = parts.split_at(attempt);
    let mut shown_texts = texts(before);
    let taken_back = shown_texts.pop().unwrap();
    shown_texts.extend(texts(after));
    let history = history(&client, "c").await;
    assert_eq!(shown_texts, texts(history[1]["parts"].as_array().unwrap()));
    // The scripted model says the same again.
    assert!(!taken_back.is_empty() && shown_texts.last().unwrap().starts_with(taken_back), "{taken_back}");
}

fn texts(parts: &[Value]) -> Vec<&str> {
    parts.iter().filter(|part| part["type"] == "text").map(|part| part["text"].as_str().unwrap()).collect()
}
