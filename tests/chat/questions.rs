//! Questions of runs in the terminal client, and the lines that answer them.

use serde_json::{Value, json};

use super::{
    Terminal, pipe,
    playback::{ANSWER, Playback},
};
use crate::support::{Client, Embedded, Holdfast, until};

const APPROVE: &str = "Approve? [y/N/reason] ";
const ANSWER_IT: &str = "Answer? [empty declines] ";

/// Starts a server and a terminal of the user ann that is ready for a message.
fn begin(embedded: &Embedded) -> (Holdfast, Client, Terminal) {
    let mut holdfast = embedded.start();
    let mut terminal = Terminal::interactive(&holdfast.base());
    terminal.wait_for("> ");
    let client = holdfast.client().user("ann");
    (holdfast, client, terminal)
}

async fn only_run(client: &Client) -> String {
    let runs = client.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    runs["items"][0]["id"].as_str().unwrap().to_owned()
}

/// Returns the decisions in the order of the questions.
async fn decisions(client: &Client) -> Vec<(String, Option<String>)> {
    let approvals = client.get(&format!("/v1/runs/{}/approvals", only_run(client).await)).await.unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let decided = approvals["items"].as_array().unwrap().iter();
    decided.map(|approval| (text(&approval["status"]).unwrap(), text(&approval["reason"]))).collect()
}

#[tokio::test]
async fn yes_approves_exactly_what_is_shown() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [approval=send it]\n");
    let printed = terminal.wait_for(APPROVE);
    assert!(
        printed.contains("scripted__approval needs approval") && printed.contains(r#"{"action":"send it"}"#),
        "{printed}"
    );
    terminal.type_in("y\n");
    let printed = terminal.wait_for("> ");
    for line in [
        "[scripted__approval is approved]",
        r#"[calling scripted__approval {"action":"send it"}]"#,
        "[scripted__approval answered after ",
    ] {
        assert!(printed.contains(line), "{line} is missing: {printed}");
    }
    assert_eq!(decisions(&client).await, [("approved".to_owned(), None)]);
    assert_eq!(client.wait_for_run(&only_run(&client).await).await["status"], "completed");
}

#[tokio::test]
async fn questions_come_one_after_the_other_and_anything_but_yes_denies() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [parallel] [approval=one] [approval=two]\n");
    let printed = terminal.wait_for(APPROVE);
    assert!(printed.contains(r#"{"action":"one"}"#) && !printed.contains(r#"{"action":"two"}"#), "{printed}");
    terminal.type_in("not on a Sunday\n");
    let printed = terminal.wait_for(APPROVE);
    assert!(printed.contains("[scripted__approval is denied: not on a Sunday]"), "{printed}");
    assert!(printed.contains(r#"{"action":"two"}"#), "{printed}");
    terminal.type_in("\n");
    terminal.wait_for("> ");
    let denied = |reason: Option<&str>| ("denied".to_owned(), reason.map(str::to_owned));
    assert_eq!(decisions(&client).await, [denied(Some("not on a Sunday")), denied(None)]);
}

#[tokio::test]
async fn a_question_that_is_answered_elsewhere_is_closed() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [approval]\n");
    terminal.wait_for(APPROVE);
    let run = only_run(&client).await;
    let approvals = client.get(&format!("/v1/runs/{run}/approvals")).await.unwrap();
    let path = format!("/v1/runs/{run}/approvals/{}", approvals["items"][0]["id"].as_str().unwrap());
    client.post(&path, json!({"decision": "deny", "reason": "by phone"})).await.unwrap();
    terminal.wait_for("[scripted__approval is denied: by phone]");
    terminal.wait_for("[this question is no longer open]");
    terminal.wait_for("> ");
    // The next line is a message again.
    terminal.type_in("[tokens=2] y\n");
    terminal.wait_for("This is ");
    terminal.wait_for("> ");
    assert_eq!(client.wait_for_run(&run).await["status"], "completed");
}

#[tokio::test]
async fn ctrl_c_at_a_question_cancels_the_run() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [approval]\n");
    terminal.wait_for(APPROVE);
    terminal.type_in("\u{3}");
    terminal.wait_for("[cancelling; Ctrl-C again quits]");
    terminal.wait_for("[cancelled; ");
    terminal.wait_for("> ");
    assert_eq!(decisions(&client).await[0].0, "cancelled");
    assert_eq!(client.wait_for_run(&only_run(&client).await).await["status"], "cancelled");
}

#[tokio::test]
async fn a_line_is_the_answer_of_the_clients_tool_and_an_empty_one_declines() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [clienttool=Which colour?] [clienttool=And why?]\n");
    let printed = terminal.wait_for(ANSWER_IT);
    assert!(printed.contains("scripted__clienttool asks: Which colour?"), "{printed}");
    terminal.type_in("dark blue\n");
    let printed = terminal.wait_for(ANSWER_IT);
    assert!(printed.contains(": dark blue]") && printed.contains("And why?"), "{printed}");
    terminal.type_in("\n");
    terminal.wait_for("declined (tool_failed)]");
    terminal.wait_for("> ");
    let calls = client.get(&format!("/v1/runs/{}/tool_calls", only_run(&client).await)).await.unwrap();
    assert_eq!(calls["items"][0]["output"], "dark blue");
    assert_eq!(calls["items"][1]["error"]["message"], "declined");
}

#[tokio::test]
async fn a_line_typed_before_a_question_is_the_next_message() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [call=scripted__echo {\"text\":\"x\",\"delay_ms\":1000}] [approval]\n");
    terminal.wait_for("[calling scripted__echo");
    terminal.type_in("y\n");
    terminal.wait_for(APPROVE);
    terminal.type_in("no\n");
    terminal.wait_for("[scripted__approval is denied]");
    terminal.wait_for("> ");
    let sent_message = until("the message was sent", || async {
        let runs = client.get("/v1/runs").await.unwrap();
        (runs["items"].as_array().unwrap().len() == 2).then(|| runs["items"][0]["conversation_id"].clone())
    });
    let path = format!("/v1/conversations/{}/messages", sent_message.await.as_str().unwrap());
    let messages = client.get(&path).await.unwrap();
    assert!(messages["items"].as_array().unwrap().iter().any(|message| message["content"] == "y"), "{messages}");
}

#[tokio::test]
async fn an_answer_reaches_a_server_that_was_away() {
    let port = test_servers::free_port();
    let embedded = Embedded::new().with("HOLDFAST_ADDR", format!("127.0.0.1:{port}"));
    let (holdfast, _, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [approval]\n");
    terminal.wait_for(APPROVE);
    holdfast.kill();
    terminal.wait_for("reconnecting");
    // The question is still open.
    terminal.wait_for(APPROVE);
    terminal.type_in("y\n");
    let mut holdfast = embedded.start();
    terminal.wait_for("[scripted__approval is approved]");
    terminal.wait_for("> ");
    assert_eq!(decisions(&holdfast.client().user("ann")).await[0].0, "approved");
}

#[tokio::test]
async fn a_terminal_whose_input_ends_leaves_the_run_waiting() {
    let embedded = Embedded::new();
    let (_holdfast, client, mut terminal) = begin(&embedded);
    terminal.type_in("[tokens=1] [approval]\n");
    terminal.wait_for(APPROVE);
    terminal.type_in("\u{4}");
    terminal.wait_for("-H 'x-user: ann' -d '{\"decision\":\"approve\"}'");
    let status = until("it has quit", || std::future::ready(terminal.child.try_wait().unwrap())).await;
    assert_eq!(status.code(), Some(1));
    assert_eq!(client.run(&only_run(&client).await).await["status"], "waiting");
}

#[tokio::test]
async fn in_a_pipe_a_run_that_asks_is_left_waiting() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let asking = "[tokens=1] [parallel] [approval=send it] [clienttool=Which colour?]\n[tokens=2] never sent\n";
    let (stdout, stderr, status) = pipe(&holdfast.base(), asking);
    assert_eq!((stdout.as_str(), status), ("", Some(1)), "{stderr}");
    let run = only_run(&client).await;
    assert!(stderr.contains(&format!("[run {run} waits for an answer]")), "{stderr}");
    assert!(stderr.contains(r#"{"action":"send it"}"#) && stderr.contains("Which colour?"), "{stderr}");
    assert_eq!(client.run(&run).await["status"], "waiting");
    // The printed command works.
    let commands: Vec<&str> = stderr.lines().filter(|line| line.starts_with("curl ")).collect();
    assert_eq!(commands.len(), 2, "{stderr}");
    for command in commands {
        let answer = std::process::Command::new("sh").args(["-c", &format!("{command} -s")]).output().unwrap();
        let run: Value = serde_json::from_slice(&answer.stdout).unwrap();
        assert!(run["status"].is_string(), "{command}: {run}");
    }
    assert_eq!(client.wait_for_run(&run).await["status"], "completed");
}

const BEGIN: [(&str, &str, &str); 3] = [
    (
        "0-1",
        "run.queued",
        r#","base":"0-0","conversation_id":"01900000-0000-7000-8000-000000000001","input_message_id":"01900000-0000-7000-8000-000000000001","message_id":"01900000-0000-7000-8000-000000000002""#,
    ),
    ("1-1", "attempt.started", r#","attempt":1,"base":"0-1","reason":"claimed""#),
    (
        "1-2",
        "approval.requested",
        r#","approval_id":"01900000-0000-7000-8000-000000000003","call_id":"c","kind":"unknown_outcome","name":"kb__pay","input":{"sum":5},"expires_at":"2026-11-30T08:30:00.000Z""#,
    ),
];
const END: [(&str, &str, &str); 2] = [
    (
        "2-1",
        "approval.resolved",
        r#","base":"1-2","approval_id":"01900000-0000-7000-8000-000000000003","call_id":"c","decision":"denied","reason":"paid""#,
    ),
    ("2-2", "run.completed", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_reported() {
    let [first, second, question] = BEGIN;
    let [resolved, completed] = END;
    let server = Playback::start(&[&[first, second, question, ("", ANSWER, ""), resolved, completed]]).await;
    let mut terminal = Terminal::interactive(&server.base);
    terminal.wait_for("> ");
    terminal.type_in("pay\n");
    let printed = terminal.wait_for(APPROVE);
    assert!(printed.contains("may have taken effect") && printed.contains(r#"{"sum":5}"#), "{printed}");
    terminal.type_in("y\n");
    let printed = terminal.wait_for("> ");
    assert!(printed.contains("[another client has answered already; the first answer counts]"), "{printed}");
    assert!(printed.contains("[kb__pay is denied: paid]") && !printed.contains("no longer open"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_was_resolved_while_the_connection_was_lost_is_not_asked() {
    let server = Playback::start(&[&BEGIN, &END]).await;
    let mut terminal = Terminal::interactive(&server.base);
    terminal.wait_for("> ");
    terminal.type_in("pay\n");
    let printed = terminal.wait_for("> ");
    assert!(printed.contains("[kb__pay is denied: paid]") && !printed.contains(APPROVE), "{printed}");
}
