//! Streams that the server never sends, but something between it and a client may: a client must not believe them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::TryStreamExt;
use holdfast_client::{Client as HoldfastClient, Error};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::ClientProgram;

/// Answers each connection with the next of its answers, the last one for ever, and then closes it cleanly.
struct FaultyServer {
    base: String,
    /// The cursors of the requests so far; `none` for a request without one.
    cursors: Arc<Mutex<Vec<String>>>,
}

impl FaultyServer {
    async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let cursors: Arc<Mutex<Vec<String>>> = Arc::default();
        let received = Arc::clone(&cursors);
        tokio::spawn(async move {
            let answers = Arc::new(answers);
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer_with_next(connection, Arc::clone(&answers), Arc::clone(&received)));
            }
        });
        Self { base, cursors }
    }
}

/// Answers the request of a connection. A client may also open one without a request.
async fn answer_with_next(mut connection: TcpStream, answers: Arc<Vec<String>>, cursors: Arc<Mutex<Vec<String>>>) {
    let Some(head) = request_of(&mut connection).await else { return };
    let cursor = head.lines().find_map(|line| line.strip_prefix("last-event-id: "));
    let number = {
        let mut cursors = cursors.lock().unwrap();
        cursors.push(cursor.unwrap_or("none").to_owned());
        cursors.len() - 1
    };
    let answer = answers.get(number).or(answers.last()).unwrap();
    // A client that has read enough may have hung up.
    let _ = connection.write_all(answer.as_bytes()).await;
    let _ = connection.shutdown().await;
}

/// Returns the head of the request in lower case; `None` for a connection without one.
async fn request_of(connection: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await.ok()?);
    }
    Some(String::from_utf8(request).unwrap().to_lowercase())
}

fn stream(frames: &[String]) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nretry: 20\n\n";
    format!("{head}{}", frames.concat())
}

fn event(id: &str, kind: &str, base: Option<&str>) -> Value {
    let mut event = json!({"id": id, "run_id": "r", "type": kind, "at": "2026-11-27T00:00:00.000Z"});
    if let Some(base) = base {
        event["base"] = base.into();
    }
    if kind == "message.delta" {
        event["message_id"] = "m".into();
        event["text"] = format!("{id} ").into();
    }
    event
}

fn frame(event: &Value) -> String {
    format!("id: {}\nevent: {}\ndata: {event}\n\n", event["id"].as_str().unwrap(), event["type"].as_str().unwrap())
}

/// Each client, by the name of its program and its parameter.
const PROGRAMS: &[(&str, &str)] =
    &[("holdfast-python", "sync"), ("holdfast-python", "async"), ("holdfast-typescript", "native")];

#[tokio::test]
async fn a_clean_end_a_gap_and_a_repetition_are_no_events() {
    let log = [
        event("0-1", "run.queued", Some("0-0")),
        event("1-1", "attempt.started", Some("0-1")),
        event("1-2", "message.delta", None),
        event("1-3", "message.delta", None),
        event("1-4", "message.delta", None),
        event("2-1", "attempt.started", Some("1-2")),
        event("2-2", "run.completed", None),
    ];
    let frames: Vec<String> = log.iter().map(frame).collect();
    let is_away = "HTTP/1.1 503 Away\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
    let half_a_frame = frames[4][..frames[4].len() - 1].to_owned();
    let answers = vec![
        stream(&frames[..2]),
        is_away,
        stream(&[frames[2].clone(), frames[4].clone()]),
        stream(&[frames[3].clone(), half_a_frame]),
        stream(&[frames[3].clone(), frames[4].clone()]),
        stream(&frames[4..6]),
        stream(&frames[6..]),
    ];
    let cursors = ["0-0", "1-1", "1-1", "1-2", "1-3", "1-3", "2-1"];
    for (name, client) in PROGRAMS {
        let server = FaultyServer::start(answers.clone()).await;
        let program = ClientProgram::start(name, &server.base, json!({"client": client, "run_id": "r"})).await;
        let (received, end) = program.rest().await;
        assert_eq!((received.as_slice(), end), (log.as_slice(), json!("1-2 ")), "{name} {client}");
        assert_eq!(*server.cursors.lock().unwrap(), cursors, "{name} {client}");
    }
    let server = FaultyServer::start(answers).await;
    let events = HoldfastClient::new(&server.base).events("r");
    let received: Vec<Value> = events.map_ok(|event| event.json).try_collect().await.unwrap();
    assert_eq!(received, log);
    assert_eq!(*server.cursors.lock().unwrap(), cursors);
}

#[tokio::test]
async fn a_client_gives_up_with_its_cursor_and_never_silently() {
    let first = stream(&[frame(&event("0-1", "run.queued", Some("0-0")))]);
    let is_away = "HTTP/1.1 503 Away\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
    let answers = vec![first, is_away];
    for (name, client) in PROGRAMS {
        let server = FaultyServer::start(answers.clone()).await;
        let parameters = json!({"client": client, "run_id": "r", "patience": 1});
        let (received, end) = ClientProgram::start(name, &server.base, parameters).await.rest().await;
        assert_eq!((received.len(), end), (1, json!({"lost_after": "0-1"})), "{name} {client}");
    }
    let server = FaultyServer::start(answers).await;
    let client = HoldfastClient::new(&server.base).with_patience(Duration::from_secs(1));
    let lost = client.events("r").try_for_each(async |_| Ok(())).await.unwrap_err();
    assert!(matches!(lost, Error::ConnectionLost { cursor: Some(cursor), .. } if cursor.to_string() == "0-1"));
}

#[tokio::test]
async fn a_server_without_the_next_event_is_reported() {
    let answers = vec![stream(&[frame(&event("1-5", "message.delta", None))])];
    for (name, client) in PROGRAMS {
        let server = FaultyServer::start(answers.clone()).await;
        let parameters = json!({"client": client, "run_id": "r"});
        let (received, end) = ClientProgram::start(name, &server.base, parameters).await.rest().await;
        assert!(received.is_empty() && end["broken"].is_string(), "{name} {client}: {end}");
    }
    let server = FaultyServer::start(answers).await;
    let broken = HoldfastClient::new(&server.base).events("r").try_for_each(async |_| Ok(())).await.unwrap_err();
    assert!(matches!(broken, Error::BrokenLog { .. }));
    assert_eq!(server.cursors.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_page_instead_of_a_stream_is_a_refusal() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>Sign in</p>".to_owned();
    for (name, client) in PROGRAMS {
        let server = FaultyServer::start(vec![page.clone()]).await;
        let parameters = json!({"client": client, "run_id": "r"});
        let (_, end) = ClientProgram::start(name, &server.base, parameters).await.rest().await;
        assert_eq!(end, json!({"refused": "not_a_stream"}), "{name} {client}");
        assert_eq!(server.cursors.lock().unwrap().len(), 1);
    }
    let server = FaultyServer::start(vec![page]).await;
    let refused = HoldfastClient::new(&server.base).events("r").try_for_each(async |_| Ok(())).await.unwrap_err();
    assert!(matches!(refused, Error::NoStream));
}

#[tokio::test]
async fn an_answer_that_breaks_in_its_body_is_requested_again() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let broken = format!("{head}content-length: 1000\r\n\r\n{{\"run\":");
    let accepted = format!("{head}\r\n{{\"run\":{{\"id\":\"r\"}}}}");
    let end = stream(&[
        frame(&event("0-1", "run.queued", Some("0-0"))),
        frame(&event("1-1", "attempt.started", Some("0-1"))),
        frame(&event("1-2", "run.completed", None)),
    ]);
    for (name, client) in PROGRAMS {
        let server = FaultyServer::start(vec![broken.clone(), accepted.clone(), end.clone()]).await;
        let parameters = json!({"client": client, "input": "hi", "key": "once"});
        let (received, _) = ClientProgram::start(name, &server.base, parameters).await.rest().await;
        assert_eq!(received.len(), 3, "{name} {client}");
        assert_eq!(*server.cursors.lock().unwrap(), ["none", "none", "0-0"], "{name} {client}");
    }
    let server = FaultyServer::start(vec![broken, format!("{head}\r\na file")]).await;
    assert_eq!(HoldfastClient::new(&server.base).download("f").await.unwrap(), "a file");
}

#[tokio::test]
async fn a_refusal_without_the_end_of_its_body_is_known_by_its_status() {
    let head = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 10000000\r\n\r\n";
    let endless = "x".repeat(1 << 20);
    for body in ["{\"code\":", &endless] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let answer = format!("{head}{body}");
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    if request_of(&mut connection).await.is_some() {
                        let _ = connection.write_all(answer.as_bytes()).await;
                        // The connection stays open until the client closes it.
                        let _ = connection.read_u8().await;
                    }
                });
            }
        });
        let client = HoldfastClient::new(&base);
        let refused = client.events("r").try_for_each(async |_| Ok(())).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(problem) if problem.status == 404 && problem.code == "http_404"));
    }
}
