//! Tests against real servers: servers of other projects, and our fakes with faults on demand.
#![allow(clippy::unwrap_used)]

mod fake;
mod http_faults;
mod large_answers;
mod lifecycle;
mod offered;
mod others;
mod repairs;
mod resources;
mod scopes;
mod secrets;
mod starting;
mod stdio_faults;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use clap::Parser;
use holdfast_shared::{
    agent::{McpServer, Secret, ServerScope, Transport},
    config::ToolsConfig,
    tool::ToolError,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Children, Mcp, McpCall, ServerUser, output};
use crate::signs_of_life::SignsOfLife;

/// Longest time of anything that should succeed, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Parser)]
struct ToolFlags {
    #[command(flatten)]
    tools: ToolsConfig,
}

/// Returns the connections of a test, with settings such as `--mcp-idle-ms=10`.
fn mcp(settings: &[&str]) -> Arc<Mcp> {
    let defaults = [
        "test",
        "--mcp-connect-ms=60000",
        "--mcp-http-connect-ms=60000",
        "--mcp-timeout-ms=60000",
        "--mcp-wait-ms=60000",
        "--tool-retry-ms=1",
    ];
    let applies = |setting: &&&str| {
        let name = setting.split('=').next().unwrap();
        !settings.iter().any(|own| own.starts_with(name))
    };
    let all: Vec<&str> = defaults.iter().filter(applies).copied().chain(settings.iter().copied()).collect();
    // The test's own user can read the test's files.
    let own = rustix::process::geteuid().as_raw().to_string();
    let config = ToolsConfig { mcp_user: Some(own), ..ToolFlags::parse_from(all).tools };
    Mcp::new(&config, Arc::new(Children::new(&config, None).unwrap()))
}

fn server(transport: Transport) -> McpServer {
    McpServer {
        name: "test".into(),
        transport,
        scope: ServerScope::Owner,
        timeout_ms: None,
        retries: None,
        retry_delay_ms: None,
        caller: false,
        caller_header: None,
        instructions: true,
    }
}

fn stdio(command: &[String]) -> McpServer {
    server(Transport::Stdio {
        command: command[0].clone(),
        args: command[1..].to_vec(),
        env: BTreeMap::new(),
        cwd: None,
    })
}

fn http(url: &str) -> McpServer {
    server(Transport::Http { url: url.into(), auth: None, headers: BTreeMap::new() })
}

fn rpc(url: &str) -> McpServer {
    server(Transport::Rpc { url: url.into(), auth: None, headers: BTreeMap::new() })
}

/// The fake server on standard input and output.
fn fake_stdio(arguments: &[&str]) -> McpServer {
    let command = ["python3", "-c", include_str!("fake.py")].iter().chain(arguments);
    stdio(&command.map(|part| (*part).to_owned()).collect::<Vec<_>>())
}

/// Returns a run of this owner, always in one conversation.
fn user(owner: &str) -> ServerUser {
    ServerUser {
        owner: owner.into(),
        conversation_id: Uuid::nil(),
        counted_as: owner.into(),
        signs_of_life: SignsOfLife::default(),
    }
}

fn secret(text: &str) -> Secret {
    serde_json::from_value(json!(text)).unwrap()
}

/// Makes one call, without its own limit, that must not be repeated.
async fn call(mcp: &Arc<Mcp>, server: &McpServer, tool: &str, input: Value) -> Result<String, ToolError> {
    call_with(mcp, server, tool, input, |_| {}).await
}

async fn call_with(
    mcp: &Arc<Mcp>,
    server: &McpServer,
    tool: &str,
    input: Value,
    change: impl FnOnce(&mut McpCall<'_>),
) -> Result<String, ToolError> {
    let input: Map<String, Value> = serde_json::from_value(input).unwrap();
    let mut call =
        McpCall { tool, input: &input, key: "key-1", limit: None, user: &user("ann"), caller: None, repeatable: false };
    change(&mut call);
    tokio::time::timeout(DEADLINE, mcp.call(server, &call)).await.unwrap().map(|output| output::in_words(output.parts))
}

/// Waits for something that sends no notification, such as the end of a child's child.
async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the condition holds in time");
}

/// Returns the code of a call that fails.
async fn code(mcp: &Arc<Mcp>, server: &McpServer, tool: &str) -> String {
    call(mcp, server, tool, json!({})).await.unwrap_err().code
}

async fn tool_names(mcp: &Arc<Mcp>, server: &McpServer) -> Vec<String> {
    let listing = tokio::time::timeout(DEADLINE, mcp.tools(server, &user("ann"))).await.unwrap().unwrap();
    listing.tools.iter().map(|tool| tool.name.clone()).collect()
}
