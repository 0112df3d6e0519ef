//! The terminal client, with a person and in a pipe.

mod playback;
mod questions;
mod sessions;

use std::{
    io::{BufReader, Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
};

use serde_json::Value;

use crate::support::{
    Client, Embedded, Holdfast, TIMEOUT,
    tokens::{SECRET, claims, token},
    until,
};

/// A running client in a pseudoterminal. A test can wait for its output.
struct Terminal {
    child: Child,
    printed: Receiver<u8>,
    screen_text: String,
}

impl Terminal {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, printed) = mpsc::channel();
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let sender = sender.clone();
            std::thread::spawn(move || {
                BufReader::new(stream).bytes().map_while(Result::ok).all(|byte| sender.send(byte).is_ok())
            });
        }
        Self { child, printed, screen_text: String::new() }
    }

    /// Starts a client in its own terminal, as a person does.
    fn interactive(base: &str) -> Self {
        Self::interactive_with(base, "")
    }

    fn interactive_with(base: &str, arguments: &str) -> Self {
        let program = format!("{} chat --url {base} --username ann {arguments}", env!("CARGO_BIN_EXE_holdfast"));
        Self::start(Command::new("script").args(["-qfec", &program, "/dev/null"]).env("TERM", "dumb"))
    }

    fn type_in(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until the client prints this text again; returns the output up to it.
    fn wait_for(&mut self, part: &str) -> String {
        while !self.screen_text.contains(part) {
            match self.printed.recv_timeout(TIMEOUT) {
                Ok(byte) => self.screen_text.push(byte as char),
                Err(_) => panic!("{part:?} was not printed: {}", self.screen_text),
            }
        }
        std::mem::take(&mut self.screen_text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends lines through a pipe; returns standard output and the exit status.
fn pipe(base: &str, lines: &str) -> (String, String, Option<i32>) {
    pipe_with(base, &[], lines)
}

fn pipe_with(base: &str, arguments: &[&str], lines: &str) -> (String, String, Option<i32>) {
    let mut command = Holdfast::command();
    command
        .args(["chat", "--url", base])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

async fn answers(client: &Client) -> Vec<String> {
    let runs = client.get("/v1/runs").await.unwrap();
    let mut answers = Vec::new();
    for run in runs["items"].as_array().unwrap().iter().rev() {
        let run = client.run(run["id"].as_str().unwrap()).await;
        answers.push(run["output_message"]["content"].as_str().unwrap_or("").trim_end().to_owned());
    }
    answers
}

#[tokio::test]
async fn in_a_pipe_each_line_is_a_message_and_only_answers_come_out() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let (stdout, stderr, status) = pipe(&holdfast.base(), "[tokens=3] one\n\n[tokens=4] [think] two\n");
    let printed: Vec<&str> = stdout.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let client = holdfast.client();
    assert_eq!(
        (printed, stderr.as_str(), status),
        (answers(&client).await.iter().map(String::as_str).collect(), "", Some(0))
    );
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn tool_calls_are_lines_beside_the_answer() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let calls = r#"[tokens=1] [call=scripted__echo {"text":"to\nyou"}] [call=scripted__echo {"text":5}]"#;
    let (stdout, stderr, status) = pipe(&holdfast.base(), &format!("{calls}\n"));
    assert_eq!((vec![stdout.trim_end().to_owned()], status), (answers(&holdfast.client()).await, Some(0)));
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert_eq!(lines[0], r#"[calling scripted__echo {"text":"to\nyou"}]"#);
    assert!(lines[1].starts_with("[scripted__echo answered after ") && lines[1].ends_with("ms: to you]"), "{stderr}");
    assert!(lines[2].starts_with("[scripted__echo failed after ") && lines[2].ends_with("(invalid_arguments)]"));
}

#[tokio::test]
async fn a_file_of_a_tool_is_a_line_with_its_address() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let (_, stderr, status) = pipe(&holdfast.base(), "[tokens=1] [call=scripted__draw {\"color\":\"red\"}]\n");
    let files = holdfast.client().get("/v1/files").await.unwrap();
    let id = files["items"][0]["id"].as_str().unwrap();
    let line = format!("[draw.png: {}/v1/files/{id}]", holdfast.base());
    assert!(stderr.lines().any(|printed| printed == line) && status == Some(0), "{stderr}");
}

#[test]
fn a_failed_run_in_a_pipe_is_an_exit_status() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let (_, stderr, status) = pipe(&holdfast.base(), "[tokens=4] [fail] hi\n");
    assert!(stderr.contains("run failed: ") && stderr.contains("(scripted_failure)"), "{stderr}");
    assert_eq!(status, Some(1));
}

#[tokio::test]
async fn it_asks_an_agents_questions_in_every_stream_mode() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let definition = serde_json::json!({"name": "a", "stream_mode": "messages", "system_prompt": "Be brief."});
    let made = client.post("/v1/agents", definition).await.unwrap();
    let agent = made["id"].as_str().unwrap();
    let base = holdfast.base();
    let (_, stderr, status) = pipe_with(&base, &["--agent", agent], "[tokens=1] [approval]\n");
    assert!(stderr.contains("scripted__approval") && status == Some(1), "{stderr}");
    let run = client.get("/v1/runs").await.unwrap()["items"][0].clone();
    assert_eq!((run["agent_id"].as_str(), run["status"].as_str()), (Some(agent), Some("waiting")));
}

#[test]
fn without_a_server_it_says_what_to_do() {
    let base = format!("http://127.0.0.1:{}", test_servers::free_port());
    let (stdout, stderr, status) = pipe(&base, "hi\n");
    assert!(stderr.contains(&base) && stderr.contains("holdfast") && stderr.contains("--url"), "{stderr}");
    assert_eq!((stdout.as_str(), status), ("", Some(1)));
}

#[tokio::test]
async fn it_continues_when_the_server_goes_away_and_comes_back() {
    let port = test_servers::free_port();
    let embedded = Embedded::new().with("HOLDFAST_ADDR", format!("127.0.0.1:{port}"));
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let piped = std::thread::spawn(move || pipe(&base, "[tokens=60] [delay=30] hi\n"));
    let client = holdfast.client();
    until("the answer has started", || async {
        let runs = client.get("/v1/runs").await.unwrap();
        (runs["items"][0]["status"] == "running").then_some(())
    })
    .await;
    holdfast.kill();
    let mut holdfast = embedded.start();
    let (stdout, stderr, status) = piped.join().unwrap();
    let client = holdfast.client();
    assert_eq!((vec![stdout.trim_end().to_owned()], status), (answers(&client).await, Some(0)), "{stderr}");
    assert_eq!(stdout.split_whitespace().count(), 60);
}

#[tokio::test]
async fn ctrl_c_cancels_the_run_and_then_quits() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let mut terminal = Terminal::interactive(&holdfast.base());
    terminal.wait_for("> ");
    terminal.type_in("[tokens=2000] [delay=20] hi\n");
    terminal.wait_for("scripted model");
    terminal.type_in("\u{3}");
    terminal.wait_for("cancelled");
    terminal.wait_for("> ");
    let client = holdfast.client().user("ann");
    let runs = client.get("/v1/runs").await.unwrap();
    let run = client.wait_for_run(runs["items"][0]["id"].as_str().unwrap()).await;
    assert_eq!(
        (run["status"].as_str(), run["output_message"]["status"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    terminal.type_in("[tokens=2] again\n");
    terminal.wait_for("This is ");
    terminal.wait_for("> ");
    terminal.type_in("\u{3}");
    let status = until("it has quit", || std::future::ready(terminal.child.try_wait().unwrap())).await;
    assert_eq!(status.code(), Some(130));
}

#[tokio::test]
async fn a_correction_joins_the_answer_under_way() {
    let mut holdfast = Embedded::new().start();
    let mut terminal = Terminal::interactive(&holdfast.base());
    terminal.wait_for("> ");
    terminal.type_in("[call=scripted__echo {\"text\": \"x\", \"delay_ms\": 1500}] [tokens=3] hello\n");
    terminal.wait_for("[calling scripted__echo");
    terminal.type_in("/steer [tokens=2] shorter\n");
    terminal.wait_for("[your correction is read now]");
    terminal.wait_for("\n> ");
    let client = holdfast.client().user("ann");
    assert_eq!(statuses(&client).await, ["cancelled", "completed"]);
    assert_eq!(questions(&client).await.len(), 2, "both are messages of the conversation");
}

#[tokio::test]
async fn a_correction_that_comes_too_late_is_answered_next() {
    let mut holdfast = Embedded::new().start();
    let mut terminal = Terminal::interactive(&holdfast.base());
    terminal.wait_for("> ");
    terminal.type_in("[tokens=60] [delay=20] hello\n");
    terminal.wait_for("This ");
    terminal.type_in("later [tokens=1]\n/steer [tokens=4] more\n");
    let client = holdfast.client().user("ann");
    until("all three have their answers", || async { (statuses(&client).await == ["completed"; 3]).then_some(()) })
        .await;
    assert_eq!(questions(&client).await[1..], ["[tokens=4] more", "later [tokens=1]"]);
}

/// Returns the statuses of the user's runs, newest first.
async fn statuses(client: &Client) -> Vec<String> {
    let runs = client.get("/v1/runs").await.unwrap();
    let status = |run: &Value| run["status"].as_str().unwrap().to_owned();
    runs["items"].as_array().unwrap().iter().map(status).collect()
}

/// Returns the user's messages in their only conversation, oldest first.
async fn questions(client: &Client) -> Vec<String> {
    let runs = client.get("/v1/runs").await.unwrap();
    let conversation = runs["items"][0]["conversation_id"].as_str().unwrap();
    let messages = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    let of_user = messages["items"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    of_user.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_token_identifies_the_user() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET);
    let mut holdfast = embedded.start();
    let ann = token(&claims("ann", serde_json::json!({})));
    let arguments = ["--token", &ann, "--username", "bob"];
    let (answer, notices, status) = pipe_with(&holdfast.base(), &arguments, "[tokens=3] one\n[tokens=3] two\n");
    assert_eq!(status, Some(0), "{notices}");
    assert!(!answer.is_empty() && !notices.contains(&ann), "{notices}");
    let runs = holdfast.client().token(&ann).get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    let (_, notices, status) = pipe_with(&holdfast.base(), &["--username", "bob"], "hi\n");
    assert!(status != Some(0) && notices.contains("X-User"), "{notices}");
}

#[tokio::test]
async fn a_client_without_a_token_stays_the_same_anonymous_user() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET);
    let mut holdfast = embedded.start();
    let (answer, notices, status) = pipe_with(&holdfast.base(), &[], "[tokens=3] one\n[tokens=3] two\n");
    assert_eq!((status, answer.lines().count()), (Some(0), 2), "{notices}");
}
