//! The AI SDK's own clients, in each major version. Despite all breaks, each shows the chat's history in the end.

use serde_json::{Value, json};

use super::{history, without_time};
use crate::support::{Client, ClientProgram, Deployment, Proxy, SharedProgram, agent};

const LONG: &str = "[think] [call=scripted__echo {\"text\":\"hi\"}] [tokens=300] [delay=20] hello";

/// The program with the clients of all tests.
static CLIENTS: SharedProgram = SharedProgram::new("ai-sdk");

/// Sends a message in the chat `c` by a client of the SDK.
async fn talks(sdk: &str, base: &str, text: &str) -> ClientProgram {
    with(sdk, base, json!({ "text": text })).await
}

async fn with(sdk: &str, base: &str, mut parameters: Value) -> ClientProgram {
    parameters["sdk"] = sdk.into();
    parameters["chat"] = "c".into();
    parameters["base"] = base.into();
    CLIENTS.connect(parameters).await
}

fn says(got: &Value) -> bool {
    got["shown"].is_u64()
}

/// Returns the messages that the program shows in the end, and its reports.
async fn final_messages(program: ClientProgram) -> (Value, Vec<Value>) {
    let (received, end) = program.rest().await;
    (end["messages"].clone(), received)
}

/// Returns the messages without parts that a stream cannot carry in every version: the decision of an approval, and the
/// duration of reasoning.
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

/// Removes the ids of reasoning parts, which version 5 does not have.
fn without_names_of_reasoning(mut messages: Value) -> Value {
    let parts =
        messages.as_array_mut().unwrap().iter_mut().flat_map(|message| message["parts"].as_array_mut().unwrap());
    for part in parts.filter(|part| part["type"] == "reasoning") {
        part.as_object_mut().unwrap().remove("id");
    }
    messages
}

/// Compares the messages with the history, which also has the times of user messages.
async fn what_is_known(client: &Client) -> Value {
    let mut history = history(client, "c").await;
    for message in history.as_array_mut().unwrap().iter_mut().filter(|message| message["role"] == "user") {
        *message = without_time(message);
    }
    history
}

async fn is_the_history(client: &Client, sdk: &str, messages: Value) {
    let mut history = without_verdicts(what_is_known(client).await);
    // The client chooses the ids of its messages, and the server keeps them.
    if sdk == "ai5" {
        history = without_names_of_reasoning(history);
    }
    let messages = if sdk == "ai5" { without_names_of_reasoning(messages) } else { messages };
    assert_eq!(without_verdicts(messages), history, "{sdk}");
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

/// A client survives connection resets, also in the middle of a frame, and the death of the API's process.
async fn survives(sdk: &str, mut deployment: Deployment) {
    let (messages, _) = shown_after_breaks(sdk, &mut deployment).await;
    is_the_history(&deployment.client(), sdk, messages).await;
}

/// Breaks the connections, and returns the final messages and all reports of the program.
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

/// Waits until the second attempt has started. A client that reconnects earlier also shows the text that it supersedes.
async fn is_taken_over(client: &Client) {
    let runs = client.get("/v1/runs").await.unwrap();
    let run_id = runs["items"][0]["id"].as_str().unwrap();
    client.events(run_id, None).await.up_to_nth("attempt.started", 2).await;
}

/// A client answers an approval, whose connection breaks right after the answer, and a front-end tool.
async fn answers(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let tool = "[call=locate {\"city\":\"Ulm\"}]";
    let text = if sdk == "ai5" { format!("{tool} [tokens=30]") } else { format!("[approval] {tool} [tokens=30]") };
    let (messages, received) = final_messages(talks(sdk, client.base(), &text).await).await;
    assert_eq!(received.iter().filter(|got| got["call"]["city"] == "Ulm").count(), 1);
    assert_eq!(received.iter().any(|got| got["approval"].is_string()), sdk != "ai5");
    is_the_history(&client, sdk, messages).await;
}

/// A client of the top run answers a question of the second run below it.
async fn answers_for_a_grandchild(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    agent(&client, json!([]), json!({"name": "helper"})).await;
    agent(&client, json!([]), json!({"name": "middle", "subagents": [{"agent": "helper"}]})).await;
    let lead = agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "middle"}]})).await;
    let text = "[delegate=middle [delegate=helper [approval=send it] [tokens=1]] [tokens=1]] [tokens=30]";
    let program = with(sdk, client.base(), json!({"text": text, "agentId": lead})).await;
    let (messages, received) = final_messages(program).await;
    assert_eq!(received.iter().filter(|got| got["approval"].is_string()).count(), 1);
    let answer = &messages[1];
    assert_eq!(answer["metadata"]["status"], "completed", "{answer}");
    let calls = answer["parts"].as_array().unwrap().iter().filter(|part| part["toolCallId"].is_string());
    let states: Vec<_> = calls.map(|call| (call["type"].as_str().unwrap(), call["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("dynamic-tool", "output-available"), ("dynamic-tool", "output-available")]);
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

/// A failure is an error in the client, and earlier text stays. So do calls of unknown tools.
async fn fails(sdk: &str, mut deployment: Deployment) {
    let client = deployment.client();
    let text = "[call=scripted__nothing {\"a\":1}] [call=nothing] [tokens=4] [think] [fail]";
    let (_, end) = talks(sdk, client.base(), text).await.rest().await;
    assert!(end["error"].as_str().unwrap().contains("as [fail] directed"), "{end}");
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
    version_6_answers_for_a_grandchild: "ai6", answers_for_a_grandchild, embedded;
    version_7_answers_for_a_grandchild: "ai7", answers_for_a_grandchild, scaled_out;
    the_hook_of_react_answers_for_a_grandchild: "react", answers_for_a_grandchild, embedded;
    the_hook_of_react_answers_for_a_grandchild_scaled_out: "react", answers_for_a_grandchild, scaled_out;
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

/// The transport reconnects after its last chunk without help of the page.
#[tokio::test]
async fn the_transport_that_counts_chunks_loses_nothing_scaled_out() {
    let mut deployment = Deployment::scaled_out();
    let (messages, received) = shown_after_breaks("workflow", &mut deployment).await;
    assert!(!received.iter().any(|got| got["resumed"].is_u64()), "{received:?}");
    is_the_history(&deployment.client(), "workflow", messages).await;
}

/// The transport only appends, so it keeps the text of a dead worker. No text of either attempt is missing or repeated.
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
    let attempt =
        parts.iter().position(|part| part["type"] == "data-attempt").expect("the client receives the new attempt");
    let (before, after) = parts.split_at(attempt);
    let mut shown_texts = texts(before);
    let taken_back = shown_texts.pop().unwrap();
    shown_texts.extend(texts(after));
    let history = history(&client, "c").await;
    assert_eq!(shown_texts, texts(history[1]["parts"].as_array().unwrap()));
    // The scripted model repeats its text in the second attempt.
    assert!(!taken_back.is_empty() && shown_texts.last().unwrap().starts_with(taken_back), "{taken_back}");
}

fn texts(parts: &[Value]) -> Vec<&str> {
    parts.iter().filter(|part| part["type"] == "text").map(|part| part["text"].as_str().unwrap()).collect()
}
