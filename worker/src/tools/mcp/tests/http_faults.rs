//! Faults over HTTP, with both transports that use it.

use super::{
    fake::{Behaviour, FakeServer},
    *,
};

/// Each fault, over both transports.
#[tokio::test]
async fn every_fault_has_its_code() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    let faults = [
        ("big", "answer_too_large"),
        ("malformed", "malformed_answer"),
        ("html", "malformed_answer"),
        ("wrong_id", "malformed_answer"),
        ("no_content", "malformed_answer"),
        ("rpc_error", "mcp_error"),
        ("http_500_rpc", "mcp_error"),
        ("http_500", "mcp_error"),
        ("http_401", "unauthorized"),
        ("is_error", "tool_failed"),
        ("die", "connection_lost"),
    ];
    for (tool, expected) in faults {
        assert_eq!(code(&mcp, &http(&fake.url()), tool).await, expected, "{tool} over http");
        assert_eq!(code(&mcp, &rpc(&fake.url()), tool).await, expected, "{tool} over rpc");
    }
    for (tool, expected) in [
        ("stream_die", "connection_lost"),
        ("stream_malformed", "malformed_answer"),
        ("stream_big", "answer_too_large"),
    ] {
        assert_eq!(code(&mcp, &http(&fake.url()), tool).await, expected, "{tool}");
    }
    mcp.close().await;
}

#[tokio::test]
async fn unusual_answers_are_accepted() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for server in [http(&fake.url()), rpc(&fake.url())] {
        assert_eq!(call(&mcp, &server, "text_id", json!({})).await.unwrap(), "as a text");
        assert_eq!(call(&mcp, &server, "structured", json!({})).await.unwrap(), r#"{"a":1}"#);
        assert_eq!(tool_names(&mcp, &server).await, ["tool_1", "tool_2", "tool_3"]);
    }
    assert_eq!(call(&mcp, &http(&fake.url()), "stream", json!({})).await.unwrap(), "streamed");
}

#[tokio::test]
async fn errors_name_their_cause() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    let error = call(&mcp, &rpc(&fake.url()), "rpc_error", json!({})).await.unwrap_err();
    assert_eq!(error.message, "tool rpc_error of MCP server test: error -32603: out of order");
    let error = call(&mcp, &rpc(&fake.url()), "is_error", json!({})).await.unwrap_err();
    assert_eq!(error.message, "out of paper");
    let error = call(&mcp, &rpc(&fake.url()), "http_500", json!({})).await.unwrap_err();
    assert!(error.message.contains("HTTP 500"), "{}", error.message);
    let error = call(&mcp, &rpc("http://127.0.0.1:1/mcp"), "echo", json!({})).await.unwrap_err();
    assert_eq!(error.message, "tool echo of MCP server test could not be called: it could not be reached");
}

#[tokio::test]
async fn a_hanging_tool_is_cancelled_and_reported() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for (server, tool) in [(http(&fake.url()), "hang"), (rpc(&fake.url()), "hang"), (http(&fake.url()), "stream_hang")]
    {
        let before = fake.count(|request| request.method() == "notifications/cancelled");
        let limit = Duration::from_millis(50);
        let error = call_with(&mcp, &server, tool, json!({}), |call| call.limit = Some(limit)).await.unwrap_err();
        assert_eq!(error.code, "timeout");
        for part in [tool, "test", "50 ms", "timeout_ms", "may or may not have taken effect"] {
            assert!(error.message.contains(part), "{}", error.message);
        }
        fake.wait_for_more(before, |request| request.method() == "notifications/cancelled").await;
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for (server, tool) in [(http(&fake.url()), "hang"), (rpc(&fake.url()), "stream_hang")] {
        let dropped = {
            let input = Map::new();
            let call = McpCall {
                tool,
                input: &input,
                key: "k",
                limit: None,
                user: &user("ann"),
                caller: None,
                repeatable: false,
            };
            tokio::select! {
                _ = mcp.call(&server, &call) => panic!("it hangs"),
                request = fake.wait_for(|request| request.tool() == tool) => request.body["id"].clone(),
            }
        };
        let is_cancellation = |request: &fake::McpRequest| {
            request.method() == "notifications/cancelled" && request.body["params"]["requestId"] == dropped
        };
        fake.wait_for(is_cancellation).await;
    }
}

#[tokio::test]
async fn killing_a_server_in_mid_call_ends_the_call() {
    let mcp = mcp(&[]);
    for (make, tool) in [(http as fn(&str) -> McpServer, "hang"), (http, "stream_hang"), (rpc, "hang")] {
        let mut fake = FakeServer::start().await;
        let server = make(&fake.url());
        let killed = async {
            fake.wait_for(|request| request.tool() == tool).await;
            fake.kill().await;
        };
        let (code, ()) = tokio::join!(code(&mcp, &server, tool), killed);
        assert_eq!(code, "connection_lost", "{tool}");
    }
}

#[tokio::test]
async fn the_client_reconnects_to_a_restarted_server() {
    let mcp = mcp(&[]);
    for make in [http, rpc] {
        let mut fake = FakeServer::start().await;
        let server = make(&fake.url());
        assert_eq!(call(&mcp, &server, "echo", json!({"text": "one"})).await.unwrap(), "one");
        fake.kill().await;
        // The first call may still be written to the connection that the server has closed.
        let first = code(&mcp, &server, "echo").await;
        assert!(["connection_lost", "server_unavailable"].contains(&first.as_str()), "{first}");
        assert_eq!(code(&mcp, &server, "echo").await, "server_unavailable");
        fake.restart().await;
        // A retry connects itself, and does not rely on the recent failure.
        let retrying = McpServer { retries: Some(1), ..server };
        assert_eq!(call(&mcp, &retrying, "echo", json!({"text": "two"})).await.unwrap(), "two");
        assert_eq!(fake.count(|request| request.method() == "initialize"), 2);
    }
}

#[tokio::test]
async fn only_repeatable_calls_are_retried_after_a_possible_delivery() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&["--tool-retries=1"]);
    let count = || fake.count(|request| request.tool() == "flaky");
    let server = rpc(&fake.url());
    assert_eq!(code(&mcp, &server, "flaky").await, "connection_lost");
    assert_eq!(count(), 1);
    let other = FakeServer::start().await;
    let server = rpc(&other.url());
    let repeated = call_with(&mcp, &server, "flaky", json!({}), |call| call.repeatable = true).await;
    assert_eq!(repeated.unwrap(), "fine");
    let failed = call_with(&mcp, &server, "is_error", json!({}), |call| call.repeatable = true).await;
    assert_eq!(failed.unwrap_err().code, "tool_failed");
    assert_eq!(other.count(|request| request.tool() == "is_error"), 1);
}

#[tokio::test]
async fn a_forged_mark_repeats_no_call() {
    let mcp = mcp(&["--tool-retries=3"]);
    for make in [http, rpc] {
        let fake = FakeServer::start().await;
        assert_eq!(code(&mcp, &make(&fake.url()), "forged").await, "mcp_error");
        assert_eq!(fake.count(|request| request.tool() == "forged"), 1);
    }
}

#[tokio::test]
async fn a_server_over_rpc_needs_no_handshake() {
    let fake = FakeServer::with_behaviour(Behaviour::NoHandshake).await;
    let mcp = mcp(&[]);
    let server = rpc(&fake.url());
    assert_eq!(tool_names(&mcp, &server).await, ["tool_1", "tool_2", "tool_3"]);
    assert_eq!(call(&mcp, &server, "echo", json!({"text": "hi"})).await.unwrap(), "hi");
}

#[tokio::test]
async fn a_server_that_requires_a_sign_in_or_a_newer_protocol_is_named() {
    for (behaviour, part, reason) in [
        (Behaviour::SignIn, "OAuth", "it requires its users to sign in"),
        (
            Behaviour::Version("2027-01-31"),
            "a newer protocol (2027-01-31)",
            "it speaks a protocol that is not supported",
        ),
    ] {
        let fake = FakeServer::with_behaviour(behaviour).await;
        for server in [http(&fake.url()), rpc(&fake.url())] {
            let error = mcp(&[]).tools(&server, &user("ann")).await.unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(error.reason(), reason);
        }
    }
    let fake = FakeServer::with_behaviour(Behaviour::NoHandshake).await;
    let error = mcp(&[]).tools(&http(&fake.url()), &user("ann")).await.unwrap_err().to_string();
    assert!(error.contains("a newer protocol (error -32601: Method not found)"), "{error}");
}

#[tokio::test]
async fn requests_carry_the_idempotency_key() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    assert_eq!(call(&mcp, &rpc(&fake.url()), "key", json!({})).await.unwrap(), r#"["key-1","key-1"]"#);
    assert_eq!(call(&mcp, &http(&fake.url()), "key", json!({})).await.unwrap(), r#"[null,"key-1"]"#);
}

#[tokio::test]
async fn an_old_transport_is_named() {
    let fake = FakeServer::with_behaviour(Behaviour::OldTransport).await;
    let error = mcp(&[]).tools(&http(&fake.url()), &user("ann")).await.unwrap_err().to_string();
    assert!(error.contains("old HTTP+SSE transport"), "{error}");
}

#[tokio::test]
async fn an_unknown_protocol_version_is_refused() {
    let fake = FakeServer::with_behaviour(Behaviour::Version("1999-01-01")).await;
    for server in [http(&fake.url()), rpc(&fake.url())] {
        let error = mcp(&[]).tools(&server, &user("ann")).await.unwrap_err().to_string();
        assert!(error.contains("protocol version 1999-01-01") && error.contains("2025-11-25"), "{error}");
    }
}

#[tokio::test]
async fn connecting_to_a_silent_server_times_out() {
    let fake = FakeServer::with_behaviour(Behaviour::Silent).await;
    for server in [http(&fake.url()), rpc(&fake.url())] {
        let error = mcp(&["--mcp-http-connect-ms=100"]).tools(&server, &user("ann")).await.unwrap_err().to_string();
        assert!(error.contains("did not answer within 100 ms while connecting"), "{error}");
    }
}

#[tokio::test]
async fn refused_credentials_are_named() {
    for status in [401, 403] {
        let fake = FakeServer::with_behaviour(Behaviour::Status(status)).await;
        for server in [http(&fake.url()), rpc(&fake.url())] {
            assert_eq!(code(&mcp(&[]), &server, "echo").await, "unauthorized");
        }
    }
}
