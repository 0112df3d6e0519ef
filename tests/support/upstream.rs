//! A local model provider that speaks OpenAI's streaming protocol and that of its embeddings, and keeps the requests.

use std::sync::{Arc, Mutex};

use holdfast_shared::time_zone::without_line;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// A provider that answers each request with the same words, unless it refuses it. It may call a tool first.
pub struct TestUpstream {
    pub base_url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    /// One permit for each word that the provider may send.
    words: Arc<Semaphore>,
    /// The model for whose vectors the provider answers with status 503.
    away: Arc<Mutex<Option<&'static str>>>,
}

impl TestUpstream {
    pub async fn start(words: &'static [&'static str]) -> Self {
        Self::serving(None, None, Semaphore::MAX_PERMITS, words).await
    }

    /// Starts a provider that calls a tool, and sends a word after its outcome only after `permit_words`. JSON arguments follow the
    /// tool's name after a space, if there are any. Further tools follow in lines of their own, each for a call after the outcome
    /// before; `{file}` in their arguments is the file that the last outcome names, and `{result}` the call in its mark of a cut.
    pub async fn calling(tool: &'static str, words: &'static [&'static str]) -> Self {
        Self::serving(None, Some(tool), 0, words).await
    }

    /// Starts a provider that sends a word only after `permit_words`.
    pub async fn with_permits(words: &'static [&'static str]) -> Self {
        Self::serving(None, None, 0, words).await
    }

    /// Permits the provider to send this number of words.
    pub fn permit_words(&self, words: usize) {
        self.words.add_permits(words);
    }

    /// Lets the provider answer requests for vectors of this model with status 503.
    pub fn set_away(&self, model: Option<&'static str>) {
        *self.away.lock().unwrap() = model;
    }

    /// Starts a provider that refuses, for good, each request with this text in its last message, or in a text for a vector.
    pub async fn refusing(text: &'static str, words: &'static [&'static str]) -> Self {
        Self::serving(Some(text), None, Semaphore::MAX_PERMITS, words).await
    }

    async fn serving(
        refused: Option<&'static str>,
        tool: Option<&'static str>,
        at_once: usize,
        words: &'static [&'static str],
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let word_permits = Arc::new(Semaphore::new(at_once));
        let away = Arc::new(Mutex::new(None));
        let (seen_requests, permits, seen_away) = (Arc::clone(&requests), Arc::clone(&word_permits), Arc::clone(&away));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (refused, permits) = ((refused, *seen_away.lock().unwrap()), Arc::clone(&permits));
                tokio::spawn(serve(socket, refused, tool, words, permits, Arc::clone(&seen_requests)));
            }
        });
        Self { base_url, requests, words: word_permits, away }
    }

    /// Returns the bodies of the requests so far, without the lines that tell the date.
    pub fn requests(&self) -> Vec<Value> {
        self.dated_requests().into_iter().map(undated).collect()
    }

    /// Returns the bodies of the requests so far.
    pub fn dated_requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn undated(mut body: Value) -> Value {
    let messages = body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    for message in messages.filter(|message| message["role"] == "user") {
        match &mut message["content"] {
            Value::String(text) => *text = without_line(text).to_owned(),
            Value::Array(parts) => {
                if let Some(Value::String(text)) = parts.first_mut().and_then(|part| part.get_mut("text")) {
                    *text = without_line(text).to_owned();
                }
                // The line alone is the first part of a message of files.
                parts.retain(|part| part["text"] != "");
            }
            _ => {}
        }
    }
    body
}

async fn serve(
    socket: TcpStream,
    (refused, away): (Option<&str>, Option<&str>),
    tool: Option<&str>,
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
    if let Some(texts) = body["input"].as_array() {
        let is_refused = |text: &Value| refused.is_some_and(|refused| text.as_str().unwrap().contains(refused));
        let status = if away.is_some_and(|model| body["model"] == model) {
            Some("503 Service Unavailable")
        } else {
            texts.iter().any(is_refused).then_some("400 Bad Request")
        };
        if let Some(status) = status {
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
            let _ =
                socket.get_mut().write_all(format!("{head}{{\"error\": {{\"message\": \"no\"}}}}").as_bytes()).await;
            return;
        }
        let vectors = texts.iter().enumerate().map(|(index, text)| {
            json!({"object": "embedding", "index": index, "embedding": meaning_of(text.as_str().unwrap())})
        });
        let usage = json!({"prompt_tokens": texts.len(), "total_tokens": texts.len()});
        let answer =
            json!({"object": "list", "model": body["model"], "data": vectors.collect::<Vec<_>>(), "usage": usage});
        requests.lock().unwrap().push(body);
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", answer.len());
        let _ = socket.get_mut().write_all(format!("{head}\r\nconnection: close\r\n\r\n{answer}").as_bytes()).await;
        return;
    }
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    if refused.is_some_and(|refused| last.contains(refused)) {
        let answer = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"error\": {\"message\": \"no\"}}";
        let _ = socket.get_mut().write_all(answer.as_bytes()).await;
        return;
    }
    let outcomes: Vec<&Value> = body["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").collect();
    let file = outcomes
        .last()
        .and_then(|outcome| outcome["content"].as_str()?.rsplit_once(", file "))
        .and_then(|(_, id)| id.get(..36));
    let call = tool.and_then(|tools| tools.lines().nth(outcomes.len()));
    let cut = outcomes
        .last()
        .and_then(|outcome| outcome["content"].as_str()?.split_once("read_result with {\"id\": \""))
        .and_then(|(_, id)| Some(id.split_once('"')?.0));
    let call = call.map(|call| call.replace("{file}", file.unwrap_or_default()));
    let call = call.map(|call| call.replace("{result}", cut.unwrap_or_default()));
    requests.lock().unwrap().push(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    if let Some(call) = call {
        let (name, arguments) = call.split_once(' ').unwrap_or((&call, "{}"));
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": 0, "id": "c", "type": "function", "function": function});
        let chunks = [
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}),
        ];
        let answer = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
        let _ = socket.get_mut().write_all(format!("{head}{answer}data: [DONE]\n\n").as_bytes()).await;
        return;
    }
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

/// Words of one meaning.
const SYNONYMS: [&[&str]; 3] = [&["berth", "mooring"], &["costs", "price", "crowns"], &["dawn", "sunrise"]];

/// Returns a vector of the text: a dimension for each meaning, and for the other words together as many as are left.
fn meaning_of(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; 32];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match SYNONYMS.iter().position(|synonyms| synonyms.contains(&word)) {
            Some(meaning) => vector[meaning] += 4.0,
            None => {
                let sum = word.bytes().map(usize::from).sum::<usize>();
                vector[SYNONYMS.len() + sum % (32 - SYNONYMS.len())] += 1.0;
            }
        }
    }
    vector
}
