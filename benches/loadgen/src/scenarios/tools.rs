//! The overhead of a tool call: the time from the model's last delta to the next model request, without the time of the
//! tool's server.
//! The server runs in this process, so one clock measures both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::client::Adapter;
use crate::stats::Latency;

#[derive(Args)]
pub struct ToolsArgs {
    /// Runs in total.
    #[arg(long, default_value_t = 60)]
    n: usize,
    /// Runs in flight.
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    /// Calls of each run, one after the other.
    #[arg(long, default_value_t = 10)]
    calls: usize,
}

/// Time that the server took for each call, by the call's idempotency key.
type ServerTimes = Arc<Mutex<HashMap<String, Duration>>>;

pub async fn run(adapter: &Arc<Adapter>, args: ToolsArgs) -> Result<Value> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp/rpc", listener.local_addr()?);
    let times = ServerTimes::default();
    tokio::spawn(accept(listener, times.clone()));
    let definition = json!({
        "name": "bench", "model": {"provider": "scripted"}, "limits": {"max_tool_calls": args.calls, "max_steps": args.calls + 1},
        "mcp_servers": [{"name": "kb", "transport": "rpc", "url": url}],
    });
    let agent = adapter.post_json("/v1/agents", definition).await?;
    let agent = agent["id"].as_str().context("no agent id in the answer")?.to_owned();
    let message: Arc<str> = format!("[tokens=1] [delay=0] {}", "[call=kb__count] ".repeat(args.calls)).into();
    let (overhead, all) = (Arc::new(Latency::default()), Arc::new(Latency::default()));
    let (mut running, mut started, mut completed, mut first_error) = (JoinSet::new(), 0, 0, None);
    // One run first, so that the connection to the server exists.
    one_run(adapter, &agent, &message, &times, &Latency::default(), &Latency::default()).await?;
    while started < args.n || !running.is_empty() {
        while started < args.n && running.len() < args.concurrency {
            let (adapter, agent, message, times) = (adapter.clone(), agent.clone(), message.clone(), times.clone());
            let (overhead, all) = (overhead.clone(), all.clone());
            running.spawn(async move { one_run(&adapter, &agent, &message, &times, &overhead, &all).await });
            started += 1;
        }
        match running.join_next().await {
            Some(Ok(Ok(()))) => completed += 1,
            Some(Ok(Err(error))) => first_error = Some(format!("{error:#}")),
            Some(Err(error)) => first_error = Some(error.to_string()),
            None => {}
        }
    }
    Ok(json!({
        "scenario": "tools", "concurrency": args.concurrency, "overhead": overhead.summary(), "call": all.summary(),
        "completed": completed, "failed": args.n - completed, "gaps": 0, "duplicates": 0, "first_error": first_error,
    }))
}

async fn one_run(
    adapter: &Adapter,
    agent: &str,
    message: &str,
    times: &ServerTimes,
    overhead: &Latency,
    all: &Latency,
) -> Result<()> {
    let mut run = adapter.prepare(message).await?;
    run.set("prep", agent);
    let connection = adapter.connect().await?;
    let mut stream = adapter.start(connection, &mut run).await?;
    let (mut asked_at, mut call, mut ended) = (None, None, false);
    let mut problem = None;
    while !ended {
        let more = stream
            .read(|event| match event.name {
                b"tool_call.delta" => asked_at = Some(Instant::now()),
                b"tool_call.started" => {
                    let data: Value = serde_json::from_slice(event.data).unwrap_or_default();
                    call = data["call_id"].as_str().map(str::to_owned);
                }
                b"step.started" => {
                    if let (Some(asked_at), Some(call)) = (asked_at.take(), call.take()) {
                        let took = asked_at.elapsed();
                        match times.lock().expect("no panic while held").remove(&call) {
                            Some(server) => {
                                all.record(took);
                                overhead.record(took.saturating_sub(server));
                            }
                            None => problem = Some(format!("{call} was never made")),
                        }
                    }
                }
                b"run.completed" => ended = true,
                b"run.failed" | b"run.cancelled" => {
                    problem = Some(String::from_utf8_lossy(event.data).into_owned());
                    ended = true;
                }
                _ => {}
            })
            .await?;
        if !more {
            break;
        }
    }
    match problem {
        Some(problem) => anyhow::bail!(problem),
        None if ended => Ok(()),
        None => anyhow::bail!("the stream ended early"),
    }
}

async fn accept(listener: TcpListener, times: ServerTimes) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        tokio::spawn(serve(socket, times.clone()));
    }
}

/// Serves JSON-RPC as plain POSTs; the one tool answers at once.
async fn serve(socket: TcpStream, times: ServerTimes) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut length, mut key) = (0, String::new());
        loop {
            let mut line = String::new();
            if socket.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "idempotency-key" => key = value.trim().to_owned(),
                _ => {}
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        let received = Instant::now();
        let request: Value = serde_json::from_slice(&body).ok()?;
        let result = match request["method"].as_str()? {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "kb", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}),
            _ => json!({"content": [{"type": "text", "text": "1"}]}),
        };
        let body = match request.get("id") {
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
            None => String::new(),
        };
        let status = if body.is_empty() { "202 Accepted" } else { "200 OK" };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        times.lock().expect("no panic while held").insert(key, received.elapsed());
        socket.get_mut().write_all((head + &body).as_bytes()).await.ok()?;
    }
}
