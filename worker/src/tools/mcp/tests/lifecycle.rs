//! Who shares a connection, and for how long it lives.

use super::{
    fake::{Behaviour, FakeServer, McpRequest},
    *,
};

fn handshakes(fake: &FakeServer) -> usize {
    fake.count(|request: &McpRequest| request.method() == "initialize")
}

#[tokio::test]
async fn concurrent_first_users_share_one_connection() {
    let fake = FakeServer::start().await;
    let (mcp, server) = (mcp(&[]), rpc(&fake.url()));
    let users = (0..20).map(|_| call(&mcp, &server, "echo", json!({})));
    assert!(futures::future::join_all(users).await.iter().all(Result::is_ok));
    assert_eq!(handshakes(&fake), 1);
    // Other limits are no other server, another name is.
    let patient = McpServer { timeout_ms: Some(9_999), ..server.clone() };
    call(&mcp, &patient, "echo", json!({})).await.unwrap();
    assert_eq!(handshakes(&fake), 1);
    let renamed = McpServer { name: "other".into(), ..server };
    call(&mcp, &renamed, "echo", json!({})).await.unwrap();
    assert_eq!(handshakes(&fake), 2);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_left_alone_for_a_while() {
    let fake = FakeServer::with_behaviour(Behaviour::Status(503)).await;
    let (mcp, server) = (mcp(&[]), rpc(&fake.url()));
    let users = (0..5).map(|_| mcp.tools(&server));
    assert!(futures::future::join_all(users).await.iter().all(Result::is_err));
    assert_eq!(code(&mcp, &server, "echo").await, "server_unavailable");
    assert_eq!(handshakes(&fake), 1);
}

#[tokio::test]
async fn an_unused_connection_is_closed_and_replaced_at_the_next_use() {
    let (mcp, server) = (mcp(&["--mcp-idle-ms=300"]), fake_stdio(&[]));
    let pids = call(&mcp, &server, "pids", json!({})).await.unwrap();
    let pids: Vec<u32> = serde_json::from_str(&pids).unwrap();
    until(async || !std::path::Path::new(&format!("/proc/{}", pids[0])).exists()).await;
    assert_eq!(call(&mcp, &server, "echo", json!({"text": "again"})).await.unwrap(), "again");
    mcp.close().await;
}

#[tokio::test]
async fn the_limit_is_the_calls_or_the_servers_or_the_configured_one() {
    let fake = FakeServer::start().await;
    let (mcp, server) = (mcp(&["--mcp-timeout-ms=40"]), rpc(&fake.url()));
    let slow = call(&mcp, &server, "hang", json!({})).await.unwrap_err();
    assert!(slow.message.contains("within 40 ms"), "{}", slow.message);
    let server = McpServer { timeout_ms: Some(30), ..server };
    let slow = call(&mcp, &server, "hang", json!({})).await.unwrap_err();
    assert!(slow.message.contains("within 30 ms"), "{}", slow.message);
    let limit = Duration::from_millis(20);
    let slow = call_with(&mcp, &server, "hang", json!({}), |call| call.limit = Some(limit)).await.unwrap_err();
    assert!(slow.message.contains("within 20 ms"), "{}", slow.message);
}

#[tokio::test]
async fn a_dropped_first_user_does_not_spoil_the_attempt() {
    let fake = FakeServer::start().await;
    let (mcp, server) = (mcp(&[]), rpc(&fake.url()));
    tokio::select! {
        biased;
        _ = mcp.tools(&server) => panic!("it takes several requests"),
        _ = fake.wait_for(|request| request.method() == "initialize") => {}
    }
    assert_eq!(tool_names(&mcp, &server).await.len(), 3);
    assert_eq!(handshakes(&fake), 1);
}
