//! A local model provider that speaks OpenAI's streaming protocol, and keeps the requests.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// A provider that answers each request with the same words, unless it refuses it.
pub struct TestUpstream {
    pub base_url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    /// One permit for each word that the provider may send.
    words: Arc<Semaphore>,
}

impl TestUpstream {
    pub async fn start(words: &'static [&'static str]) -> Self {
        Self::serving(None, Semaphore::MAX_PERMITS, words).await
    }

    /// Starts a provider that sends a word only after `permit_words`.
    pub async fn with_permits(words: &'static [&'static str]) -> Self {
        Self::serving(None, 0, words).await
    }

    /// Permits the provider to send this number of words.
    pub fn permit_words(&self, words: usize) {
        self.words.add_permits(words);
    }

    /// Starts a provider that refuses, for good, each request with this text in its last message.
    pub async fn refusing(text: &'static str, words: &'static [&'static str]) -> Self {
        Self::serving(Some(text), Semaphore::MAX_PERMITS, words).await
    }

    async fn serving(refused: Option<&'static str>, at_once: usize, words: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let word_permits = Arc::new(Semaphore::new(at_once));
        let (seen_requests, permits) = (Arc::clone(&requests), Arc::clone(&word_permits));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, refused, words, Arc::clone(&permits), Arc::clone(&seen_requests)));
            }
        });
        Self { base_url, requests, words: word_permits }
    }

    /// Returns the bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    socket: TcpStream,
    refused: Option<&str>,
    words: &[&str],
    word_permits: Arc<Semaphore>,
    requests: Arc<Mutex<Vec<Value>>>,
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
    requests.lock().unwrap().push(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let chunks =
        words.iter().map(|word| json!({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]}));
    let end = [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": words.len()}}),
    ];
    let mut unsent = head.to_owned();
    for word in chunks {
        // Words that are already permitted leave in one write.
        let permit = match word_permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let _ = socket.get_mut().write_all(std::mem::take(&mut unsent).as_bytes()).await;
                word_permits.acquire().await.unwrap()
            }
        };
        permit.forget();
        unsent += &format!("data: {word}\n\n");
    }
    unsent += &end.map(|chunk| format!("data: {chunk}\n\n")).concat();
    unsent += "data: [DONE]\n\n";
    let _ = socket.get_mut().write_all(unsent.as_bytes()).await;
}
