//! Faults of a child process.

use super::{
    fake::{Behaviour, FakeServer},
    *,
};

#[tokio::test]
async fn every_fault_has_its_code() {
    let (mcp, server) = (mcp(&["--mcp-max-bytes=1000000"]), fake_stdio(&[]));
    let faults = [
        ("big", "answer_too_large"),
        ("wrong_id", "malformed_answer"),
        ("no_content", "malformed_answer"),
        ("rpc_error", "mcp_error"),
        ("is_error", "tool_failed"),
        ("die", "connection_lost"),
    ];
    for (tool, expected) in faults {
        assert_eq!(code(&mcp, &server, tool).await, expected, "{tool}");
    }
    assert_eq!(call(&mcp, &server, "text_id", json!({})).await.unwrap(), "as a text");
    assert_eq!(call(&mcp, &server, "key", json!({})).await.unwrap(), "key-1");
    mcp.close().await;
}

#[tokio::test]
async fn a_hanging_tool_is_cancelled_and_reported() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    tool_names(&mcp, &server).await;
    let limit = Duration::from_millis(50);
    let error = call_with(&mcp, &server, "hang", json!({}), |call| call.limit = Some(limit)).await.unwrap_err();
    assert_eq!(error.code, "timeout");
    // The call returns once the server has seen the cancellation of another request.
    let cancelled = call(&mcp, &server, "wait_for_cancel", json!({})).await.unwrap();
    assert!(cancelled.parse::<u64>().is_ok(), "{cancelled}");
    mcp.close().await;
}

#[tokio::test]
async fn a_wedged_child_is_replaced_by_a_new_one() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    tool_names(&mcp, &server).await;
    let limit = Duration::from_millis(50);
    for tool in ["wedge", "echo", "echo"] {
        let outcome = call_with(&mcp, &server, tool, json!({"text": "x"}), |call| call.limit = Some(limit)).await;
        assert_eq!(outcome.unwrap_err().code, "timeout");
    }
    assert_eq!(call(&mcp, &server, "echo", json!({"text": "x"})).await.unwrap(), "x");
    mcp.close().await;
}

#[tokio::test]
async fn a_late_answer_is_dropped() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    tool_names(&mcp, &server).await;
    let limit = Duration::from_millis(50);
    let late = call_with(&mcp, &server, "late", json!({}), |call| call.limit = Some(limit));
    // The late answer arrives while the second call waits, and before the second call is answered.
    let (late, waiting) = tokio::join!(late, call(&mcp, &server, "wait_for_cancel", json!({})));
    assert_eq!(late.unwrap_err().code, "timeout");
    assert!(waiting.is_ok(), "{waiting:?}");
    mcp.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    tool_names(&mcp, &server).await;
    let input = Map::new();
    let hanging = McpCall {
        tool: "hang",
        input: &input,
        key: "k",
        limit: None,
        user: &user("ann"),
        caller: None,
        repeatable: false,
    };
    tokio::select! {
        _ = mcp.call(&server, &hanging) => panic!("it hangs"),
        // The hanging call was sent before this call is answered.
        _ = call(&mcp, &server, "echo", json!({"text": "x"})) => {}
    }
    call(&mcp, &server, "wait_for_cancel", json!({})).await.unwrap();
    mcp.close().await;
}

#[tokio::test]
async fn a_dead_child_is_replaced_at_the_next_use() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    let first = call(&mcp, &server, "pids", json!({})).await.unwrap();
    assert_eq!(code(&mcp, &server, "die").await, "connection_lost");
    let second = call(&mcp, &server, "pids", json!({})).await.unwrap();
    assert_ne!(first, second);
    mcp.close().await;
}

#[tokio::test]
async fn connecting_to_a_silent_child_times_out() {
    let (mcp, server) = (mcp(&["--mcp-connect-ms=300"]), fake_stdio(&["silent"]));
    let error = mcp.tools(&server, &user("ann")).await.unwrap_err();
    assert!(error.to_string().contains("did not answer within 300 ms while connecting"), "{error}");
    assert_eq!(error.code(), "server_unavailable");
}

#[tokio::test]
async fn a_child_that_always_exits_is_not_restarted_for_ever() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&["leaves"]));
    let code = code(&mcp, &server, "echo").await;
    assert!(["server_unavailable", "connection_lost"].contains(&code.as_str()), "{code}");
}

#[tokio::test]
async fn a_line_that_is_no_message_ends_no_call() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    assert_eq!(call(&mcp, &server, "noise", json!({})).await.unwrap(), "after the noise");
    mcp.close().await;
}

#[tokio::test]
async fn a_missing_command_is_named_with_its_user_and_the_systems_words() {
    let server = stdio(&["/nowhere/at-all".into()]);
    let error = mcp(&[]).tools(&server, &user("ann")).await.unwrap_err();
    for part in ["could not be started", "the worker's own user", "HOLDFAST_MCP_USER", "No such file or directory"] {
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.reason().contains(part), "{}", error.reason());
    }
    assert!(error.to_string().contains("/nowhere/at-all") && !error.reason().contains("nowhere"));
}

#[tokio::test]
async fn a_child_that_ends_at_once_is_explained_without_its_secrets() {
    let mut server = fake_stdio(&["exits"]);
    if let Transport::Stdio { env, .. } = &mut server.transport {
        env.insert("SECRET".into(), secret("hunter2-and-more"));
    }
    let error = mcp(&[]).tools(&server, &user("ann")).await.unwrap_err();
    let text = error.to_string();
    for part in ["exit status: 3", "first line\ncannot read the key …"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("hunter2") && !text.contains("address"), "{text}");
    assert_eq!(error.reason(), "it ended before it could be used (exit status: 3)");
}

#[tokio::test]
async fn a_child_that_hangs_at_its_start_shows_what_it_wrote() {
    let mut server = fake_stdio(&["silent"]);
    if let Transport::Stdio { env, .. } = &mut server.transport {
        env.insert("SECRET".into(), secret("hunter2-and-more"));
    }
    let (patient, mcp) = (mcp(&[]), mcp(&["--mcp-connect-ms=5000"]));
    let lines = "; the last lines of its standard error:\nloading … and a large index";
    let text = mcp.tools(&server, &user("ann")).await.unwrap_err().to_string();
    assert!(text.contains("within 5000 ms while connecting") && text.ends_with(lines), "{text}");
    let text = patient.try_out(&server, Duration::from_secs(5)).await.unwrap_err().to_string();
    assert!(text.ends_with(lines), "{text}");
    let silent = FakeServer::with_behaviour(Behaviour::Silent).await;
    let text = patient.try_out(&http(&silent.url()), Duration::from_millis(50)).await.unwrap_err().to_string();
    assert!(text.ends_with("check that it runs and speaks MCP"), "{text}");
}

#[tokio::test]
async fn an_unknown_protocol_version_is_refused() {
    let error = mcp(&[]).tools(&fake_stdio(&["old"]), &user("ann")).await.unwrap_err().to_string();
    assert!(error.contains("protocol version 1999-01-01"), "{error}");
}

#[tokio::test]
async fn a_changed_list_of_tools_is_read_again() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    assert_eq!(tool_names(&mcp, &server).await, ["echo"]);
    call(&mcp, &server, "change", json!({})).await.unwrap();
    // Lines arrive in order: with this answer the announcement has been read.
    call(&mcp, &server, "echo", json!({})).await.unwrap();
    until(async || tool_names(&mcp, &server).await == ["echo", "more"]).await;
    mcp.close().await;
}

#[tokio::test]
async fn closing_kills_the_child_and_its_children() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    let pids = call(&mcp, &server, "pids", json!({})).await.unwrap();
    let pids: Vec<u32> = serde_json::from_str(&pids).unwrap();
    assert!(pids.iter().all(|pid| runs(*pid)));
    mcp.close().await;
    until(async || !pids.iter().any(|pid| runs(*pid))).await;
    let error = mcp.tools(&server, &user("ann")).await.unwrap_err().to_string();
    assert!(error.contains("this worker is stopping"), "{error}");
}

/// Returns whether a process runs; a dead process that was not reaped does not.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
