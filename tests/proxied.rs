//! Two APIs behind a real nginx, with the shipped configuration. Either API may die.

use std::time::{Duration, Instant};

use serde_json::json;
use test_servers::Nginx;

use crate::{
    clients::{is_delta, is_exact},
    support::{Client, ClientProgram, Embedded, Holdfast, ScaledOut, answer, fold, until, upstream::TestUpstream},
};

const WORDS: &[&str] = &["so ", "much ", "of ", "this ", "is ", "said ", "one ", "word ", "at ", "a ", "time"];

struct ProxiedApis {
    nginx: Nginx,
    apis: Vec<Holdfast>,
    _worker: Holdfast,
    _scaled: ScaledOut,
}

impl ProxiedApis {
    fn around(scaled: ScaledOut) -> Self {
        let mut apis = vec![scaled.api(), scaled.api()];
        let worker = scaled.worker();
        let addresses: Vec<String> = apis.iter_mut().map(|api| api.base().replace("http://", "")).collect();
        let nginx = Nginx::in_front_of([&addresses[0], &addresses[1]]);
        Self { nginx, apis, _worker: worker, _scaled: scaled }
    }

    fn saying(upstream: &TestUpstream) -> Self {
        let provider = [("CHAT_MODEL_PROVIDER", "openai"), ("CHAT_MODEL_NAME", "gpt-test")];
        let scaled = provider.into_iter().fold(ScaledOut::new(), |scaled, (name, value)| scaled.with(name, value));
        Self::around(scaled.with("OPENAI_BASE_URL", &upstream.base_url))
    }

    fn client(&self) -> Client {
        Client::new(&self.nginx.base())
    }

    /// Returns a metric of each API.
    async fn metric(&mut self, name: &str) -> Vec<u64> {
        let mut values = Vec::new();
        for api in &mut self.apis {
            let text = reqwest::get(format!("{}/metrics", api.base())).await.unwrap().text().await.unwrap();
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            values.push(value.unwrap_or(0));
        }
        values
    }

    /// Kills the API that serves the only stream.
    async fn kill_the_streaming_api(&mut self) {
        let streams = self.metric("holdfast_streams_open ").await;
        assert_eq!(streams.iter().sum::<u64>(), 1, "{streams:?}");
        let at = streams.iter().position(|open| *open == 1).unwrap();
        self.apis.remove(at).kill();
    }
}

#[tokio::test]
async fn each_address_has_its_own_limit_also_with_another_proxy() {
    let mut api = Embedded::new().start();
    let run_id = api.client().stream("[tokens=10000] [delay=50] hi").await.run_id;
    let address = api.base().replace("http://", "");
    let http = reqwest::Client::new();
    let follow = async |nginx: &Nginx, from: &str| {
        let request = http.get(format!("{}/v1/runs/{run_id}/events", nginx.base()));
        request.header("x-forwarded-for", from).send().await.unwrap()
    };
    let nginx = Nginx::limiting([&address, &address], 2, "10.0.0.7, 127.0.0.1");
    let open_streams = [follow(&nginx, "203.0.113.1").await, follow(&nginx, "203.0.113.1, 10.0.0.7").await];
    let refused = follow(&nginx, "203.0.113.9, 203.0.113.1").await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"5".parse().unwrap()));
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert_eq!(refused.json::<serde_json::Value>().await.unwrap()["code"], "too_many_connections");
    assert_eq!(follow(&nginx, "203.0.113.2").await.status(), 200);
    drop(open_streams);
    until("the address may send a request again", async || {
        (follow(&nginx, "203.0.113.1").await.status() == 200).then_some(())
    })
    .await;
    // Without trusted proxies, a caller cannot forge addresses.
    let nginx = Nginx::limiting([&address, &address], 1, "");
    let _held = follow(&nginx, "203.0.113.1").await;
    assert_eq!(follow(&nginx, "203.0.113.2").await.status(), 429);
}

#[tokio::test]
async fn each_token_arrives_before_the_provider_sends_the_next() {
    let upstream = TestUpstream::with_permits(WORDS).await;
    let proxied = ProxiedApis::saying(&upstream);
    let mut stream = proxied.client().stream("hi").await;
    until("the provider has the request", async || (!upstream.requests().is_empty()).then_some(())).await;
    let mut longest = Duration::ZERO;
    for word in WORDS {
        upstream.permit_words(1);
        let since = Instant::now();
        let frame = stream.up_to("message.delta").await.pop().unwrap();
        longest = longest.max(since.elapsed());
        assert_eq!(frame.data["text"], *word);
    }
    println!("from the provider through nginx to the client: {longest:?} at most");
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
}

#[tokio::test]
async fn a_run_resumes_after_every_event_at_either_api() {
    let mut proxied = ProxiedApis::around(ScaledOut::new());
    let client = proxied.client();
    let all_frames = client.stream("[tokens=40] [delay=5] hi").await.rest().await;
    let run_id = all_frames[0].data["run_id"].as_str().unwrap();
    for (index, frame) in all_frames.iter().enumerate() {
        assert_eq!(client.rest_after(run_id, &frame.id).await, all_frames[index + 1..], "after {}", frame.id);
    }
    let relayed = proxied.metric("holdfast_events_relayed_total ").await;
    assert!(relayed.iter().all(|events| *events > all_frames.len() as u64), "one API did it all: {relayed:?}");
}

#[tokio::test]
async fn a_client_whose_api_is_killed_reconnects_and_receives_the_rest() {
    let upstream = TestUpstream::with_permits(WORDS).await;
    let mut proxied = ProxiedApis::saying(&upstream);
    let mut program = ClientProgram::start("eventsource", &proxied.nginx.base(), json!({"input": "hi"})).await;
    upstream.permit_words(4);
    let mut received = program.up_to_nth(4, is_delta).await;
    proxied.kill_the_streaming_api().await;
    upstream.permit_words(WORDS.len() - 4);
    let (rest, end) = program.rest().await;
    received.extend(rest);
    assert_eq!(end, WORDS.concat());
    is_exact(&proxied.client(), &received, &end).await;
}

#[tokio::test]
async fn a_stream_whose_api_is_killed_does_not_end_cleanly() {
    let upstream = TestUpstream::with_permits(WORDS).await;
    let mut proxied = ProxiedApis::saying(&upstream);
    let client = proxied.client();
    let mut stream = client.stream("hi").await;
    upstream.permit_words(2);
    let mut frames = stream.up_to_nth("message.delta", 2).await;
    proxied.kill_the_streaming_api().await;
    while let Some(frame) = stream.next().await.transpose() {
        match frame {
            Ok(frame) => frames.push(frame),
            Err(_) => break,
        }
    }
    assert!(frames.iter().all(|frame| !frame.is_terminal()));
    upstream.permit_words(WORDS.len());
    frames.extend(client.rest_after(&stream.run_id, &frames.last().unwrap().id).await);
    assert_eq!(fold(&frames), WORDS.concat());
}

#[tokio::test]
async fn a_post_while_one_api_is_away_succeeds_at_the_other() {
    let mut proxied = ProxiedApis::around(ScaledOut::new());
    let client = proxied.client();
    // nginx keeps a connection to each API.
    for _ in 0..4 {
        client.start("[tokens=1] hi").await;
    }
    proxied.apis.remove(0).kill();
    for _ in 0..4 {
        let submission = client.start("[tokens=1] hi").await;
        assert_eq!(client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await["status"], "completed");
    }
    let runs = client.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 8, "none was started twice");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_in_the_words_of_the_api() {
    let proxied = ProxiedApis::around(ScaledOut::new());
    let client = proxied.client();
    let frame = json!({"input": ""}).to_string().len();
    let post = |bytes: usize| client.post("/v1/runs", json!({"input": "x".repeat(bytes - frame)}));
    assert_eq!(post(1_048_576).await.unwrap_err().code, "content_too_long", "an API has read it");
    let failure = post(1_048_577).await.unwrap_err();
    let detail = "A request body has at most 1048576 bytes.";
    let problem = json!({"status": 413, "code": "body_too_large", "title": "Payload Too Large", "detail": detail});
    assert_eq!((failure.status, failure.body), (413, problem));
}

#[tokio::test]
async fn uploads_and_chats_may_be_as_large_as_the_api_takes_them() {
    let proxied = ProxiedApis::around(ScaledOut::new());
    let client = proxied.client();
    let upload = client.request(reqwest::Method::POST, "/v1/files").body("x".repeat(3 << 20));
    let file = answer(upload).await.unwrap();
    assert_eq!(file["bytes"], 3 << 20);
    let ask = |bytes: usize| {
        let messages =
            json!([{"role": "user", "content": "x".repeat(bytes)}, {"role": "user", "content": "[tokens=1]"}]);
        client.post("/openai/v1/chat/completions", json!({"messages": messages}))
    };
    ask(3 << 19).await.unwrap();
    assert_eq!(ask(17 << 20).await.unwrap_err().status, 413);
    let message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "x".repeat(2 << 20)}]});
    let refused = client.post("/api/chat", json!({"id": "c", "messages": [message]})).await.unwrap_err();
    assert_eq!(refused.status, 400, "an API has read it");
}

#[tokio::test]
async fn a_client_cannot_forge_its_address() {
    let limited = ScaledOut::new().with("CHAT_RATE_LIMIT", "2/hour").with("HOLDFAST_TRUSTED_PROXIES", "127.0.0.1");
    let proxied = ProxiedApis::around(limited);
    let client = proxied.client();
    let mut statuses = Vec::new();
    for last in 1..=3 {
        let request = client.request(reqwest::Method::POST, "/v1/runs").json(&json!({"input": "[tokens=1] hi"}));
        let answer = request.header("x-forwarded-for", format!("198.51.100.{last}")).send().await.unwrap();
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [202, 202, 429]);
}

#[tokio::test]
async fn the_metrics_of_one_api_are_not_shown_for_all() {
    let proxied = ProxiedApis::around(ScaledOut::new());
    let status_of = async |path: &str| reqwest::get(format!("{}{path}", proxied.nginx.base())).await.unwrap().status();
    assert_eq!((status_of("/metrics").await.as_u16(), status_of("/healthz").await.as_u16()), (404, 200));
}
