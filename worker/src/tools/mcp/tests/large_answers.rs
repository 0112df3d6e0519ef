//! Hostile and large answers, over each transport.

use holdfast_shared::json_size::JsonSize;

use super::{
    fake::{Behaviour, FakeServer},
    *,
};

/// Values and bytes of text that the fakes' answer has besides those that a test asks for.
const OTHER_VALUES: usize = 17;
const OTHER_TEXT: usize = 43;

/// Calls `large` with these arguments over each transport, and checks each outcome.
async fn check_each(mcp: &Arc<Mcp>, arguments: Value, check: impl Fn(Result<String, ToolError>, &str)) {
    let fake = FakeServer::start().await;
    let ways = [
        (fake_stdio(&[]), "large", "stdio"),
        (http(&fake.url()), "large", "http"),
        (http(&fake.url()), "stream_large", "a stream"),
        (rpc(&fake.url()), "large", "rpc"),
    ];
    for (server, tool, way) in ways {
        check(call(mcp, &server, tool, arguments.clone()).await, way);
        // The connection is still usable.
        assert!(call(mcp, &server, tool, json!({})).await.is_ok(), "{way}");
    }
    mcp.close().await;
}

fn refused(problem: &str) -> impl Fn(Result<String, ToolError>, &str) {
    move |outcome, way| {
        let error = outcome.unwrap_err();
        assert_eq!(error.code, "answer_too_large", "{way}: {}", error.message);
        assert!(error.message.ends_with(problem), "{way}: {}", error.message);
    }
}

#[tokio::test]
async fn megabytes_of_small_values_are_refused_before_they_are_parsed() {
    let arguments = json!({"values": 8_250_000});
    check_each(&mcp(&[]), arguments, refused("the answer has more than 100000 values")).await;
}

#[tokio::test]
async fn as_many_values_as_the_limit_pass() {
    let fine = |outcome: Result<String, ToolError>, way: &str| assert_eq!(outcome.unwrap(), "fine", "{way}");
    check_each(&mcp(&[]), json!({"values": 100_000 - OTHER_VALUES}), fine).await;
    let arguments = json!({"values": 100_000 - OTHER_VALUES + 1});
    check_each(&mcp(&[]), arguments, refused("the answer has more than 100000 values")).await;
}

#[tokio::test]
async fn as_much_text_as_the_limit_passes() {
    let most = 2_097_152 - OTHER_TEXT;
    let fine = |outcome: Result<String, ToolError>, way: &str| assert_eq!(outcome.unwrap().len(), most, "{way}");
    check_each(&mcp(&[]), json!({"text": most}), fine).await;
    for more in [most + 1, 3 * 1_048_576] {
        check_each(&mcp(&[]), json!({"text": more}), refused("the answer has more than 2097152 bytes of text")).await;
    }
}

#[tokio::test]
async fn a_picture_may_be_larger_than_a_text() {
    let picture = |outcome: Result<String, ToolError>, way: &str| {
        assert!(outcome.unwrap().ends_with("[image image/png, 3750000 bytes]"), "{way}");
    };
    check_each(&mcp(&[]), json!({"picture": 5_000_000}), picture).await;
    check_each(&mcp(&[]), json!({"picture": 17_000_000}), refused("the answer is larger than 16777216 bytes")).await;
}

#[tokio::test]
async fn a_large_answer_waits_for_the_memory_of_its_owner() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&["--foreign-answers-bytes=33554432"]);
    let input: Map<String, Value> = serde_json::from_value(json!({"picture": 2_000_000})).unwrap();
    for (server, tool) in [(fake_stdio(&[]), "large"), (http(&fake.url()), "stream_large"), (rpc(&fake.url()), "large")]
    {
        let call = |owner: &'static str, limit: Option<Duration>| {
            let (mcp, server, input, user) = (Arc::clone(&mcp), server.clone(), &input, user(owner));
            async move {
                let call = McpCall { tool, input, key: "k", limit, user: &user, caller: None, repeatable: false };
                tokio::time::timeout(DEADLINE, mcp.call(&server, &call)).await.unwrap()
            }
        };
        let kept = call("ann", None).await.unwrap();
        assert!(kept.memory.is_some(), "{tool}");
        let is_stdio = matches!(server.transport, Transport::Stdio { .. });
        // Whose line a child writes shows only at its end, so lines take the server's share.
        let waiting = if is_stdio { "bob" } else { "ann" };
        if !is_stdio {
            let error = call(waiting, Some(Duration::from_millis(300))).await.unwrap_err();
            assert_eq!(error.code, "timeout", "{tool}");
            assert!(call("bob", None).await.is_ok(), "{tool}: another owner has its own share");
        }
        drop(kept);
        assert!(call(waiting, None).await.is_ok(), "{tool}");
    }
    mcp.close().await;
}

#[tokio::test]
async fn concurrent_large_answers_share_a_small_budget() {
    let fake = FakeServer::start().await;
    let mcp = mcp(&["--foreign-answers-bytes=1000000"]);
    for (server, tool) in
        [(http(&fake.url()), "large"), (http(&fake.url()), "stream_large"), (rpc(&fake.url()), "large")]
    {
        let calls = (0..6).map(|_| call(&mcp, &server, tool, json!({"picture": 1_000_000})));
        for outcome in futures::future::join_all(calls).await {
            assert!(outcome.unwrap().ends_with("[image image/png, 750000 bytes]"), "{tool}");
        }
    }
    mcp.close().await;
}

#[tokio::test]
async fn a_child_does_not_keep_the_memory_of_a_line_that_it_never_ends() {
    let mcp = mcp(&["--mcp-timeout-ms=300"]);
    let server = fake_stdio(&[]);
    let outcome = call_with(&mcp, &server, "unfinished", json!({}), |call| call.limit = Some(DEADLINE)).await;
    assert_eq!(outcome.unwrap_err().code, "connection_lost");
    mcp.close().await;
}

#[tokio::test]
async fn a_hostile_list_of_tools_is_truncated_or_refused() {
    let long = FakeServer::with_behaviour(Behaviour::LongSchemas(60_000)).await;
    let longer = FakeServer::with_behaviour(Behaviour::LongSchemas(200_000)).await;
    for make in [http as fn(&str) -> McpServer, rpc] {
        let mcp = mcp(&[]);
        assert_eq!(tool_names(&mcp, &make(&long.url())).await, ["tool_1"], "two pages have more than one answer may");
        let error = mcp.tools(&make(&longer.url()), &user("ann")).await.unwrap_err().to_string();
        assert!(error.contains("the answer has more than 100000 values"), "{error}");
    }
}

#[test]
fn the_fakes_answer_has_the_size_that_these_tests_count_with() {
    let content = r#"[{"type":"text","text":""}]"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{content},"_meta":{{"a":[0]}}}}}}"#);
    let size = JsonSize::of(answer.as_bytes());
    assert_eq!((size.values, size.text_bytes), (OTHER_VALUES + 1, OTHER_TEXT));
}
