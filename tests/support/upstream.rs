//! A local server that speaks OpenAI's streaming protocol, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Answers every request with the same words, but for those that it refuses.
pub struct Upstream {
    pub base_url: String,
    asked: Arc<Mutex<Vec<Value>>>,
    /// One for each word that may be said.
    words: Arc<Semaphore>,
}

impl Upstream {
    pub async fn start(words: &'static [&'static str]) -> Self {
        Self::serving(None, Semaphore::MAX_PERMITS, words).await
    }

    /// Says each word only when it is let.
    pub async fn holding_back(words: &'static [&'static str]) -> Self {
        Self::serving(None, 0, words).await
    }

    /// Lets it say so many words more.
    pub fn let_say(&self, words: usize) {
        self.words.add_permits(words);
    }

    /// Refuses, for good, what has this text in its last message.
    pub async fn refusing(text: &'static str, words: &'static [&'static str]) -> Self {
        Self::serving(Some(text), Semaphore::MAX_PERMITS, words).await
    }

    async fn serving(refused: Option<&'static str>, at_once: usize, words: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let may_say = Arc::new(Semaphore::new(at_once));
        let (requests, permits) = (Arc::clone(&asked), Arc::clone(&may_say));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, refused, words, Arc::clone(&permits), Arc::clone(&requests)));
            }
        });
        Self { base_url, asked, words: may_say }
    }

    /// The bodies of the requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    socket: TcpStream,
    refused: Option<&str>,
    words: &[&str],
    may_say: Arc<Semaphore>,
    asked: Arc<Mutex<Vec<Value>>>,
) {
    let mut socket = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    if refused.is_some_and(|refused| last.contains(refused)) {
        let answer = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"error\": {\"message\": \"no\"}}";
        let _ = socket.get_mut().write_all(answer.as_bytes()).await;
        return;
    }
    asked.lock().unwrap().push(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let said =
        words.iter().map(|word| json!({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]}));
    let end = [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": words.len()}}),
    ];
    let mut waiting = head.to_owned();
    for word in said {
        // What may be said at once goes out in one piece.
        let permit = match may_say.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let _ = socket.get_mut().write_all(std::mem::take(&mut waiting).as_bytes()).await;
                may_say.acquire().await.unwrap()
            }
        };
        permit.forget();
        waiting += &format!("data: {word}\n\n");
    }
    waiting += &end.map(|chunk| format!("data: {chunk}\n\n")).concat();
    waiting += "data: [DONE]\n\n";
    let _ = socket.get_mut().write_all(waiting.as_bytes()).await;
}
