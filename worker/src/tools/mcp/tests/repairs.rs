//! The client understands servers as they are, repairs their answers, or tries again.

use std::time::Instant;

use holdfast_shared::agent::McpAuth;

use super::{
    fake::{Behaviour, FakeServer},
    *,
};

#[tokio::test]
async fn a_tool_that_reports_progress_is_alive() {
    let fake = FakeServer::start().await;
    let server = McpServer { timeout_ms: Some(1_000), ..http(&fake.url()) };
    let (user, started) = (user("ann"), Instant::now());
    let (input, user) = (Map::new(), &user);
    let call =
        McpCall { tool: "progress", input: &input, key: "k", limit: None, user, caller: None, repeatable: false };
    assert_eq!(output::in_words(mcp(&[]).call(&server, &call).await.unwrap().parts), "finished");
    // The fake server reports its last progress after 1.2 s.
    assert!(user.signs_of_life.last() > started + Duration::from_secs(1));
}

#[tokio::test]
async fn progress_ends_with_the_total_time() {
    let fake = FakeServer::start().await;
    let server = McpServer { timeout_ms: Some(1_000), retries: Some(3), ..http(&fake.url()) };
    let mcp = mcp(&["--mcp-total-ms=1500"]);
    let endless = call_with(&mcp, &server, "progress_for_ever", json!({}), |call| call.repeatable = true);
    let error = endless.await.unwrap_err();
    assert_eq!(error.code, "timeout");
    assert!(error.message.contains("1500 ms (HOLDFAST_MCP_TOTAL_MS)"), "{}", error.message);
    assert_eq!(fake.count(|request| request.tool() == "progress_for_ever"), 1);
}

#[tokio::test]
async fn the_servers_own_error_is_passed_on_without_secrets_and_addresses() {
    let fake = FakeServer::start().await;
    let auth = || Some(McpAuth { bearer: secret("hunter2-and-more") });
    let headers = BTreeMap::new;
    for transport in [
        Transport::Http { url: fake.url(), auth: auth(), headers: headers() },
        Transport::Rpc { url: fake.url(), auth: auth(), headers: headers() },
    ] {
        let error = call(&mcp(&[]), &server(transport), "refused", json!({})).await.unwrap_err();
        let expected = "error -32042: Bearer … may not use …; data: {\"retry_after\":5,\"field\":\"steps\"}";
        assert_eq!(error.message, format!("tool refused of MCP server test: {expected}"));
        assert_eq!(error.code, "mcp_error");
    }
}

#[tokio::test]
async fn content_that_cannot_be_read_costs_that_part() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for server in [http(&fake.url()), rpc(&fake.url())] {
        let output = call(&mcp, &server, "unknown_content", json!({})).await.unwrap();
        let expected = [
            "[content of the kind \"hologram\" that cannot be read]",
            "the rest",
            "[resource link kb://a.csv, a.csv, text/csv: All sales.]",
            "{\"total\":9}",
        ];
        assert_eq!(output, expected.join("\n"));
    }
}

#[tokio::test]
async fn broken_characters_cost_themselves() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    let servers = [
        (http(&fake.url()), "broken_characters"),
        (rpc(&fake.url()), "broken_characters"),
        (http(&fake.url()), "stream_broken_characters"),
        (fake_stdio(&[]), "broken_characters"),
    ];
    for (server, tool) in servers {
        assert_eq!(call(&mcp, &server, tool, json!({})).await.unwrap(), "a\u{fffd}b\u{fffd}c", "{tool}");
    }
    mcp.close().await;
}

#[tokio::test]
async fn a_byte_order_mark_and_numbers_that_are_none_cost_themselves() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for server in [http(&fake.url()), rpc(&fake.url()), fake_stdio(&[])] {
        assert_eq!(call(&mcp, &server, "no_number", json!({})).await.unwrap(), r#"{"mean":null,"sum":3}"#);
    }
    mcp.close().await;
}

#[tokio::test]
async fn a_tool_may_return_nothing() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&[]);
    for server in [http(&fake.url()), rpc(&fake.url()), fake_stdio(&[])] {
        assert_eq!(call(&mcp, &server, "nothing", json!({})).await.unwrap(), "");
    }
    mcp.close().await;
}

#[tokio::test]
async fn a_servers_long_request_is_refused_and_does_not_wait() {
    let mcp = mcp(&[]);
    assert_eq!(call(&mcp, &fake_stdio(&[]), "asks_at_length", json!({})).await.unwrap(), r#"["ask", -32601]"#);
    mcp.close().await;
}

/// Each body is how servers of one kind refuse a session from before their restart.
#[tokio::test]
async fn a_lost_session_is_opened_again() {
    for (status, body) in [
        (404, ""),
        (404, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#),
        (400, "No valid session ID provided"),
        (400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#),
        (401, "Unauthorized: Session not found"),
        (400, r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}"#),
    ] {
        let mut fake = FakeServer::with_behaviour(Behaviour::Sessions(status, body)).await;
        let (mcp, server) = (mcp(&[]), http(&fake.url()));
        for round in 1..=3 {
            assert_eq!(call(&mcp, &server, "echo", json!({"text": "x"})).await.unwrap(), "x", "{status} {body}");
            assert_eq!(fake.count(|request| request.method() == "initialize"), round, "{status} {body}");
            fake.restart().await;
        }
    }
}

#[tokio::test]
async fn a_request_that_is_always_refused_opens_one_session_and_is_reported() {
    let fake = FakeServer::with_behaviour(Behaviour::Sessions(400, "")).await;
    let (mcp, server) = (mcp(&[]), http(&fake.url()));
    for round in 2..=3 {
        let error = call(&mcp, &server, "bad_request", json!({})).await.unwrap_err();
        assert!(error.message.contains("HTTP 400"), "{}", error.message);
        assert_eq!(fake.count(|request| request.method() == "initialize"), round);
    }
}

#[tokio::test]
async fn redirects_are_followed_within_one_origin() {
    for status in [307, 308] {
        let fake = FakeServer::with_behaviour(Behaviour::Redirects(status)).await;
        for server in [http(&fake.url()), rpc(&fake.url())] {
            assert_eq!(call(&mcp(&[]), &server, "echo", json!({"text": "x"})).await.unwrap(), "x");
        }
    }
    for behaviour in [Behaviour::Redirects(302), Behaviour::RedirectsAway] {
        let fake = FakeServer::with_behaviour(behaviour).await;
        assert_eq!(code(&mcp(&[]), &rpc(&fake.url()), "echo").await, "server_unavailable");
    }
}

#[tokio::test]
async fn the_headers_of_the_definition_are_sent_beside_the_bearer() {
    let fake = FakeServer::start().await;
    let headers = || BTreeMap::from([("X-Tenant".to_owned(), secret("blue-tenant"))]);
    let auth = || Some(McpAuth { bearer: secret("hunter2-and-more") });
    for transport in [
        Transport::Http { url: fake.url(), auth: auth(), headers: headers() },
        Transport::Rpc { url: fake.url(), auth: auth(), headers: headers() },
    ] {
        call(&mcp(&[]), &server(transport), "echo", json!({})).await.unwrap();
    }
    let with_both = |request: &fake::McpRequest| {
        request.headers.get("x-tenant").is_some_and(|tenant| tenant == "blue-tenant")
            && request.headers.get("authorization").is_some_and(|token| token == "Bearer hunter2-and-more")
    };
    assert_eq!(fake.count(with_both), fake.count(|_| true));
}
