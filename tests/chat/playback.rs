//! A server that plays a run's events back as a test needs them, also in ways that a real one cannot be made to.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Mutex, Notify, mpsc},
};

const RUN: &str = "01900000-0000-7000-8000-000000000002";

/// What stands in a stream where it goes on only when an answer has come.
pub const ANSWER: &str = "answer";

/// Plays one stream per connection that follows the run, and then breaks it off. Answers come too late.
pub struct Playback {
    pub base: String,
}

struct Tape {
    streams: Mutex<mpsc::Receiver<Vec<String>>>,
    answered: Notify,
}

impl Playback {
    /// Of each event, the id, the type, and the rest of its payload.
    pub async fn start(streams: &[&[(&str, &str, &str)]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (sender, receiver) = mpsc::channel(streams.len());
        for stream in streams {
            let frame = |(id, kind, rest): &(&str, &str, &str)| match *kind {
                ANSWER => ANSWER.to_owned(),
                _ => format!("data: {{\"id\":\"{id}\",\"type\":\"{kind}\"{rest}}}\n\n"),
            };
            sender.try_send(stream.iter().map(frame).collect()).unwrap();
        }
        let tape = Arc::new(Tape { streams: Mutex::new(receiver), answered: Notify::new() });
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&tape)));
            }
        });
        Self { base }
    }
}

async fn serve(socket: TcpStream, tape: Arc<Tape>) {
    let mut socket = BufReader::new(socket);
    let path = read_request(&mut socket).await;
    let head = "connection: close\r\n";
    if path == "/healthz" {
        let _ = socket.write_all(format!("HTTP/1.1 200 OK\r\n{head}content-length: 0\r\n\r\n").as_bytes()).await;
    } else if path.contains("/approvals/") {
        let problem = r#"{"code":"already_decided","detail":"It is denied already."}"#;
        let answer = format!("HTTP/1.1 409 Conflict\r\n{head}content-type: application/problem+json\r\n\r\n{problem}");
        let _ = socket.write_all(answer.as_bytes()).await;
        tape.answered.notify_one();
    } else {
        let head = format!("HTTP/1.1 200 OK\r\n{head}content-type: text/event-stream\r\nx-run-id: {RUN}\r\n\r\n");
        let _ = socket.write_all(head.as_bytes()).await;
        let frames = tape.streams.lock().await.recv().await.unwrap_or_default();
        for frame in frames {
            match frame.as_str() {
                ANSWER => tape.answered.notified().await,
                frame => socket.write_all(frame.as_bytes()).await.unwrap_or(()),
            }
        }
    }
}

/// Reads a request with its body; answers its path.
async fn read_request(socket: &mut BufReader<TcpStream>) -> String {
    let mut head = Vec::new();
    while !head.last().is_some_and(|line: &String| line.trim().is_empty()) {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        head.push(line);
    }
    let length =
        head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    socket.read_exact(&mut vec![0; length.unwrap_or(0)]).await.unwrap();
    head[0].split(' ').nth(1).unwrap().to_owned()
}
