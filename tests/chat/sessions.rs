//! Sessions in the terminal client, and messages that the server refuses at first.

use serde_json::{Value, json};

use super::{Terminal, pipe_with, playback::Playback};
use crate::{
    extraction::documents::{DOCX, docx},
    support::{Client, Embedded},
};

const CONVERSATION: &str = r#","base":"0-0","conversation_id":"01900000-0000-7000-8000-000000000001","input_message_id":"01900000-0000-7000-8000-000000000001","message_id":"01900000-0000-7000-8000-000000000002""#;

async fn sessions(client: &Client) -> Vec<String> {
    let page = client.get("/v1/sessions").await.unwrap();
    let names = page["items"].as_array().unwrap().iter();
    names.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
}

async fn count(client: &Client, list: &str) -> usize {
    let page: Value = client.get(list).await.unwrap();
    page["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_session_continues_where_it_ended() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let mut terminal = Terminal::interactive_with(&base, "--session harbour");
    let greeting = terminal.wait_for("> ");
    assert!(greeting.contains("session harbour") && !greeting.contains("[you: "), "{greeting}");
    terminal.type_in("[tokens=2] When does it open?\n");
    terminal.wait_for("This is ");
    terminal.wait_for("> ");
    drop(terminal);
    let mut terminal = Terminal::interactive_with(&base, "--session harbour");
    let output = terminal.wait_for("> ");
    assert!(
        output.contains("[you: [tokens=2] When does it open?]") && output.contains("[answer: This is]"),
        "{output}"
    );
    terminal.type_in("[tokens=2] And when does it close?\n");
    terminal.wait_for("This is ");
    terminal.wait_for("> ");
    let client = holdfast.client().user("ann");
    assert_eq!(sessions(&client).await, ["harbour"]);
    assert_eq!((count(&client, "/v1/conversations").await, count(&client, "/v1/runs").await), (1, 2));
}

#[tokio::test]
async fn without_a_name_it_continues_in_the_users_own_session() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    for _ in 0..2 {
        let (_, stderr, status) = pipe_with(&base, &["--username", "ann"], "[tokens=1] hi\n");
        assert_eq!(status, Some(0), "{stderr}");
    }
    let client = holdfast.client().user("ann");
    assert_eq!(sessions(&client).await, ["session_ann"]);
    assert_eq!((count(&client, "/v1/conversations").await, count(&client, "/v1/runs").await), (1, 2));
    let made = client.post("/v1/agents", serde_json::json!({"name": "a"})).await.unwrap();
    let agent = made["id"].as_str().unwrap();
    let (_, stderr, status) =
        pipe_with(&base, &["--username", "ann", "--session", "tide", "--agent", agent], "[tokens=1] hi\n");
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(sessions(&client).await, ["tide", "session_ann"]);
    assert_eq!(client.get("/v1/sessions").await.unwrap()["items"][0]["agent_id"], agent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_is_reported_and_sent_once_later() {
    let begin = [
        ("0-1", "run.queued", CONVERSATION),
        ("1-1", "attempt.started", r#","attempt":1,"base":"0-1","reason":"claimed""#),
    ];
    let end = [
        ("1-2", "message.delta", r#","message_id":"01900000-0000-7000-8000-000000000002","text":"at last""#),
        ("1-3", "run.completed", ""),
    ];
    let events = [begin, end].concat();
    let server = Playback::start(&[events.as_slice()]).await;
    let mut terminal = Terminal::interactive(&server.base);
    terminal.wait_for("> ");
    server.set_away(true);
    terminal.type_in("hi\n");
    let output = terminal.wait_for("The database cannot be reached.");
    assert!(output.contains("not sent yet") && !output.contains("reconnecting"), "{output}");
    server.set_away(false);
    assert!(terminal.wait_for("at last").contains("[sent]"));
    terminal.wait_for("> ");
    let mut keys = server.keys().await;
    assert!(keys.len() > 2, "it was not tried again: {keys:?}");
    keys.dedup();
    assert_eq!(keys.len(), 1, "the same message has the same key");
}

#[tokio::test]
async fn files_go_with_the_first_message() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.md");
    std::fs::write(&path, "# Low water at six").unwrap();
    let letter = folder.path().join("letter.docx");
    std::fs::write(&letter, docx()).unwrap();
    let args = ["--username", "ann", "--file", path.to_str().unwrap(), "--file", letter.to_str().unwrap()];
    let (_, stderr, status) = pipe_with(&base, &args, "[tokens=1] one\n[tokens=1] two\n");
    assert_eq!(status, Some(0), "{stderr}");
    let client = holdfast.client().user("ann");
    let messages = client.get("/v1/sessions/session_ann/messages").await.unwrap();
    let attachments = |at: usize| messages["items"][at]["attachments"].clone();
    assert_eq!((&attachments(0)[0]["name"], &attachments(0)[1]["media_type"]), (&json!("notes.md"), &json!(DOCX)));
    assert_eq!((&messages["items"][0]["content"], attachments(2)), (&Value::from("[tokens=1] one"), Value::Null));
    let missing = folder.path().join("missing.md");
    let (_, stderr, status) = pipe_with(&base, &["--file", missing.to_str().unwrap()], "");
    assert_eq!(status, Some(1));
    assert!(stderr.contains("failed to upload") && stderr.contains("No such file"), "{stderr}");
    let program = folder.path().join("program.exe");
    std::fs::write(&program, b"MZ\x90\0").unwrap();
    let (_, stderr, _) = pipe_with(&base, &["--file", program.to_str().unwrap()], "");
    assert!(stderr.contains("HOLDFAST_FILE_TYPES does not allow"), "{stderr}");
}
