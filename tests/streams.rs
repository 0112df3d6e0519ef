//! Limits on streams of one user and of one address, on their age, and on connections.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;

use crate::support::{
    BlockStream, Client, Embedded, answer,
    tokens::{SECRET, claims, token},
    until,
};

/// A run that continues until a client cancels it.
const LONG: &str = "[tokens=100000] [delay=20] hi";

fn with_authentication() -> Embedded {
    Embedded::new().with("HOLDFAST_JWT_KEY", SECRET)
}

fn user(client: &Client, name: &str) -> Client {
    client.token(&token(&claims(name, json!({}))))
}

fn get(client: &Client, path: &str) -> RequestBuilder {
    client.request(Method::GET, path)
}

fn post(client: &Client, path: &str, body: serde_json::Value) -> RequestBuilder {
    client.request(Method::POST, path).json(&body).header("accept", "text/event-stream")
}

async fn open(request: RequestBuilder) -> Response {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn failure_of(request: RequestBuilder) {
    let response = request.send().await.unwrap();
    let (status, url) = (response.status(), response.url().clone());
    assert_eq!((status.as_u16(), response.headers().contains_key("retry-after")), (429, true), "{url}");
    let body: serde_json::Value = response.json().await.unwrap();
    assert_eq!(body["code"], "too_many_streams", "{url}");
}

#[tokio::test]
async fn a_user_holds_as_many_streams_as_it_may_on_any_route() {
    let embedded = with_authentication().with("HOLDFAST_STREAMS_PER_USER", "2");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ann = user(&client, "ann");
    let run = ann.post("/v1/runs", json!({"input": LONG})).await.unwrap();
    let (run_id, conversation) = (run["run"]["id"].as_str().unwrap(), run["conversation"]["id"].as_str().unwrap());
    let events = format!("/v1/runs/{run_id}/events");
    let first = open(get(&ann, &events)).await;
    let _second = open(get(&ann, &format!("{events}?wire=chat"))).await;

    let reads = [
        events.clone(),
        format!("{events}?snapshot=true"),
        format!("{events}?wire=text"),
        format!("{events}?wire=agent"),
        format!("{events}?wire=ai-sdk"),
        format!("/v1/runs/{run_id}/wait"),
        format!("/v1/stream/runs/{run_id}?offset=now&live=long-poll"),
        format!("/v1/stream/runs/{run_id}?offset=now&live=sse"),
        format!("/api/chat/{conversation}/stream"),
        format!("/api/chat/{conversation}/stream?startIndex=0"),
    ];
    for path in &reads {
        failure_of(get(&ann, path)).await;
    }
    let writes = [
        ("/v1/runs", json!({"input": LONG})),
        (&format!("/v1/conversations/{conversation}/messages"), json!({"content": LONG})),
        ("/v1/sessions/-/messages", json!({"content": LONG})),
        ("/api/chat/stream", json!({"message": LONG})),
        (&format!("/api/conversations/{conversation}/messages"), json!({"content": LONG})),
        ("/api/agent/stream", json!({"message": LONG, "context_type": "global"})),
        ("/api/chat", json!({"id": "c", "message": {"role": "user", "parts": [{"type": "text", "text": LONG}]}})),
    ];
    for (path, body) in writes {
        failure_of(post(&ann, path, body)).await;
    }
    let runs = ann.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "a refused stream starts no run");
    answer(get(&ann, &events).header("accept", "application/json")).await.unwrap();
    ann.post("/v1/runs", json!({"input": "[tokens=1]"})).await.unwrap();

    let bob = user(&client, "bob");
    drop(open(post(&bob, "/v1/runs", json!({"input": "[tokens=1]"}))).await);
    drop(first);
    until("a closed stream frees its slot", || async {
        get(&ann, &events).send().await.unwrap().status().is_success().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_address_holds_as_many_streams_as_it_may() {
    let embedded =
        with_authentication().with("HOLDFAST_STREAMS_PER_ADDRESS", "1").with("HOLDFAST_TRUSTED_PROXIES", "127.0.0.1");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let stream = |address: &str| post(&client, "/v1/runs", json!({"input": LONG})).header("x-forwarded-for", address);
    let _first = open(stream("203.0.113.1")).await;
    failure_of(stream("203.0.113.1")).await;
    drop(open(stream("203.0.113.2")).await);
}

#[tokio::test]
async fn a_stream_ends_at_its_longest_life_and_resumes() {
    let embedded = Embedded::new().with("HOLDFAST_STREAM_LIFE_MS", "400");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let run = client.post("/v1/runs", json!({"input": "[tokens=200] [delay=10] hi"})).await.unwrap();
    let run_id = run["run"]["id"].as_str().unwrap();
    let (mut frames, mut after, mut breaks) = (Vec::new(), None, 0);
    loop {
        let mut events = client.events(run_id, after.as_deref()).await;
        let was_cut = loop {
            match events.next().await {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        breaks += usize::from(was_cut);
        if !was_cut {
            break;
        }
        after = frames.last().map(|frame: &crate::support::EventFrame| frame.id.clone());
    }
    assert!(breaks >= 2, "two seconds have several lives of a stream");
    let all = client.events(run_id, None).await.rest().await;
    let ids = |frames: &[crate::support::EventFrame]| frames.iter().map(|frame| frame.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&frames), ids(&all), "nothing is missing and nothing comes twice");

    let question =
        json!({"id": "c", "message": {"role": "user", "parts": [{"type": "text", "text": "[tokens=100] [delay=10]"}]}});
    let answer = BlockStream::open(post(&client, "/api/chat", question)).await.rest().await;
    assert_eq!(answer.last().unwrap().data, "[DONE]", "the AI SDK does not come back by itself");
}

/// Returns the status of a request on its own connection.
fn status(host: &str, path: &str, token: Option<&str>) -> u16 {
    let mut socket = TcpStream::connect(host).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    socket
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{token}connection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer[9..12].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_operators_are_answered_when_every_connection_is_taken() {
    let embedded =
        with_authentication().with("HOLDFAST_MAX_CONNECTIONS", "2").with("HOLDFAST_RESERVED_CONNECTIONS", "1");
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let host = base.strip_prefix("http://").unwrap();
    let open_connections: Vec<_> = (0..2).map(|_| TcpStream::connect(host).unwrap()).collect();
    assert_eq!(status(host, "/v1/runs", None), 503);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(status(host, path, None), 200, "{path}");
    }
    let (user, operator) = (claims("ann", json!({})), claims("root", json!({"role": "operator"})));
    assert_eq!(status(host, "/v1/runs", Some(&token(&user))), 503);
    assert_eq!(status(host, "/v1/runs", Some(&token(&operator))), 200);
    drop(open_connections);
    until("an ordinary connection", || async { (status(host, "/v1/runs", None) == 200).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_holds_as_many_connections_as_it_may() {
    let embedded = with_authentication().with("HOLDFAST_CONNECTIONS_PER_ADDRESS", "2");
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let host = base.strip_prefix("http://").unwrap();
    let mut connections: Vec<_> = (0..3).map(|_| TcpStream::connect(host).unwrap()).collect();
    let mut third = connections.pop().unwrap();
    assert_eq!(third.read(&mut [0]).unwrap_or(0), 0, "the server closes the third unread");
    drop(connections);
    until("a closed connection frees its slot", || async {
        let mut socket = TcpStream::connect(host).unwrap();
        let _ =
            socket.write_all(format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes());
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer.contains("200").then_some(())
    })
    .await;
}
