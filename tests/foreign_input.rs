//! What callers send and the server bounds: schemas, hosts, bodies, and the pages that they ask for.

use std::io::{Read, Write};

use serde_json::json;

use crate::support::Embedded;

#[tokio::test]
async fn client_tools_are_limited_before_any_schema_is_compiled() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let tools = |count: usize, schema: fn(usize) -> serde_json::Value| {
        let tool = |n: usize| json!({"name": format!("t{n}"), "input_schema": schema(n)});
        json!({"input": "[tokens=1]", "client_tools": (0..count).map(tool).collect::<Vec<_>>()})
    };
    let refused = async |body: serde_json::Value, part: &str| {
        let failure = client.post("/v1/runs", body).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_client_tool"));
        let detail = failure.body["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{detail:?} lacks {part:?}");
    };
    let pattern = |n: usize| json!({"properties": {"a": {"pattern": format!("a{n}"), "type": "string"}}});
    client.post("/v1/runs", tools(32, pattern)).await.unwrap();
    refused(tools(33, pattern), "32 client tools, not 33").await;
    let three = |n: usize| json!({"allOf": [{"pattern": "x"}, {"pattern": "y"}, {"pattern": format!("z{n}")}]});
    client.post("/v1/runs", tools(21, three)).await.unwrap();
    refused(tools(22, three), "66 patterns, and 64 are taken").await;
    refused(tools(2, |_| json!({"title": "x".repeat(32_768)})), "and 65536 are taken").await;
    let bomb = |_: usize| json!({"pattern": "(((.{40}){40}){40}){40}"});
    refused(tools(32, bomb), "a pattern may take 262144 bytes").await;
    client.get("/healthz").await.unwrap();
}

#[tokio::test]
async fn two_hosts_in_one_request_are_refused() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let address = base.strip_prefix("http://").unwrap();
    let status = |head: String| {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        (answer[9..12].to_owned(), answer.contains("\"invalid_host\""))
    };
    let taken = ("200".to_owned(), false);
    let refused = ("400".to_owned(), true);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}")), taken);
    assert_eq!(status(format!("GET http://{address}/v1/runs HTTP/1.1\r\nhost: {address}")), taken);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}\r\nhost: evil.example")), refused);
    assert_eq!(status(format!("GET /v1/runs HTTP/1.1\r\nhost: {address}, evil.example")), refused);
    assert_eq!(status(format!("GET http://evil.example/v1/runs HTTP/1.1\r\nhost: {address}")), refused);
}
