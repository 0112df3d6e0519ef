//! Rate limits for anonymous callers: runs for each address, on all routes that start runs.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, Embedded, ScaledOut, answer,
        tokens::{SECRET, claims, token},
    },
};

in_both_modes!(the_tenth_run_of_an_anonymous_caller_starts_and_the_eleventh_does_not);

fn run(client: &Client) -> RequestBuilder {
    client.request(Method::POST, "/v1/runs").json(&json!({"input": "[tokens=1]"}))
}

/// Starts this number of runs in a row; returns their common status.
async fn all(times: usize, mut request: impl FnMut() -> RequestBuilder) -> u16 {
    let mut status = None;
    for _ in 0..times {
        let now = request().send().await.unwrap().status().as_u16();
        assert_eq!(*status.get_or_insert(now), now);
    }
    status.unwrap()
}

fn anonymous_limit(limit: &str) -> Embedded {
    Embedded::new().with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", limit)
}

async fn the_tenth_run_of_an_anonymous_caller_starts_and_the_eleventh_does_not(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", "10/hour");
    let client = deployment.client();
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let anonymous_user = client.token(made["token"].as_str().unwrap());
    assert_eq!(all(10, || run(&anonymous_user)).await, 202);
    let refused = run(&anonymous_user).header("accept", "text/event-stream").send().await.unwrap();
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((300..=360).contains(&wait), "one comes back every 360 s, not after {wait}");
    let failure = answer(run(&anonymous_user)).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (429, "rate_limited"));
    let detail = failure.body["detail"].as_str().unwrap();
    assert!(detail.contains("10 runs per hour") && detail.contains("try again in"), "{detail}");

    assert_eq!(run(&client).send().await.unwrap().status(), 429, "another secret does not help");
    let conversations = anonymous_user.get("/v1/conversations").await.unwrap();
    assert_eq!(conversations["items"].as_array().unwrap().len(), 10, "a refused request stores nothing");
    let conversation = conversations["items"][0]["id"].as_str().unwrap();
    let message =
        anonymous_user.post(&format!("/v1/conversations/{conversation}/messages"), json!({"content": "hi"})).await;
    assert_eq!(message.unwrap_err().code, "rate_limited", "every way to start a run counts");
    anonymous_user.post("/v1/conversations", json!({})).await.unwrap();
    let named_user = client.token(&token(&claims("ann", json!({}))));
    assert_eq!(all(12, || run(&named_user)).await, 202, "a token identifies its user");
}

#[tokio::test]
async fn a_refused_request_counts_once_and_a_repeated_one_not_at_all() {
    let embedded = anonymous_limit("6/hour");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let user = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let client = client.token(user["token"].as_str().unwrap());
    let repeat = || run(&client).header("idempotency-key", "k");
    let bad = |body: serde_json::Value| client.request(Method::POST, "/v1/runs").json(&body);
    assert_eq!(all(1, || bad(json!({"input": " "}))).await, 400);
    assert_eq!(all(1, || bad(json!({"unknown": true}))).await, 400);
    let broken = json!([{"name": "a", "input_schema": {"type": "nonsense"}}]);
    assert_eq!(all(1, || bad(json!({"input": "hi", "client_tools": broken}))).await, 400, "refused after admission");
    assert_eq!(all(1, || bad(json!({"input": "hi", "agent_id": uuid::Uuid::nil()}))).await, 400);
    let page = || client.request(Method::GET, "/v1/runs?limit=0");
    assert_eq!(all(10, page).await, 400, "a read does not count");
    assert_eq!(repeat().send().await.unwrap().status(), 202);
    assert_eq!(repeat().send().await.unwrap().status(), 202, "a repeated request starts no run");
    assert_eq!(run(&client).send().await.unwrap().status(), 202);
    assert_eq!(all(3, || run(&client)).await, 429, "four refused requests and two runs make six");
}

#[tokio::test]
async fn other_writes_of_anonymous_callers_have_their_own_bucket() {
    let embedded = anonymous_limit("0").with("HOLDFAST_WRITE_RATE_LIMIT", "3/hour");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let user = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let anonymous_user = client.token(user["token"].as_str().unwrap());
    let operator = client.token(&token(&claims("eve", json!({"role": "operator"}))));
    let agent = operator.post("/v1/agents", json!({"name": "a"})).await.unwrap();
    let briefing = json!({"agent_id": agent["id"], "title": "t", "summary": "s"});
    let keyed = || anonymous_user.request(Method::POST, "/v1/briefings").header("idempotency-key", "k").json(&briefing);
    let first = answer(keyed()).await.unwrap();
    let conversation = anonymous_user.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}", conversation["id"].as_str().unwrap());
    anonymous_user.patch(&path, json!({"title": "Harbour"})).await.unwrap();
    let refusals = [
        anonymous_user.post("/v1/conversations", json!({})).await,
        anonymous_user.patch(&path, json!({"title": "x"})).await,
        anonymous_user.delete(&path).await,
        anonymous_user.post("/v1/briefings", briefing.clone()).await,
        anonymous_user.delete(&format!("/v1/briefings/{}", first["id"].as_str().unwrap())).await,
    ];
    for refused in refusals {
        let failure = refused.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (429, "rate_limited"));
        assert!(failure.body["detail"].as_str().unwrap().contains("3 changes per hour"), "{failure:?}");
    }
    assert_eq!(answer(keyed()).await.unwrap(), first, "a repeated request is never refused");
    let submission = anonymous_user.start("[tokens=1000] [delay=20]").await;
    anonymous_user.cancel(submission["run"]["id"].as_str().unwrap()).await;
    let named_user = client.token(&token(&claims("ann", json!({}))));
    for _ in 0..5 {
        named_user.post("/v1/conversations", json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn reads_of_anonymous_callers_have_their_own_bucket_and_streams_have_none() {
    let embedded = anonymous_limit("0").with("HOLDFAST_READ_RATE_LIMIT", "3/hour");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let user = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let anonymous_user = client.token(user["token"].as_str().unwrap());
    let run = anonymous_user.start("[tokens=2]").await["run"]["id"].as_str().unwrap().to_owned();
    anonymous_user.stream("[tokens=1]").await.up_to("run.completed").await;
    let get = |path: &str| anonymous_user.request(Method::GET, path);
    assert_eq!(get("/v1/conversations").send().await.unwrap().status(), 200);
    assert_eq!(get("/v1/runs/x").send().await.unwrap().status(), 404, "a refused read counts");
    let search = || anonymous_user.request(Method::POST, "/langgraph/threads/search").json(&json!({}));
    assert_eq!(search().send().await.unwrap().status(), 200);
    assert_eq!(search().send().await.unwrap().status(), 429);
    let state = || {
        anonymous_user
            .request(Method::POST, "/langgraph/threads/t/commands")
            .json(&json!({"id": 1, "method": "state.get"}))
    };
    assert_eq!(state().send().await.unwrap().status(), 429);
    for request in [get("/v1/conversations"), get(&format!("/v1/runs/{run}/messages"))] {
        let failure = answer(request).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (429, "rate_limited"));
        assert!(failure.body["detail"].as_str().unwrap().contains("3 reads per hour"), "{failure:?}");
    }
    // Ten watchers come back, and the page loads.
    for _ in 0..10 {
        anonymous_user.events(&run, None).await.up_to("run.completed").await;
    }
    for path in ["/", "/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(path).send().await.unwrap().status(), 200, "{path}");
    }
    anonymous_user.post("/v1/conversations", json!({})).await.unwrap();
    let named_user = client.token(&token(&claims("ann", json!({}))));
    assert_eq!(all(5, || named_user.request(Method::GET, "/v1/conversations")).await, 200);
}

#[tokio::test]
async fn anonymous_callers_start_ten_runs_a_minute_by_default() {
    let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", SECRET);
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    for _ in 0..100 {
        if let Err(failure) = answer(run(&client)).await {
            assert!(failure.body["detail"].as_str().unwrap().contains("10 runs per minute"), "{failure:?}");
            return;
        }
    }
    panic!("a hundred runs were started");
}

#[tokio::test]
async fn zero_turns_the_limit_off() {
    let embedded = anonymous_limit("0");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    assert_eq!(all(15, || run(&client)).await, 202);
}

#[tokio::test]
async fn in_development_mode_only_a_set_limit_holds_and_only_for_unnamed_callers() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    assert_eq!(all(15, || run(&client)).await, 202);
    drop(holdfast);
    let embedded = Embedded::new().with("CHAT_RATE_LIMIT", "2/hour");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    assert_eq!(all(2, || run(&client)).await, 202);
    assert_eq!(all(2, || run(&client)).await, 429);
    assert_eq!(all(3, || run(&client.user("ann"))).await, 202);
}

#[tokio::test]
async fn each_client_of_a_trusted_proxy_has_a_limit() {
    let embedded = anonymous_limit("2/hour").with("HOLDFAST_TRUSTED_PROXIES", "192.0.2.0/24,127.0.0.0/8");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let from = |address: &str| run(&client).header("x-forwarded-for", address);
    assert_eq!(all(2, || from("203.0.113.1")).await, 202);
    assert_eq!(all(1, || from("203.0.113.1")).await, 429);
    assert_eq!(all(1, || from("203.0.113.1, 192.0.2.1")).await, 429, "by way of another trusted proxy");
    assert_eq!(all(2, || from("203.0.113.2")).await, 202);
    assert_eq!(all(2, || from("2001:db8::1")).await, 202);
    assert_eq!(all(1, || from("2001:db8::2")).await, 429, "a host has a whole network of these");
    assert_eq!(all(1, || from("2001:db8:0:1::2")).await, 202);
}

#[tokio::test]
async fn a_forged_address_neither_passes_the_limit_nor_locks_out_another_client() {
    let embedded = anonymous_limit("2/hour").with("HOLDFAST_TRUSTED_PROXIES", "127.0.0.1");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut forged = 0;
    let mut attack = || {
        forged += 1;
        run(&client).header("x-forwarded-for", format!("10.9.8.{forged}, 203.0.113.66"))
    };
    assert_eq!(all(2, &mut attack).await, 202);
    assert_eq!(all(20, &mut attack).await, 429);
    let victim = || run(&client).header("x-forwarded-for", "10.9.8.1");
    assert_eq!(all(2, victim).await, 202, "the address that was made up still has its own limit");
}

#[tokio::test]
async fn the_header_of_an_untrusted_proxy_is_ignored() {
    let embedded = anonymous_limit("2/hour").with("HOLDFAST_TRUSTED_PROXIES", "192.0.2.1");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut forged = 0;
    let mut attack = || {
        forged += 1;
        run(&client).header("x-forwarded-for", format!("203.0.113.{forged}"))
    };
    assert_eq!(all(2, &mut attack).await, 202);
    assert_eq!(all(2, &mut attack).await, 429);
}

#[tokio::test]
async fn all_apis_count_together() {
    let scaled = ScaledOut::new().with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", "3/hour");
    let (mut one, mut two) = (scaled.api(), scaled.api());
    let (one, two) = (one.client(), two.client());
    assert_eq!(all(2, || run(&one)).await, 202);
    assert_eq!(all(1, || run(&two)).await, 202);
    assert_eq!(all(1, || run(&one)).await, 429);
    assert_eq!(all(1, || run(&two)).await, 429);
}
