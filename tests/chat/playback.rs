//! A server that plays prepared events of a run, also in an order that a real server cannot be made to send.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Mutex, Notify, mpsc},
};

const RUN: &str = "01900000-0000-7000-8000-000000000002";

/// Marks the position in a stream at which the server waits for an answer.
pub const ANSWER: &str = "answer";

/// A server that plays one stream for each connection and then breaks it off. It refuses answers as too late.
pub struct Playback {
    pub base: String,
    tape: Arc<Tape>,
}

struct Tape {
    streams: Mutex<mpsc::Receiver<Vec<String>>>,
    answer_arrived: Notify,
    /// Whether the server refuses messages with 503.
    is_away: AtomicBool,
    /// The idempotency keys of all messages.
    keys: Mutex<Vec<String>>,
}

impl Playback {
    /// Starts a server with these streams. An event is its id, its type, and the rest of its payload.
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
        let tape = Arc::new(Tape {
            streams: Mutex::new(receiver),
            answer_arrived: Notify::new(),
            is_away: AtomicBool::new(false),
            keys: Mutex::default(),
        });
        let served = Arc::clone(&tape);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&served)));
            }
        });
        Self { base, tape }
    }

    /// Sets whether the server refuses messages with 503.
    pub fn set_away(&self, is_away: bool) {
        self.tape.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Returns the idempotency keys of all messages, including refused ones.
    pub async fn keys(&self) -> Vec<String> {
        self.tape.keys.lock().await.clone()
    }
}

async fn serve(socket: TcpStream, tape: Arc<Tape>) {
    let mut socket = BufReader::new(socket);
    let (path, key) = read_request(&mut socket).await;
    let head = "connection: close\r\n";
    if path == "/healthz" {
        let _ = socket.write_all(format!("HTTP/1.1 200 OK\r\n{head}content-length: 0\r\n\r\n").as_bytes()).await;
    } else if path.ends_with("/history") {
        let _ = socket.write_all(format!("HTTP/1.1 200 OK\r\n{head}content-length: 2\r\n\r\n[]").as_bytes()).await;
    } else if let Some(key) = key
        && {
            tape.keys.lock().await.push(key);
            tape.is_away.load(Ordering::SeqCst)
        }
    {
        let problem = r#"{"code":"database_away","detail":"The database cannot be reached."}"#;
        let answer = format!("HTTP/1.1 503 Service Unavailable\r\n{head}retry-after: 1\r\n\r\n{problem}");
        let _ = socket.write_all(answer.as_bytes()).await;
    } else if path.contains("/approvals/") {
        let problem = r#"{"code":"already_decided","detail":"It is denied already."}"#;
        let answer = format!("HTTP/1.1 409 Conflict\r\n{head}content-type: application/problem+json\r\n\r\n{problem}");
        let _ = socket.write_all(answer.as_bytes()).await;
        tape.answer_arrived.notify_one();
    } else {
        let head = format!("HTTP/1.1 200 OK\r\n{head}content-type: text/event-stream\r\nx-run-id: {RUN}\r\n\r\n");
        let _ = socket.write_all(head.as_bytes()).await;
        let frames = tape.streams.lock().await.recv().await.unwrap_or_default();
        for frame in frames {
            match frame.as_str() {
                ANSWER => tape.answer_arrived.notified().await,
                frame => socket.write_all(frame.as_bytes()).await.unwrap_or(()),
            }
        }
    }
}

/// Reads a request with its body; returns its path and its Idempotency-Key.
async fn read_request(socket: &mut BufReader<TcpStream>) -> (String, Option<String>) {
    let mut head = Vec::new();
    while !head.last().is_some_and(|line: &String| line.trim().is_empty()) {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        head.push(line);
    }
    let field =
        |name: &str| head.iter().find_map(|line| Some(line.to_ascii_lowercase().strip_prefix(name)?.trim().to_owned()));
    let length = field("content-length:").map_or(0, |length| length.parse().unwrap());
    socket.read_exact(&mut vec![0; length]).await.unwrap();
    (head[0].split(' ').nth(1).unwrap().to_owned(), field("idempotency-key:"))
}
