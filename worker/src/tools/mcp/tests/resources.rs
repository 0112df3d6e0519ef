//! The resources of servers, which a tool of the client reads.

use test_servers::mcp::{self as servers};

use super::*;

#[tokio::test]
async fn a_resource_of_everything_is_read_by_its_uri() {
    let (mcp, server) = (mcp(&[]), stdio(&servers::everything()));
    assert!(tool_names(&mcp, &server).await.contains(&"read_resource".to_owned()));
    let uri = "demo://resource/dynamic/text/1";
    let text = call(&mcp, &server, "read_resource", json!({"uri": uri})).await.unwrap();
    assert!(text.starts_with(&format!("[resource {uri}]\nResource 1: ")), "{text}");
    let blob = "demo://resource/dynamic/blob/2";
    let file = call(&mcp, &server, "read_resource", json!({"uri": blob})).await.unwrap();
    assert!(file.starts_with(&format!("[resource {blob}, ")) && file.ends_with(" bytes]"), "{file}");
    let unknown = call(&mcp, &server, "read_resource", json!({"uri": "demo://nothing"})).await.unwrap_err();
    assert_eq!(unknown.code, "mcp_error");
    mcp.close().await;
}

#[tokio::test]
async fn a_server_without_resources_has_no_such_tool() {
    let (mcp, server) = (mcp(&[]), stdio(&servers::time()));
    assert!(!tool_names(&mcp, &server).await.contains(&"read_resource".to_owned()));
    mcp.close().await;
}
