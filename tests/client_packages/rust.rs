//! The Rust client, in this process.

use std::{path::Path, process::Command};

use futures::{StreamExt, TryStreamExt};
use holdfast_client::{
    Answer, Client as HoldfastClient, ContentInput, DecisionBody, Error, Event, NewRunBody, RunEvent, Verdict, wire,
};
use serde_json::{Value, json};

use crate::{
    clients::{IN_A_FRAME, INPUT, is_exact},
    support::{Deployment, Proxy},
};

/// A run that the Rust client follows, and its events so far.
struct Reader {
    events: futures::stream::BoxStream<'static, Result<Event, Error>>,
    answer: Answer,
    received: Vec<Value>,
}

impl Reader {
    fn of(client: &HoldfastClient, run_id: &str) -> Self {
        Self { events: client.events(run_id), answer: Answer::default(), received: Vec::new() }
    }

    /// Reads up to the n-th event of a type, and returns it.
    async fn up_to_nth(&mut self, mut n: usize, kind: &str) -> Event {
        loop {
            let event = self.next().await.expect("the run has not ended");
            n -= usize::from(event.kind == kind);
            if n == 0 {
                return event;
            }
        }
    }

    async fn next(&mut self) -> Option<Event> {
        let event = self.events.try_next().await.unwrap()?;
        assert!(!matches!(event.body, RunEvent::Unknown), "the types lack {}", event.json);
        self.answer.apply(&event);
        self.received.push(event.json.clone());
        Some(event)
    }

    async fn rest(&mut self) {
        while self.next().await.is_some() {}
    }
}

#[tokio::test]
async fn the_rust_client_loses_nothing() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let client = HoldfastClient::new(&proxy.base);
    let run = client.start_run_once(&NewRunBody::of(INPUT), "once").await.unwrap().run;
    let mut reader = Reader::of(&client, &run.id);
    let RunEvent::ApprovalRequested(question) = reader.up_to_nth(1, "approval.requested").await.body else {
        panic!("the type has its body")
    };
    client.decide(&run.id, &question.approval_id, &DecisionBody::of(Verdict::Approve)).await.unwrap();
    reader.up_to_nth(5, "message.delta").await;
    deployment.kill_worker();
    // The stream reads on while there is no server, and finds the next one.
    let refused = async {
        proxy.until_refused().await;
        proxy.lead_to(deployment.client().base());
    };
    tokio::join!(reader.up_to_nth(1, "attempt.started"), refused);
    reader.up_to_nth(10, "message.delta").await;
    proxy.reset_and_again_after_text(IN_A_FRAME);
    tokio::join!(reader.rest(), proxy.until_breaks(1));
    let repeated = client.start_run_once(&NewRunBody::of(INPUT), "once").await.unwrap().run;
    assert_eq!(repeated.id, run.id, "the key makes one run");
    is_exact(&deployment.client(), &reader.received, &json!(reader.answer.text())).await;
}

#[tokio::test]
async fn the_rust_client_follows_a_takeover() {
    let mut deployment = Deployment::scaled_out();
    let client = HoldfastClient::new(deployment.client().base());
    let run = client.start_run(&NewRunBody::of("[tokens=200] [delay=20] hello")).await.unwrap().run;
    let mut reader = Reader::of(&client, &run.id);
    reader.up_to_nth(10, "message.delta").await;
    deployment.kill_worker();
    let api = deployment.client();
    reader.rest().await;
    is_exact(&api, &reader.received, &json!(reader.answer.text())).await;
}

#[tokio::test]
async fn the_rust_client_steers_decides_answers_and_cancels() {
    let mut deployment = Deployment::embedded();
    let client = HoldfastClient::new(deployment.client().base());
    let start = async |input: &str| {
        let tool = wire::ClientTool { name: "ask".to_owned(), description: None, input_schema: None };
        let body = NewRunBody { client_tools: Some(vec![tool]), ..NewRunBody::of(input) };
        client.start_run(&body).await.unwrap().run
    };

    let steered = start(r#"[call=scripted__echo {"text": "ready", "delay_ms": 5000}] [tokens=4]"#).await;
    let mut reader = Reader::of(&client, &steered.id);
    reader.up_to_nth(1, "tool_call.started").await;
    client.steer(&steered.conversation_id, "[tokens=1] shorter").await.unwrap();
    reader.up_to_nth(1, "message.steered").await;
    reader.rest().await;

    let asking = start("[approval=send it] [tokens=2] x").await;
    let mut reader = Reader::of(&client, &asking.id);
    reader.up_to_nth(1, "approval.requested").await;
    let question = client.approvals(&asking.id).await.unwrap().items.remove(0);
    let decision =
        DecisionBody { edited_input: Some(json!({"action": "send half"})), ..DecisionBody::of(Verdict::Approve) };
    client.decide(&asking.id, &question.id, &decision).await.unwrap();
    let resolved = reader.up_to_nth(1, "approval.resolved").await;
    assert_eq!(resolved.json["edited_input"], json!({"action": "send half"}));
    let again = client.decide(&asking.id, &question.id, &decision).await.unwrap_err();
    assert!(matches!(again, Error::Refused(problem) if problem.code == "already_decided"));

    let calling = start("[clienttool=Which colour?] [tokens=2] x").await;
    let mut reader = Reader::of(&client, &calling.id);
    let call = reader.up_to_nth(1, "tool_call.started").await;
    let call_id = call.json["call_id"].as_str().unwrap();
    client.return_result(&calling.id, call_id, Ok(json!({"answer": "teal"}))).await.unwrap();
    let outcome = reader.up_to_nth(1, "tool_call.completed").await;
    assert_eq!(outcome.json["output"], "{\"answer\":\"teal\"}");

    let long = start("[tokens=2000] [delay=20] x").await;
    client.cancel(&long.id).await.unwrap();
    assert_eq!(client.wait(&long.id).await.unwrap().status, wire::RunStatus::Cancelled);
}

#[tokio::test]
async fn the_rust_client_continues_an_upload_and_reads_what_is_stored() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let client = HoldfastClient::new(&proxy.base);
    let run = client.start_run(&NewRunBody::of("[tokens=2] x")).await.unwrap().run;
    client.wait(&run.id).await.unwrap();

    let contents = "a line of a file\n".repeat(160_000);
    proxy.reset_and_again_after_text("\"received\":1048576");
    let file = client.upload(contents.clone(), "größe.txt").await.unwrap();
    proxy.until_breaks(1).await;
    assert_eq!(file.name, "größe.txt");
    assert_eq!(client.download(&file.id).await.unwrap(), contents);
    let files: Vec<wire::StoredFile> = client.files().try_collect().await.unwrap();
    assert_eq!(files.len(), 1, "an upload that continues makes one file");
    client.delete_file(&file.id).await.unwrap();

    let conversations: Vec<wire::Conversation> = client.conversations().try_collect().await.unwrap();
    assert_eq!(conversations.len(), 1);
    let messages: Vec<wire::Message> = client.messages(&run.conversation_id).try_collect().await.unwrap();
    assert_eq!(
        messages.iter().map(|message| &message.role).collect::<Vec<_>>(),
        [&wire::Role::User, &wire::Role::Assistant]
    );
    assert_eq!(client.snapshot(&run.id).await.unwrap().0.status, wire::RunStatus::Completed);
    let unknown = client.events("01a20274-a660-77df-a2a7-89516bdf4c45").next().await.unwrap().unwrap_err();
    assert!(matches!(unknown, Error::Refused(problem) if problem.code == "run_not_found"));
    assert_eq!(ContentInput::from("x"), ContentInput::Text("x".to_owned()));
}

#[tokio::test]
async fn the_rust_client_is_packed_without_unpublished_crates() {
    let target = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "package",
        "--package",
        "holdfast-client",
        "--no-verify",
        "--allow-dirty",
        "--offline",
        "--target-dir",
    ]);
    cargo.arg(target.path()).current_dir(root);
    let output = tokio::task::spawn_blocking(move || cargo.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut tar = Command::new("tar");
    tar.args(["-xzf", "package/holdfast-client-0.1.0.crate"]).current_dir(target.path());
    assert!(tar.status().unwrap().success());
    let packed = target.path().join("holdfast-client-0.1.0");
    let manifest = std::fs::read_to_string(packed.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("workspace") && !manifest.contains("path = \"."), "{manifest}");
    for file in ["src/wire.rs", "README.md"] {
        let source = std::fs::read(root.join("clients/rust").join(file)).unwrap();
        assert_eq!(std::fs::read(packed.join(file)).unwrap(), source, "{file}");
    }
}
