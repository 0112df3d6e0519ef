//! An MCP server of the tests, as JSON-RPC over plain POST. A test decides what each call does, and when.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};

use super::TIMEOUT;

/// A server with the tools `count` and `look`, which take an optional `note`. The test answers the calls, unless the server
/// was started by `answering_at_once`.
pub struct ToolServer {
    pub url: String,
    /// Number of calls that took effect.
    effects: Arc<AtomicUsize>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    authorizations: Arc<Mutex<Vec<String>>>,
}

/// A call that has reached the server and has had no effect yet.
pub struct Arrival {
    pub tool: String,
    pub arguments: Value,
    /// The header `Idempotency-Key`.
    pub key: String,
    /// The header `X-Caller`.
    pub caller: String,
    pub meta: Value,
    effects: Arc<AtomicUsize>,
    answer: oneshot::Sender<Value>,
}

impl ToolServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp/rpc", listener.local_addr().unwrap());
        let (sender, arrivals) = mpsc::unbounded_channel();
        let effects = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&effects);
        let authorizations = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&authorizations);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, sender.clone(), Arc::clone(&counter), Arc::clone(&received)));
            }
        });
        Self { url, effects, arrivals, authorizations }
    }

    /// Starts a server that counts and answers each call by itself.
    pub async fn answering_at_once() -> Self {
        Self::answering(|_| {}).await
    }

    /// Starts a server that counts and answers each call by itself, after `note`.
    pub async fn answering(mut note: impl FnMut(&Arrival) + Send + 'static) -> Self {
        let mut server = Self::start().await;
        let (_, none) = mpsc::unbounded_channel();
        let mut arrivals = std::mem::replace(&mut server.arrivals, none);
        tokio::spawn(async move {
            while let Some(arrival) = arrivals.recv().await {
                note(&arrival);
                arrival.take_effect();
                arrival.answer("counted");
            }
        });
        server
    }

    /// Starts a server that answers each call by itself with this content.
    pub async fn returning(content: Value) -> Self {
        let mut server = Self::start().await;
        let (_, none) = mpsc::unbounded_channel();
        let mut arrivals = std::mem::replace(&mut server.arrivals, none);
        tokio::spawn(async move {
            while let Some(arrival) = arrivals.recv().await {
                arrival.take_effect();
                arrival.answer_with(content.clone());
            }
        });
        server
    }

    /// Returns the server's entry in an agent's definition, under the name `kb`.
    pub fn describe(&self) -> Value {
        json!({"name": "kb", "transport": "rpc", "url": self.url})
    }

    /// Waits for the next call that reaches the server.
    pub async fn arrival(&mut self) -> Arrival {
        let arrival = tokio::time::timeout(TIMEOUT, self.arrivals.recv()).await;
        arrival.expect("no call has reached the server").unwrap()
    }

    pub fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }

    /// Returns the `Authorization` headers of all requests so far.
    pub fn authorizations(&self) -> Vec<String> {
        self.authorizations.lock().unwrap().clone()
    }

    /// Returns whether a call waits for the test.
    pub fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }
}

impl Arrival {
    /// Performs the effect of the call.
    pub fn take_effect(&self) {
        self.effects.fetch_add(1, Ordering::SeqCst);
    }

    /// Answers with an error of JSON-RPC.
    pub fn refuse(self, code: i64, message: &str) {
        let _ = self.answer.send(json!({"error": {"code": code, "message": message}}));
    }

    pub fn answer(self, text: &str) {
        self.answer_with(json!([{"type": "text", "text": text}]));
    }

    /// Answers with content of any kind, such as pictures.
    pub fn answer_with(self, content: Value) {
        let _ = self.answer.send(json!({"content": content}));
    }
}

async fn serve(
    socket: TcpStream,
    arrivals: mpsc::UnboundedSender<Arrival>,
    effects: Arc<AtomicUsize>,
    authorizations: Arc<Mutex<Vec<String>>>,
) {
    let mut socket = BufReader::new(socket);
    while let Some((CallHeaders { key, caller }, request)) = read_request(&mut socket, &authorizations).await {
        let tool = |name: &str| {
            json!({"name": name, "description": name, "inputSchema":
            {"type": "object", "properties": {"note": {"type": "string"}}}})
        };
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "kb", "version": "1"}}),
            "tools/list" => json!({"tools": [tool("count"), tool("look")]}),
            "tools/call" => {
                let (answer, answer_receiver) = oneshot::channel();
                let arrival = Arrival {
                    tool: request["params"]["name"].as_str().unwrap().to_owned(),
                    arguments: request["params"]["arguments"].clone(),
                    key,
                    caller,
                    meta: request["params"]["_meta"].clone(),
                    effects: Arc::clone(&effects),
                    answer,
                };
                let _ = arrivals.send(arrival);
                match answer_receiver.await {
                    Ok(result) => result,
                    // The test has dropped the call, so the server never responds.
                    Err(_) => return std::future::pending().await,
                }
            }
            _ => json!({}),
        };
        let body = match request.get("id") {
            Some(id) if result.get("error").is_some() => {
                json!({"jsonrpc": "2.0", "id": id, "error": result["error"]}).to_string()
            }
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
            None => String::new(),
        };
        let status = if body.is_empty() { "202 Accepted" } else { "200 OK" };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        if socket.get_mut().write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The headers of a request that tests check.
#[derive(Default)]
struct CallHeaders {
    key: String,
    caller: String,
}

async fn read_request(
    socket: &mut BufReader<TcpStream>,
    authorizations: &Mutex<Vec<String>>,
) -> Option<(CallHeaders, Value)> {
    let (mut length, mut headers) = (0, CallHeaders::default());
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => authorizations.lock().unwrap().push(value.trim().to_owned()),
            "idempotency-key" => headers.key = value.trim().to_owned(),
            "x-caller" => headers.caller = value.trim().to_owned(),
            _ => {}
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    Some((headers, serde_json::from_slice(&body).unwrap()))
}
