//! Holdfast's own client packages: a test packs and installs each, and a program uses it while connections break and the
//! server is killed.

mod ask;
mod faults;
mod rust;

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    clients::{DEFAULT_USER, IN_A_FRAME, INPUT, is_exact, survives},
    support::{ClientProgram, Deployment, Proxy},
};

/// Checks the program of a package that starts a run and follows it.
async fn loses_nothing(name: &str, client: &str) {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let parameters = json!({"client": client, "input": INPUT, "key": "once"});
    let program = ClientProgram::start(name, &proxy.base, parameters).await;
    let (received, end) = survives(program, &proxy, &mut deployment, IN_A_FRAME, DEFAULT_USER).await;
    let client = deployment.client();
    is_exact(&client, &received, &end).await;
    let runs = client.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "the key makes one run");
}

/// Checks the events while another worker takes the run over, and the API stays.
async fn follows_a_takeover(name: &str, client: &str) {
    let mut deployment = Deployment::scaled_out();
    let base = deployment.client().base().to_owned();
    let parameters = json!({"client": client, "input": "[tokens=200] [delay=20] hello", "key": "once"});
    let mut program = ClientProgram::start(name, &base, parameters).await;
    let mut received = program.up_to_nth(10, crate::clients::is_delta).await;
    deployment.kill_worker();
    let client = deployment.client();
    let (rest, end) = program.rest().await;
    received.extend(rest);
    is_exact(&client, &received, &end).await;
    let attempts = received.iter().filter(|event| event["type"] == "attempt.started").count();
    assert_eq!(attempts, 2, "another worker has continued");
}

/// Checks the calls beside the stream. The upload loses its connection when the server has the first piece.
async fn makes_every_call(name: &str) {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let proxy = Proxy::before(client.base()).await;
    let mut program = ClientProgram::start(name, &proxy.base, json!({"calls": true})).await;
    let reports = program.up_to_nth(1, |report| report["uploads"].is_u64()).await;
    let expected = [
        json!({"type": "message.steered"}),
        json!({"edited_input": {"action": "send half"}}),
        json!({"output": "{\"answer\":\"teal\"}"}),
        json!({"status": "cancelled"}),
    ];
    assert_eq!(reports[..reports.len() - 1], expected);
    proxy.reset_and_again_after_text("\"received\":1048576");
    program.tell(json!("continue")).await;
    proxy.until_breaks(1).await;
    let (reports, _) = program.rest().await;
    let expected = [
        json!({"name": "größe.txt", "is_equal": true}),
        json!({"files": [true]}),
        json!({"conversations": 4}),
        json!({"roles": ["user", "user", "assistant"]}),
        json!({"snapshot": "completed"}),
        json!({"code": "run_not_found"}),
    ];
    assert_eq!(reports, expected);
}

#[tokio::test]
async fn the_python_client_loses_nothing() {
    loses_nothing("holdfast-python", "sync").await;
}

#[tokio::test]
async fn the_asynchronous_python_client_loses_nothing() {
    loses_nothing("holdfast-python", "async").await;
}

#[tokio::test]
async fn the_python_client_follows_a_takeover() {
    follows_a_takeover("holdfast-python", "sync").await;
}

#[tokio::test]
async fn the_python_client_makes_every_call() {
    makes_every_call("holdfast-python").await;
}

#[tokio::test]
async fn the_typescript_client_loses_nothing() {
    loses_nothing("holdfast-typescript", "native").await;
}

#[tokio::test]
async fn the_typescript_client_follows_a_takeover() {
    follows_a_takeover("holdfast-typescript", "native").await;
}

#[tokio::test]
async fn the_typescript_client_makes_every_call() {
    makes_every_call("holdfast-typescript").await;
}

#[tokio::test]
async fn the_typescript_client_watches_a_run_over_one_connection() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let run_id = client.start("[tokens=3] hello").await["run"]["id"].as_str().unwrap().to_owned();
    let program = ClientProgram::start("holdfast-typescript", client.base(), json!({"watch": run_id})).await;
    let (received, end) = program.rest().await;
    let rest = client.rest_after(&run_id, "0-0").await;
    assert_eq!(received, rest.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>());
    assert_eq!(end, json!("events"));
}

/// Returns the messages without the times, and without the duration of reasoning, which a stream cannot carry.
pub fn shown(mut messages: Value) -> Value {
    for message in messages.as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("metadata");
        for part in message["parts"].as_array_mut().unwrap() {
            part.as_object_mut().unwrap().remove("providerMetadata");
        }
    }
    messages
}

/// Talks by the transport for `useChat` at this address, which leads to the proxy, while the proxy's connections break and the
/// server is killed. Returns the messages that the client shows.
pub async fn talks_through(base: &str, proxy: &Proxy, deployment: &mut Deployment) -> Value {
    let text = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=200] [delay=20] hello"#;
    let parameters = json!({"client": "ai-sdk", "input": text});
    let mut program = ClientProgram::start("holdfast-typescript", base, parameters).await;
    let is_text = |report: &Value| report["shown"].is_u64();
    program.up_to_nth(10, is_text).await;
    proxy.reset_and_again_after_text("\"type\":\"text-delta\"");
    proxy.until_breaks(1).await;
    program.up_to_nth(10, is_text).await;
    deployment.kill_worker();
    proxy.until_refused().await;
    proxy.lead_to(deployment.client().base());
    program.up_to_nth(1, |report| report["resumed"] == true).await;
    program.up_to_nth(10, is_text).await;
    proxy.reset();
    program.rest().await.1
}

#[tokio::test]
async fn the_transport_for_the_ai_sdk_shows_the_stored_messages() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let messages = talks_through(&proxy.base, &proxy, &mut deployment).await;
    let stored = deployment.client().get("/api/chat/c/messages").await.unwrap();
    assert_eq!(shown(messages), shown(stored));
    let runs = deployment.client().get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "the tries of a message make one run");
}

#[tokio::test]
async fn the_programs_of_the_clients_page_return_the_stored_answer() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let text = "[approval=send it] [tokens=2] hello";
    let mut answers = vec![ask::ask(client.base(), text, |_, _| true).await.unwrap()];
    for (name, kind, text) in
        [("holdfast-python", "sync", text), ("holdfast-typescript", "native", text), ("holdfast-python", "async", "x")]
    {
        let program = ClientProgram::start(name, client.base(), json!({"client": kind, "ask": text})).await;
        answers.push(program.rest().await.1.as_str().unwrap().to_owned());
    }
    let runs = client.get("/v1/runs").await.unwrap();
    for (run, answer) in runs["items"].as_array().unwrap().iter().rev().zip(answers) {
        assert_eq!(client.run(run["id"].as_str().unwrap()).await["output_message"]["content"], answer);
    }
}

#[tokio::test]
async fn the_types_of_the_packages_are_those_of_the_server() {
    let mut deployment = Deployment::embedded();
    let document: Value = deployment.client().get("/openapi.json").await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut generator = Command::new("python3");
    generator.arg(root.join("clients/generate_types.py")).arg("--check").arg(file.path());
    let output = tokio::task::spawn_blocking(move || generator.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
