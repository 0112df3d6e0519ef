//! Sharing and lifetime of connections.

use super::{
    fake::{Behaviour, FakeServer, McpRequest},
    *,
};

fn handshakes(fake: &FakeServer) -> usize {
    fake.count(|request: &McpRequest| request.method() == "initialize")
}

#[tokio::test]
async fn concurrent_first_callers_share_one_connection() {
    let fake = FakeServer::start().await;
    let (mcp, server) = (mcp(&[]), rpc(&fake.url()));
    let users = (0..20).map(|_| call(&mcp, &server, "echo", json!({})));
    assert!(futures::future::join_all(users).await.iter().all(Result::is_ok));
    assert_eq!(handshakes(&fake), 1);
    // Other limits make no other server, but another name does.
    let same_server = McpServer { timeout_ms: Some(9_999), ..server.clone() };
    call(&mcp, &same_server, "echo", json!({})).await.unwrap();
    assert_eq!(handshakes(&fake), 1);
    let renamed = McpServer { name: "other".into(), ..server };
    call(&mcp, &renamed, "echo", json!({})).await.unwrap();
    assert_eq!(handshakes(&fake), 2);
}

#[tokio::test]
async fn an_unreachable_server_is_not_tried_again_at_once() {
    let fake = FakeServer::with_behaviour(Behaviour::Status(503)).await;
    let (mcp, server) = (mcp(&[]), rpc(&fake.url()));
    let ann = user("ann");
    let users = (0..5).map(|_| mcp.tools(&server, &ann));
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
async fn an_attempt_survives_its_dropped_first_caller() {
    let fake = FakeServer::start().await;
    let (mcp, server, ann) = (mcp(&[]), rpc(&fake.url()), user("ann"));
    tokio::select! {
        biased;
        _ = mcp.tools(&server, &ann) => panic!("it takes several requests"),
        _ = fake.wait_for(|request| request.method() == "initialize") => {}
    }
    assert_eq!(tool_names(&mcp, &server).await.len(), 3);
    assert_eq!(handshakes(&fake), 1);
}

#[tokio::test]
async fn a_trial_lists_the_tools_on_a_connection_of_its_own_and_closes_it() {
    let fake = FakeServer::start().await;
    let (mcp, server) = (mcp(&[]), http(&fake.url()));
    let lists = || fake.count(|request| request.method() == "tools/list");
    call(&mcp, &server, "echo", json!({})).await.unwrap();
    let pages = lists();
    for trials in 1..=2 {
        mcp.try_out(&server, DEADLINE).await.unwrap();
        assert_eq!((handshakes(&fake), lists()), (1 + trials, (1 + trials) * pages));
    }
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("gate");
    std::fs::write(&noted, "").unwrap();
    let gated = fake_stdio(&["gated", &noted.display().to_string()]);
    mcp.try_out(&gated, DEADLINE).await.unwrap();
    let pid: u32 = std::fs::read_to_string(folder.path().join("gate.pid")).unwrap().parse().unwrap();
    until(async || !std::path::Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn a_start_beyond_the_time_of_a_trial_is_its_failure_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let (mcp, server) = (mcp(&[]), fake_stdio(&["gated", &gate.display().to_string()]));
    let error = mcp.try_out(&server, Duration::from_millis(50)).await.unwrap_err();
    assert!(error.to_string().contains("within 50 ms while connecting"), "{error}");
    until(async || folder.path().join("gate.pid").exists()).await;
    std::fs::write(&gate, "").unwrap();
    let pid = std::fs::read_to_string(folder.path().join("gate.pid")).unwrap();
    until(async || !std::path::Path::new(&format!("/proc/{pid}")).exists()).await;
}
