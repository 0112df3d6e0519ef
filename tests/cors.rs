//! Front ends on other origins, and the headers of every response for browsers and caches.

use reqwest::{Method, Response, StatusCode};
use serde_json::json;
use test_servers::free_port;

use crate::support::{Client, ClientProgram, Embedded, refusal, tokens::SECRET};

const FRONT: &str = "https://front.example";

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

fn lists(response: &Response, name: &str, item: &str) -> bool {
    let values = response.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_lowercase());
    values
        .flat_map(|value| value.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>())
        .any(|one| one == item)
}

async fn preflight(client: &Client, path: &str, method: &str, headers: &str, origin: &str) -> Response {
    let request = client.request(Method::OPTIONS, path).header("origin", origin);
    let request = request.header("access-control-request-method", method);
    request.header("access-control-request-headers", headers).send().await.unwrap()
}

#[tokio::test]
async fn a_listed_origin_reads_every_route_and_no_other_does() {
    let embedded = Embedded::new()
        .with("HOLDFAST_JWT_KEY", SECRET)
        .with("HOLDFAST_CORS_ORIGINS", format!("http://localhost:5173,{FRONT}"));
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    for (path, method, requested_headers) in [
        ("/v1/runs", "POST", "authorization,content-type,idempotency-key,last-event-id"),
        ("/api/chat", "POST", "content-type,user-agent,x-api-key,x-session-id"),
        ("/v1/conversations/x", "DELETE", "authorization"),
        ("/v1/agents/x/conversation", "PUT", "authorization"),
        ("/v1/stream/runs/x", "HEAD", "if-none-match,cache-control"),
        ("/openai/v1/responses", "POST", "authorization,x-stainless-lang,x-stainless-retry-count,openai-organization"),
        ("/langgraph/threads", "POST", "x-api-key,x-auth-scheme"),
        ("/mcp", "POST", "mcp-protocol-version,mcp-session-id"),
        ("/a2a", "POST", "a2a-version,a2a-extensions"),
    ] {
        let allowed = preflight(&client, path, method, requested_headers, FRONT).await;
        assert!(allowed.status().is_success(), "{path}");
        assert_eq!(header(&allowed, "access-control-allow-origin").as_deref(), Some(FRONT), "{path}");
        assert!(lists(&allowed, "access-control-allow-methods", &method.to_lowercase()), "{method} {path}");
        for name in requested_headers.split(',') {
            assert!(lists(&allowed, "access-control-allow-headers", name), "{name} {path}");
        }
        let refused = preflight(&client, path, method, requested_headers, "https://evil.example").await;
        assert_eq!(header(&refused, "access-control-allow-origin"), None, "{path}");
    }
    let stream = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream").header("origin", FRONT);
    let stream = stream.json(&json!({"input": "[tokens=2]"})).send().await.unwrap();
    let run = header(&stream, "x-run-id").unwrap();
    let of_the_run = format!("/v1/stream/runs/{run}");
    let ask = |method: Method, path: &str, origin: &str| client.request(method, path).header("origin", origin).send();
    let answers = [
        stream,
        ask(Method::HEAD, &of_the_run, FRONT).await.unwrap(),
        ask(Method::GET, "/v1/users/me", FRONT).await.unwrap(),
        ask(Method::GET, "/nowhere", FRONT).await.unwrap(),
        ask(Method::PATCH, "/v1/agents", FRONT).await.unwrap(),
    ];
    for answer in answers {
        assert_eq!(header(&answer, "access-control-allow-origin").as_deref(), Some(FRONT), "{}", answer.url());
        assert_eq!(header(&answer, "access-control-allow-credentials"), None, "the request did not ask for it");
        assert!(lists(&answer, "vary", "origin"), "{}", answer.url());
        for name in [
            "content-location",
            "link",
            "location",
            "retry-after",
            "x-run-id",
            "x-request-id",
            "x-should-retry",
            "mcp-session-id",
            "stream-next-offset",
            "x-workflow-run-id",
        ] {
            assert!(lists(&answer, "access-control-expose-headers", name), "{name} of {}", answer.url());
        }
    }
    let foreign = ask(Method::GET, "/v1/users/me", "https://evil.example").await.unwrap();
    assert_eq!(header(&foreign, "access-control-allow-origin"), None);
}

#[tokio::test]
async fn no_origin_is_listed_by_default_and_credentials_only_where_they_are_set() {
    let mut closed = Embedded::new().start();
    let refused = preflight(&closed.client(), "/v1/runs", "POST", "content-type", FRONT).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(header(&refused, "access-control-allow-origin"), None);
    let open = Embedded::new().with("HOLDFAST_CORS_ORIGINS", FRONT).with("HOLDFAST_CORS_CREDENTIALS", "true");
    let mut open = open.start();
    let allowed = preflight(&open.client(), "/v1/runs", "POST", "content-type", FRONT).await;
    assert_eq!(header(&allowed, "access-control-allow-credentials").as_deref(), Some("true"));
}

#[tokio::test]
async fn a_page_of_another_origin_starts_and_follows_a_run_in_a_real_browser() {
    let port = free_port();
    let embedded = Embedded::new().with("HOLDFAST_CORS_ORIGINS", format!("http://localhost:{port}"));
    let mut holdfast = embedded.start();
    let program = ClientProgram::start("browser", &holdfast.base(), json!({"front_end": port})).await;
    let (received, end) = program.rest().await;
    assert_eq!(received.iter().filter(|event| event["type"] == "message.delta").count(), 40, "{end}");
}

#[tokio::test]
async fn every_answer_says_what_browsers_and_caches_may_do_with_it() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ask = |method: Method, path: &str| client.request(method, path).send();
    let answers = [
        ask(Method::GET, "/v1/users/me").await.unwrap(),
        ask(Method::GET, "/v1/runs/x").await.unwrap(),
        ask(Method::GET, "/nowhere").await.unwrap(),
        ask(Method::PUT, "/v1/runs").await.unwrap(),
        ask(Method::GET, "/openapi.json").await.unwrap(),
        ask(Method::GET, "/healthz").await.unwrap(),
        ask(Method::GET, "/api/chat/x/stream").await.unwrap(),
        client.token("no token").request(Method::GET, "/v1/runs").send().await.unwrap(),
    ];
    for answer in answers {
        let path = answer.url().path().to_owned();
        assert_eq!(header(&answer, "x-content-type-options").as_deref(), Some("nosniff"), "{path}");
        // The document of the routes has an ETag.
        let cached = if path == "/openapi.json" { "private, no-cache" } else { "no-store" };
        assert_eq!(header(&answer, "cache-control").as_deref(), Some(cached), "{path}");
        for name in ["authorization", "cookie", "x-api-key", "accept"] {
            assert!(lists(&answer, "vary", name), "{name} of {path}");
        }
        if answer.status() == StatusCode::NO_CONTENT {
            assert_eq!(header(&answer, "content-length"), None, "{path}");
        }
    }
}

#[test]
fn credentials_without_an_origin_are_refused_by_name() {
    let reason = refusal(Embedded::new().command().env("HOLDFAST_CORS_CREDENTIALS", "true"));
    assert!(reason.contains("HOLDFAST_CORS_CREDENTIALS") && reason.contains("HOLDFAST_CORS_ORIGINS"), "{reason}");
}
