//! Servers of other projects, over each transport that they support.

use std::time::Duration;

use serde_json::json;
use test_servers::mcp::{self as servers, Everything};

use super::*;

#[tokio::test]
async fn everything_over_stdio_lists_and_answers() {
    let (mcp, server) = (mcp(&[]), stdio(&servers::everything()));
    let names = tool_names(&mcp, &server).await;
    assert!(names.contains(&"echo".to_owned()), "{names:?}");
    assert_eq!(call(&mcp, &server, "echo", json!({"message": "hello"})).await.unwrap(), "Echo: hello");
    let sum = call(&mcp, &server, "get-sum", json!({"a": 2, "b": 3})).await.unwrap();
    assert!(sum.contains('5'), "{sum}");
    let image = call(&mcp, &server, "get-tiny-image", json!({})).await.unwrap();
    assert!(image.contains("[image image/png, "), "{image}");
    mcp.close().await;
}

#[tokio::test]
async fn a_long_operation_of_everything_times_out_and_the_next_call_works() {
    let (mcp, server) = (mcp(&[]), stdio(&servers::everything()));
    tool_names(&mcp, &server).await;
    let long = json!({"duration": 60, "steps": 60});
    let error = call_with(&mcp, &server, "trigger-long-running-operation", long, |call| {
        call.limit = Some(Duration::from_millis(100));
    });
    let error = error.await.unwrap_err();
    assert_eq!(error.code, "timeout");
    assert!(error.message.contains("100 ms") && error.message.contains("may or may not"), "{}", error.message);
    assert_eq!(call(&mcp, &server, "echo", json!({"message": "still here"})).await.unwrap(), "Echo: still here");
    mcp.close().await;
}

#[tokio::test]
async fn everything_over_streamable_http_lists_and_answers() {
    let everything = Everything::start();
    let (mcp, server) = (mcp(&[]), http(&everything.url()));
    assert!(tool_names(&mcp, &server).await.contains(&"echo".to_owned()));
    assert_eq!(call(&mcp, &server, "echo", json!({"message": "hello"})).await.unwrap(), "Echo: hello");
    let bad = call(&mcp, &server, "get-sum", json!({"a": "no number"})).await.unwrap_err();
    assert!(["tool_failed", "mcp_error"].contains(&bad.code.as_str()), "{bad:?}");
    mcp.close().await;
}

#[tokio::test]
async fn the_client_reconnects_to_a_restarted_streamable_http_server() {
    let mut everything = Everything::start();
    let (mcp, server) = (mcp(&[]), http(&everything.url()));
    assert_eq!(call(&mcp, &server, "echo", json!({"message": "one"})).await.unwrap(), "Echo: one");
    everything.restart();
    assert_eq!(call(&mcp, &server, "echo", json!({"message": "two"})).await.unwrap(), "Echo: two");
    mcp.close().await;
}

#[tokio::test]
async fn killing_a_streamable_http_server_in_mid_call_ends_the_call() {
    let mut everything = Everything::start();
    let (mcp, server) = (mcp(&[]), http(&everything.url()));
    tool_names(&mcp, &server).await;
    let long = json!({"duration": 600, "steps": 600});
    let input = serde_json::from_value(long).unwrap();
    let call = McpCall {
        user: &user("ann"),
        tool: "trigger-long-running-operation",
        input: &input,
        key: "k",
        caller: None,
        limit: Some(DEADLINE * 2),
        repeatable: false,
    };
    let mut call = Box::pin(mcp.call(&server, &call));
    // The first poll sends the call; after two answers to later calls, the call has reached the server.
    for _ in 0..2 {
        tokio::select! {
            biased;
            _ = &mut call => panic!("it is long"),
            _ = super::call(&mcp, &server, "echo", json!({"message": "between"})) => {}
        }
    }
    everything.kill();
    let error = tokio::time::timeout(DEADLINE, call).await.unwrap().unwrap_err();
    assert_eq!(error.code, "connection_lost");
}

#[tokio::test]
async fn filesystem_lists_and_reads_its_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::write(folder.join("note.txt"), "remember the milk").unwrap();
    let (mcp, server) = (mcp(&[]), stdio(&servers::filesystem(&folder)));
    let listing = call(&mcp, &server, "list_directory", json!({"path": folder})).await.unwrap();
    assert!(listing.contains("note.txt"), "{listing}");
    let text = call(&mcp, &server, "read_text_file", json!({"path": folder.join("note.txt")})).await.unwrap();
    assert_eq!(text, "remember the milk");
    let outside = call(&mcp, &server, "read_text_file", json!({"path": "/etc/hostname"})).await.unwrap_err();
    assert_eq!(outside.code, "tool_failed");
    mcp.close().await;
}

#[tokio::test]
async fn time_returns_the_time_of_a_zone() {
    let (mcp, server) = (mcp(&[]), stdio(&servers::time()));
    let now = call(&mcp, &server, "get_current_time", json!({"timezone": "Europe/Berlin"})).await.unwrap();
    assert!(now.contains("Europe/Berlin"), "{now}");
    mcp.close().await;
}
