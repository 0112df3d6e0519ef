//! The examples: each is started and used, while connections break and the server is killed.

use std::process::Stdio;

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};
use test_servers::{Example, ExampleProgram};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::Command,
    sync::mpsc,
    task::spawn_blocking,
};

use crate::{
    client_packages::{shown, talks_through},
    clients::{IN_A_FRAME, INPUT, is_exact, survives},
    support::{ClientProgram, Deployment, Proxy},
};

async fn installed(name: &'static str) -> ExampleProgram {
    spawn_blocking(move || ExampleProgram::install(name)).await.unwrap()
}

/// Starts the server of an example, which finds Holdfast at this address.
async fn start(program: ExampleProgram, arguments: &'static [&'static str], holdfast: &str, more: &str) -> Example {
    let (holdfast, more) = (holdfast.to_owned(), more.to_owned());
    let environment = move || Example::start(&program, arguments, &[("HOLDFAST_URL", &holdfast), ("REPLY_URL", &more)]);
    spawn_blocking(environment).await.unwrap()
}

#[tokio::test]
async fn a_stream_through_the_fastapi_proxy_loses_nothing() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let program = installed("fastapi-proxy").await;
    let arguments = &["-m", "uvicorn", "main:app", "--port", "PORT", "--log-level", "warning"];
    let example = start(program, arguments, &proxy.base, "").await;
    let parameters = json!({"client": "sync", "input": INPUT, "key": "once"});
    let program = ClientProgram::start("holdfast-python", &example.base, parameters).await;
    // The approval is of the proxy's own user.
    let (received, end) = survives(program, &proxy, &mut deployment, IN_A_FRAME, "demo").await;
    is_exact(&deployment.client().user("demo"), &received, &end).await;
}

#[tokio::test]
async fn a_chat_through_the_nextjs_application_shows_the_stored_messages() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let program = installed("nextjs-chat").await;
    let program = spawn_blocking(move || {
        program.build();
        program
    });
    let arguments = &["node_modules/next/dist/bin/next", "start", "--port", "PORT", "--hostname", "127.0.0.1"];
    let example = start(program.await.unwrap(), arguments, &proxy.base, "").await;
    let page = reqwest::get(format!("{}/?chat=c", example.base)).await.unwrap().text().await.unwrap();
    assert!(page.contains("Loading…"), "{page}");
    let messages = talks_through(&example.base, &proxy, &mut deployment).await;
    let answer = reqwest::get(format!("{}/api/chat/c/messages", example.base)).await.unwrap();
    assert_eq!(shown(messages), shown(answer.json().await.unwrap()));
    let text = "[tokens=60] [delay=50] hello";
    let browser = ClientProgram::start("browser", &example.base, json!({"chat": "b", "text": text})).await;
    let (_, lines) = browser.rest().await;
    let stored = reqwest::get(format!("{}/api/chat/b/messages", example.base)).await.unwrap();
    let stored: Value = stored.json().await.unwrap();
    let texts = stored.as_array().unwrap().iter().map(|message| {
        let parts = message["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
        format!("{}: {}", message["role"].as_str().unwrap(), parts.collect::<String>())
    });
    assert_eq!(lines, json!(texts.collect::<Vec<String>>()), "a reloaded page shows the answer");
}

#[tokio::test]
async fn the_terminal_chat_shows_an_answer_and_asks_before_a_call() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let program = installed("terminal-chat").await;
    let picture = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
    std::fs::write(picture.path(), "a line").unwrap();
    let mut child = Command::new(&program.interpreter)
        .arg(program.folder.join("main.py"))
        .arg(&proxy.base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut shown = Vec::new();
    input.write_all(format!("/file {}\n", picture.path().display()).as_bytes()).await.unwrap();
    input.write_all(b"[approval=send it] [tokens=200] [delay=20] x\n").await.unwrap();
    output.read_until(b'?', &mut shown).await.unwrap();
    input.write_all(b"y\n").await.unwrap();
    // A word of the answer, after which its connection and its server go.
    while !String::from_utf8_lossy(&shown).contains("beacon13") {
        assert!(output.read_until(b' ', &mut shown).await.unwrap() > 0, "{}", String::from_utf8_lossy(&shown));
    }
    deployment.kill_worker();
    proxy.until_refused().await;
    proxy.lead_to(deployment.client().base());
    input.write_all(b"/quit\n").await.unwrap();
    output.read_to_end(&mut shown).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    let conversation_id = shown.lines().last().unwrap().trim_start_matches("> ");
    let client = deployment.client();
    let messages = client.get(&format!("/v1/conversations/{conversation_id}/messages")).await.unwrap();
    assert_eq!(messages["items"][0]["attachments"].as_array().unwrap().len(), 1);
    let text = messages["items"][1]["content"].as_str().unwrap();
    let last = shown.rsplit("[again]\n").next().unwrap();
    assert!(last.contains(text), "the terminal shows {shown}, and the server has {text}");
}

#[tokio::test]
async fn the_bot_answers_a_repeated_webhook_with_one_run() {
    let mut deployment = Deployment::embedded();
    let proxy = Proxy::before(deployment.client().base()).await;
    let (sender, mut replies) = mpsc::channel::<Value>(8);
    let take = async |State(sender): State<mpsc::Sender<Value>>, Json(reply): Json<Value>| {
        sender.send(reply).await.unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let reply_url = format!("http://{}/reply", listener.local_addr().unwrap());
    let messenger = Router::new().route("/reply", post(take)).with_state(sender);
    tokio::spawn(async { axum::serve(listener, messenger).await.unwrap() });
    let bot = start(installed("webhook-bot").await, &["main.mjs"], &proxy.base, &reply_url).await;
    let http = reqwest::Client::new();
    let webhook = async |id: &str, text: &str| {
        let message = json!({"chat": "harbour", "id": id, "text": text});
        http.post(format!("{}/webhook", bot.base)).json(&message).send().await.unwrap().status()
    };
    assert_eq!(webhook("m1", "[tokens=100] [delay=20] hello").await, 202);
    deployment.kill_worker();
    proxy.until_refused().await;
    proxy.lead_to(deployment.client().base());
    assert_eq!(webhook("m1", "[tokens=100] [delay=20] hello").await, 202);
    let first = replies.recv().await.unwrap();
    assert_eq!(first, replies.recv().await.unwrap(), "each webhook gets the answer");
    assert_eq!(webhook("m2", "[tokens=1] again").await, 202);
    let second = replies.recv().await.unwrap();
    assert_eq!((second["id"].as_str(), second["text"].as_str()), (Some("m2"), Some("This ")));
    assert_eq!(webhook("", "x").await, 400);
    let runs = deployment.client().get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    assert_eq!(runs["items"][0]["conversation_id"], runs["items"][1]["conversation_id"], "a chat is a session");
}
