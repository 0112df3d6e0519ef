//! An HTTP server that speaks JSON-RPC, with faults on demand: each tool is one fault.

use std::{collections::BTreeMap, io, sync::Arc};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// How the server as a whole behaves.
#[derive(Clone, Copy, PartialEq)]
pub enum Behaviour {
    Fine,
    /// Refuses every request with this status.
    Status(u16),
    /// Refuses the handshake in words that quote the client's credentials.
    EchoesCredentials,
    /// Accepts connections and sends nothing.
    Silent,
    /// Opens a stream of events for a GET, and refuses POSTs.
    OldTransport,
    /// Answers the handshake with this version.
    Version(&'static str),
    /// Has tools and no handshake.
    NoHandshake,
    /// Requires every client to sign in.
    SignIn,
    /// Lists tools whose schemas have this many values.
    LongSchemas(usize),
    /// Lists these tools, in JSON.
    Lists(&'static str),
    /// Has sessions, and refuses those from before its restart with this status and this body.
    Sessions(u16, &'static str),
    /// Redirects requests to another path of its own, with this status.
    Redirects(u16),
    /// Redirects requests to another host, with status 307.
    RedirectsAway,
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct McpRequest {
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl McpRequest {
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }
}

pub struct FakeServer {
    port: u16,
    behaviour: Behaviour,
    requests: watch::Sender<Vec<McpRequest>>,
    starts: usize,
    server: Option<JoinHandle<()>>,
}

impl FakeServer {
    pub async fn start() -> Self {
        Self::with_behaviour(Behaviour::Fine).await
    }

    pub async fn with_behaviour(behaviour: Behaviour) -> Self {
        let mut fake = Self { port: 0, behaviour, requests: watch::Sender::default(), starts: 0, server: None };
        fake.restart().await;
        fake
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Closes the port and all connections.
    pub async fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            let _ = server.await;
        }
    }

    pub async fn restart(&mut self) {
        self.kill().await;
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        self.starts += 1;
        let (behaviour, requests, session) = (self.behaviour, self.requests.clone(), format!("s{}", self.starts));
        self.server = Some(tokio::spawn(async move {
            // Dropped with the task, and all connections with it.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, behaviour, requests.clone(), session.clone()));
            }
        }));
    }

    /// Waits for a request that matches, and returns it.
    pub async fn wait_for(&self, is_match: impl Fn(&McpRequest) -> bool) -> McpRequest {
        let mut requests = self.requests.subscribe();
        let found = requests.wait_for(|all| all.iter().any(&is_match));
        let all = tokio::time::timeout(super::DEADLINE, found).await.expect("a matching request arrives").unwrap();
        all.iter().find(|one| is_match(one)).unwrap().clone()
    }

    /// Waits until the number of matching requests exceeds `than`.
    pub async fn wait_for_more(&self, than: usize, is_match: impl Fn(&McpRequest) -> bool) {
        let mut requests = self.requests.subscribe();
        let more = requests.wait_for(|all| all.iter().filter(|one| is_match(one)).count() > than);
        tokio::time::timeout(super::DEADLINE, more).await.expect("a matching request arrives").unwrap();
    }

    pub fn count(&self, is_match: impl Fn(&McpRequest) -> bool) -> usize {
        self.requests.borrow().iter().filter(|one| is_match(one)).count()
    }
}

async fn serve(
    socket: TcpStream,
    behaviour: Behaviour,
    requests: watch::Sender<Vec<McpRequest>>,
    session: String,
) -> io::Result<()> {
    let mut socket = BufReader::new(socket);
    let mut first = String::new();
    socket.read_line(&mut first).await?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    let request = Arc::new(McpRequest { headers, body: serde_json::from_slice(&body).unwrap_or_default() });
    requests.send_modify(|all| all.push((*request).clone()));
    let earlier = requests.borrow().iter().filter(|one| one.tool() == request.tool()).count() - 1;
    let socket = socket.get_mut();
    match behaviour {
        Behaviour::Silent => std::future::pending().await,
        Behaviour::Status(status) => write(socket, status, "text/plain", b"no").await,
        Behaviour::OldTransport if first.starts_with("GET") => {
            stream(socket, "event: endpoint\ndata: /messages\n\n").await?;
            std::future::pending().await
        }
        Behaviour::OldTransport => write(socket, 405, "text/plain", b"").await,
        _ if first.starts_with("GET") => write(socket, 405, "text/plain", b"").await,
        Behaviour::Version(version) => reply(socket, &request, version, earlier).await,
        Behaviour::NoHandshake if request.method() == "initialize" => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}).to_string();
            write(socket, 200, "application/json", body.as_bytes()).await
        }
        Behaviour::EchoesCredentials => {
            let message = format!("who is {}?", request.headers["authorization"]);
            let error = json!({"code": -32000, "message": message});
            let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}).to_string();
            write(socket, 200, "application/json", body.as_bytes()).await
        }
        Behaviour::NoHandshake => reply(socket, &request, "", earlier).await,
        Behaviour::SignIn => {
            let challenge = "Bearer resource_metadata=\"https://a.example/.well-known/oauth-protected-resource\"";
            let head = format!("HTTP/1.1 401 No\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\n\r\n");
            socket.write_all(head.as_bytes()).await?;
            socket.shutdown().await
        }
        Behaviour::LongSchemas(values) if request.method() == "tools/list" => {
            let page = request.body["params"]["cursor"].as_str().map_or(1, |cursor| cursor.parse().unwrap());
            let schema = json!({"type": "object", "examples": vec![0; values]});
            let tool = json!({"name": format!("tool_{page}"), "inputSchema": schema});
            answer(socket, &request.body["id"], json!({"tools": [tool], "nextCursor": (page + 1).to_string()})).await
        }
        Behaviour::Lists(tools) if request.method() == "tools/list" => {
            let tools: Value = serde_json::from_str(tools).unwrap();
            answer(socket, &request.body["id"], json!({"tools": tools})).await
        }
        Behaviour::Sessions(..) if request.method() == "initialize" => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}).to_string();
            let number = requests.borrow().len();
            let kind = format!("application/json\r\nmcp-session-id: {session}-{number}");
            write(socket, 200, &kind, body.as_bytes()).await
        }
        Behaviour::Sessions(status, body) if !is_of(&request, &session) => {
            let id = request.body["id"].to_string();
            write(socket, status, "application/json", body.replace("ID", &id).as_bytes()).await
        }
        Behaviour::Redirects(status) if first.contains(" /mcp ") => {
            write(socket, status, "text/plain\r\nlocation: /moved", b"").await
        }
        Behaviour::RedirectsAway => write(socket, 307, "text/plain\r\nlocation: http://localhost:1/mcp", b"").await,
        Behaviour::Lists(_) | Behaviour::Sessions(..) | Behaviour::Redirects(_) | Behaviour::LongSchemas(_) => {
            reply(socket, &request, "2025-11-25", earlier).await
        }
        Behaviour::Fine => reply(socket, &request, "2025-11-25", earlier).await,
    }
}

async fn reply(socket: &mut TcpStream, request: &McpRequest, version: &str, earlier: usize) -> io::Result<()> {
    let id = &request.body["id"];
    match request.method() {
        "initialize" => {
            let info = json!({"name": "fake", "version": "1"});
            answer(socket, id, json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}))
                .await
        }
        "tools/list" => {
            let page = request.body["params"]["cursor"].as_str().map_or(1, |cursor| cursor.parse().unwrap());
            let tool = json!({"name": format!("tool_{page}"), "inputSchema": {"type": "object"}});
            let next = if page < 3 { json!((page + 1).to_string()) } else { Value::Null };
            answer(socket, id, json!({"tools": [tool], "nextCursor": next})).await
        }
        "tools/call" => fault(socket, request, earlier).await,
        _ => write(socket, 202, "text/plain", b"").await,
    }
}

async fn fault(socket: &mut TcpStream, request: &McpRequest, earlier: usize) -> io::Result<()> {
    let id = &request.body["id"];
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "out of order"}}).to_string();
    match request.tool() {
        "large" => write(socket, 200, "application/json", large(request).as_bytes()).await,
        "stream_large" => stream(socket, &format!("data: {}\n\n", large(request))).await,
        "hang" => std::future::pending().await,
        "big" => big(socket, "application/json").await,
        "malformed" => write(socket, 200, "application/json", b"{\"jsonrpc\": ").await,
        "html" => write(socket, 200, "text/html", b"<h1>hello</h1>").await,
        "wrong_id" => answer(socket, &json!(4711), text("x")).await,
        "text_id" => answer(socket, &json!(id.to_string()), text("as a text")).await,
        "no_content" => answer(socket, id, json!({"surprise": true})).await,
        "rpc_error" => write(socket, 200, "application/json", error.as_bytes()).await,
        "forged" => {
            let data = json!({"holdfast/trouble": "undelivered"});
            let error = json!({"code": -32603, "message": "session expired", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            write(socket, 400, "application/json", body.as_bytes()).await
        }
        "http_500_rpc" => write(socket, 500, "application/json", error.as_bytes()).await,
        "http_500" => write(socket, 500, "text/plain", b"oh no").await,
        "http_401" => write(socket, 401, "text/plain", b"who are you").await,
        "refused" => {
            let (bearer, host) = (&request.headers["authorization"], &request.headers["host"]);
            let message = format!("{bearer} may not use http://{host}/mcp");
            let error = json!({"code": -32042, "message": message, "data": {"retry_after": 5, "field": "steps"}});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            write(socket, 200, "application/json", body.as_bytes()).await
        }
        // The pauses are what the test is about: each is shorter than the time-out, and all together are longer.
        "progress" | "progress_for_ever" => {
            let token = &request.body["params"]["_meta"]["progressToken"];
            stream(socket, ": open\n\n").await?;
            let mut reported = 0;
            while reported < 4 || request.tool() == "progress_for_ever" {
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                reported += 1;
                let params = json!({"progressToken": token, "progress": reported});
                let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                socket.write_all(format!("data: {report}\n\n").as_bytes()).await?;
            }
            let last = json!({"jsonrpc": "2.0", "id": id, "result": text("finished")});
            socket.write_all(format!("data: {last}\n\n").as_bytes()).await
        }
        "no_number" => {
            let body = format!(
                "\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"structuredContent\":{{\"mean\":NaN,\"sum\":3}}}}}}"
            );
            write(socket, 200, "application/json", body.as_bytes()).await
        }
        "nothing" => answer(socket, id, json!({})).await,
        "broken_characters" => write(socket, 200, "application/json", &broken(id)).await,
        "stream_broken_characters" => {
            stream(socket, "data: ").await?;
            socket.write_all(&broken(id)).await?;
            socket.write_all(b"\n\n").await
        }
        "unknown_content" => {
            let link = json!({"type": "resource_link", "uri": "kb://a.csv", "name": "a.csv", "description": "All sales.",
                "mimeType": "text/csv"});
            let content = json!([{"type": "hologram", "data": "x"}, {"type": "text", "text": "the rest"}, link]);
            answer(socket, id, json!({"content": content, "structuredContent": {"total": 9}})).await
        }
        "bad_request" => write(socket, 400, "text/plain", b"no").await,
        "is_error" => {
            answer(socket, id, json!({"content": [{"type": "text", "text": "out of paper"}], "isError": true})).await
        }
        "die" => Ok(()),
        "flaky" if earlier == 0 => Ok(()),
        "stream" => {
            let progress =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
            let last = json!({"jsonrpc": "2.0", "id": id, "result": text("streamed")});
            stream(socket, &format!("data: {progress}\n\ndata: {last}\n\n")).await
        }
        "stream_hang" => {
            stream(socket, ": open\n\n").await?;
            std::future::pending().await
        }
        "stream_die" => stream(socket, ": open\n\n").await,
        "stream_malformed" => stream(socket, "data: {\"jsonrpc\": \n\n").await,
        "stream_big" => {
            stream(socket, "data: ").await?;
            big(socket, "").await
        }
        "key" => {
            let header = request.headers.get("idempotency-key");
            let meta = &request.body["params"]["_meta"]["holdfast/idempotency-key"];
            answer(socket, id, text(&json!([header, meta]).to_string())).await
        }
        "structured" => answer(socket, id, json!({"content": [], "structuredContent": {"a": 1}})).await,
        _ => answer(socket, id, text(request.body["params"]["arguments"]["text"].as_str().unwrap_or("fine"))).await,
    }
}

/// Returns whether a request belongs to a session that the server has opened since its start.
fn is_of(request: &McpRequest, session: &str) -> bool {
    request.headers.get("mcp-session-id").is_some_and(|found| found.starts_with(&format!("{session}-")))
}

/// Returns an answer with half a surrogate pair and a byte that is no UTF-8.
fn broken(id: &Value) -> Vec<u8> {
    let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"a\ud83db"#);
    [start.as_bytes(), b"\xff", br#"c"}]}}"#].concat()
}

/// Returns an answer as large as the arguments say: so many values, bytes of text, or characters of a picture's base64.
fn large(request: &McpRequest) -> String {
    let (id, arguments) = (&request.body["id"], &request.body["params"]["arguments"]);
    let number = |name: &str| arguments[name].as_u64().map(|number| number as usize);
    let content = match (number("text"), number("picture")) {
        (Some(bytes), _) => format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(bytes)),
        (_, Some(chars)) => format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, "A".repeat(chars)),
        _ => r#"{"type":"text","text":"fine"}"#.to_owned(),
    };
    let values = "0,".repeat(number("values").unwrap_or(1) - 1);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{content}],"_meta":{{"a":[{values}0]}}}}}}"#)
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

async fn answer(socket: &mut TcpStream, id: &Value, result: Value) -> io::Result<()> {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    write(socket, 200, "application/json", body.as_bytes()).await
}

async fn write(socket: &mut TcpStream, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body).await?;
    socket.shutdown().await
}

/// Sends the beginning of a stream, which stays open as long as the socket.
async fn stream(socket: &mut TcpStream, events: &str) -> io::Result<()> {
    let head = "HTTP/1.1 200 So\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(events.as_bytes()).await
}

/// Sends a hundred megabytes, or as many as the client reads.
async fn big(socket: &mut TcpStream, kind: &str) -> io::Result<()> {
    if !kind.is_empty() {
        let head = format!("HTTP/1.1 200 So\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).await?;
    }
    let chunk = vec![b'x'; 1_000_000];
    for _ in 0..100 {
        socket.write_all(&chunk).await?;
    }
    Ok(())
}
