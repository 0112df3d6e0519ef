//! A run's OpenTelemetry trace: one for all its processes, attempts and answers. Without an endpoint there is none.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Deployment, Embedded, ExportedSpan, ScaledOut, TestCollector, agent, answer, stream_of, tools::ToolServer,
    until,
};

const CALLER: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Settings with which processes export spans almost at once.
const DELAY: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "100");

fn scaled(collector: &TestCollector) -> ScaledOut {
    ScaledOut::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).with(DELAY.0, DELAY.1)
}

fn embedded(collector: &TestCollector) -> Embedded {
    Embedded::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url).with(DELAY.0, DELAY.1)
}

async fn trace_id(client: &Client, run_id: &str) -> String {
    client.run(run_id).await["trace_id"].as_str().expect("the run has a trace").to_owned()
}

/// Returns the only span of this name.
fn the<'a>(trace: &'a [ExportedSpan], name: &str) -> &'a ExportedSpan {
    let mut spans_found = trace.iter().filter(|traced| traced.span.name == name);
    let first = spans_found.next().unwrap_or_else(|| panic!("no {name} in\n{}", ExportedSpan::tree(trace)));
    assert!(spans_found.next().is_none(), "more than one {name} in\n{}", ExportedSpan::tree(trace));
    first
}

async fn start_with(client: &Client, traceparent: &str, input: &str) -> Value {
    let request = client.request(Method::POST, "/v1/runs").header("traceparent", traceparent);
    answer(request.json(&json!({ "input": input }))).await.unwrap()["run"].clone()
}

#[tokio::test]
async fn a_run_is_one_trace_across_processes() {
    let collector = TestCollector::start().await;
    let (scaled, server) = (scaled(&collector), ToolServer::answering_at_once().await);
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let input = "[tokens=2] quokka [call=kb__count {\"note\":\"wombat\"}]";
    let stream = stream_of(&client, &agent_id, input).await;
    let run_id = stream.run_id.clone();
    stream.rest().await;
    let trace_id = trace_id(&client, &run_id).await;
    collector.trace_with(&trace_id, "invoke_agent tester", 1).await;
    let trace = collector.trace_with(&trace_id, "POST /v1/runs", 1).await;
    let story: Vec<_> =
        trace.iter().filter(|it| !["append", "flush"].contains(&it.span.name.as_str())).cloned().collect();
    assert_eq!(
        ExportedSpan::tree(&story),
        "POST /v1/runs (api)\n\
         \x20 submit (api)\n\
         \x20 invoke_agent tester (worker)\n\
         \x20   claim (worker)\n\
         \x20   step (worker)\n\
         \x20     chat scripted (worker)\n\
         \x20     execute_tool kb__count (worker)\n\
         \x20   step (worker)\n\
         \x20     chat scripted (worker)\n\
         \x20   finish (worker)\n"
    );
    for traced in &trace {
        assert_eq!(traced.get("run.id").as_deref(), Some(&*run_id), "{traced:#?}");
        assert_eq!(traced.failure(), None, "{traced:#?}");
        assert_eq!(traced.resource["service.name"], "holdfast");
    }
    let (request, tool) = (the(&trace, "POST /v1/runs"), the(&trace, "execute_tool kb__count"));
    assert_eq!(request.get("http.response.status_code").as_deref(), Some("200"));
    assert_eq!(tool.get("gen_ai.tool.name").as_deref(), Some("kb__count"));
    let chat = trace.iter().find(|traced| traced.span.name == "chat scripted").unwrap();
    assert_eq!(chat.get("gen_ai.provider.name").as_deref(), Some("scripted"));
    assert_ne!(chat.get("gen_ai.usage.output_tokens").unwrap(), "0");
    for process in [&mut api, &mut worker] {
        process.signal("TERM");
        assert!(process.exit().success());
    }
    for word in ["quokka", "wombat"] {
        assert!(!collector.has_received(word), "a span contains message text");
    }
}

#[tokio::test]
async fn a_streams_request_ends_with_its_head_and_not_with_the_run() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let mut stream = client.stream("[tokens=1000] [delay=50] hi").await;
    stream.up_to("message.delta").await;
    let trace_id = trace_id(&client, &stream.run_id).await;
    collector.trace_with(&trace_id, "POST /v1/runs", 1).await;
    assert_eq!(client.run(&stream.run_id).await["status"], "running");
}

#[tokio::test]
async fn another_worker_continues_the_same_trace() {
    let collector = TestCollector::start().await;
    let scaled = scaled(&collector);
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=60] [delay=20] hi").await;
    stream.up_to_nth("message.delta", 5).await;
    let run_id = stream.run_id.clone();
    let trace_id = trace_id(&client, &run_id).await;
    collector.trace_with(&trace_id, "claim", 1).await;
    worker.kill();
    let _other = scaled.worker();
    stream.rest().await;
    let trace = collector.trace_with(&trace_id, "invoke_agent", 1).await;
    let (request, attempt) = (the(&trace, "POST /v1/runs"), the(&trace, "invoke_agent"));
    assert_eq!(attempt.parent(), request.id());
    assert_eq!(attempt.get("run.attempt").as_deref(), Some("2"));
    assert_eq!(attempt.get("run.attempt.reason").as_deref(), Some("lease_expired"));
    let claims = trace.iter().filter(|traced| traced.span.name == "claim");
    let attempts: Vec<_> = claims.map(|claim| claim.get("run.attempt").unwrap()).collect();
    assert_eq!(attempts, ["1", "2"]);
}

#[tokio::test]
async fn an_answered_run_continues_its_trace_and_the_answers_request_is_linked() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let mut stream = client.stream("[tokens=2] [approval]").await;
    let frames = stream.up_to("agent.state").await;
    let question = frames.iter().find(|frame| frame.event == "approval.requested").unwrap();
    let path = format!("/v1/runs/{}/approvals/{}", stream.run_id, question.data["approval_id"].as_str().unwrap());
    let run_id = stream.run_id.clone();
    client.post(&path, json!({"decision": "approve"})).await.unwrap();
    stream.rest().await;
    let trace = collector.trace_with(&trace_id(&client, &run_id).await, "invoke_agent", 2).await;
    let request = the(&trace, "POST /v1/runs");
    let attempts: Vec<_> = trace.iter().filter(|traced| traced.span.name == "invoke_agent").collect();
    let ends: Vec<_> = attempts.iter().map(|attempt| attempt.get("run.status").unwrap()).collect();
    assert_eq!(ends, ["waiting", "completed"]);
    assert!(attempts.iter().all(|attempt| attempt.parent() == request.id()));
    let answer = the(&trace, "answer");
    assert_eq!(answer.parent(), request.id());
    let link = answer.span.links[0].trace_id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let decided = collector.trace_with(&link, "POST /v1/runs/{id}/approvals/{approval_id}", 1).await;
    assert_eq!(decided[0].get("run.id").as_deref(), Some(&*run_id));
}

#[tokio::test]
async fn a_callers_span_is_the_parent_and_its_sampling_counts() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let unsampled = start_with(&client, &format!("00-{CALLER}-00f067aa0ba902b7-00"), "hi").await;
    assert_eq!(unsampled["trace_id"], Value::Null);
    client.wait_for_run(unsampled["id"].as_str().unwrap()).await;
    let run = start_with(&client, &format!("00-{CALLER}-00f067aa0ba902b7-01"), "hi").await;
    assert_eq!(run["trace_id"], CALLER);
    let trace = collector.trace_with(CALLER, "invoke_agent", 1).await;
    assert_eq!(the(&trace, "POST /v1/runs").parent(), "00f067aa0ba902b7");
    for traced in trace {
        assert_eq!(traced.get("run.id").as_deref(), run["id"].as_str(), "{traced:#?}");
    }
}

#[tokio::test]
async fn a_failed_run_fails_its_spans_with_its_code() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let run = client.start("[fail] quokka").await["run"].clone();
    let run = client.wait_for_run(run["id"].as_str().unwrap()).await;
    let code = run["error"]["code"].as_str().unwrap();
    let trace = collector.trace_with(run["trace_id"].as_str().unwrap(), "invoke_agent", 1).await;
    for name in ["chat scripted", "step", "invoke_agent"] {
        assert_eq!(the(&trace, name).failure(), Some(code), "{name}");
    }
    assert_eq!(the(&trace, "finish").failure(), None);
}

#[tokio::test]
async fn a_tool_that_fails_fails_its_span_and_not_the_run() {
    let collector = TestCollector::start().await;
    let mut server = ToolServer::start().await;
    let holdfast = embedded(&collector);
    let mut deployment = Deployment::on(holdfast.with("HOLDFAST_MCP_TIMEOUT_MS", 200));
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let stream = stream_of(&client, &agent_id, "[tokens=2] [call=kb__count {}]").await;
    let _unanswered = server.arrival().await;
    let run_id = stream.run_id.clone();
    stream.rest().await;
    let trace = collector.trace_with(&trace_id(&client, &run_id).await, "invoke_agent tester", 1).await;
    assert_eq!(the(&trace, "execute_tool kb__count").failure(), Some("timeout"));
    assert_eq!(the(&trace, "invoke_agent tester").failure(), None);
}

#[tokio::test]
async fn append_spans_cover_every_append() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let frames = client.stream("[tokens=200] [delay=5] hi").await.rest().await;
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let trace = collector.trace_with(&trace_id(&client, run_id).await, "invoke_agent", 1).await;
    let sum = |key: &str| -> u64 {
        let appends = trace.iter().filter(|traced| traced.span.name == "append");
        appends.map(|append| append.get(key).unwrap().parse::<u64>().unwrap()).sum()
    };
    let count = |name: &str| trace.iter().filter(|traced| traced.span.name == name).count();
    // These are all events but `run.queued`, which the API writes.
    assert_eq!(sum("run.events"), frames.len() as u64 - 1);
    assert!(sum("run.appends") > 20, "{}", ExportedSpan::tree(&trace));
    assert!(count("append") <= count("flush") + 1, "{}", ExportedSpan::tree(&trace));
}

#[tokio::test]
async fn the_log_has_the_trace_of_a_run() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let run = client.start("hi").await["run"].clone();
    let line = holdfast.wait_for_log("run ended");
    assert!(line.contains(run["trace_id"].as_str().unwrap()), "{line}");
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_traced() {
    let mut holdfast = Embedded::new().start();
    let client = holdfast.client();
    let run = start_with(&client, &format!("00-{CALLER}-00f067aa0ba902b7-01"), "hi").await;
    let run = client.wait_for_run(run["id"].as_str().unwrap()).await;
    assert_eq!(run["trace_id"], Value::Null);
    let exporters = |threads: Vec<String>| threads.into_iter().any(|name| name.starts_with("OpenTelemetry"));
    assert!(!exporters(holdfast.threads()));
    let collector = TestCollector::start().await;
    let mut traced = embedded(&collector).start();
    traced.base();
    assert!(exporters(traced.threads()));
}

#[tokio::test]
async fn disabled_tracing_connects_to_no_collector() {
    let collector = TestCollector::start().await;
    let mut holdfast = embedded(&collector).with("OTEL_SDK_DISABLED", true).start();
    let client = holdfast.client();
    let run = client.start("hi").await["run"].clone();
    assert_eq!(client.wait_for_run(run["id"].as_str().unwrap()).await["trace_id"], Value::Null);
    holdfast.signal("TERM");
    assert!(holdfast.exit().success());
    assert_eq!(collector.requests(), 0);
}

#[tokio::test]
async fn a_hanging_collector_holds_up_neither_runs_nor_the_end() {
    let collector = TestCollector::start().await;
    collector.hang(true);
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    until("the exporter hangs", async || {
        client.get("/v1/runs").await.unwrap();
        (collector.requests() > 0).then_some(())
    })
    .await;
    let run = client.start("[tokens=5] hi").await["run"].clone();
    assert_eq!(client.wait_for_run(run["id"].as_str().unwrap()).await["status"], "completed");
    holdfast.signal("TERM");
    let stopped = Instant::now();
    assert!(holdfast.exit().success());
    // The process waits 2 s; the exporter itself would wait 10 s.
    assert!(stopped.elapsed() < Duration::from_secs(8), "it took {:?}", stopped.elapsed());
}

#[tokio::test]
async fn a_collector_that_refuses_everything_is_logged_once() {
    let collector = TestCollector::start().await;
    collector.refuse(true);
    let mut holdfast = embedded(&collector).start();
    let client = holdfast.client();
    let ask_until = async |requests: usize| {
        until("batches are sent", async || {
            client.get("/v1/runs").await.unwrap();
            (collector.requests() >= requests).then_some(())
        })
        .await;
    };
    ask_until(4).await;
    collector.refuse(false);
    ask_until(collector.requests() + 2).await;
    holdfast.wait_for_log("the collector takes spans again");
    let log = holdfast.log_so_far();
    assert_eq!(log.matches("spans are lost").count(), 1, "{log}");
}

#[tokio::test]
async fn a_batch_that_is_not_taken_in_time_is_lost() {
    let collector = TestCollector::start().await;
    collector.hang(true);
    let mut holdfast = embedded(&collector).with("OTEL_EXPORTER_OTLP_TIMEOUT", 300).start();
    let client = holdfast.client();
    let since = Instant::now();
    client.get("/v1/runs").await.unwrap();
    holdfast.wait_for_log("spans are lost");
    // The default is 10 s.
    assert!(since.elapsed() < Duration::from_secs(8), "it took {:?}", since.elapsed());
    collector.hang(false);
    let run = client.start("hi").await["run"].clone();
    collector.trace_with(run["trace_id"].as_str().unwrap(), "invoke_agent", 1).await;
}

#[tokio::test]
async fn spans_that_find_no_room_in_the_queue_are_lost() {
    let collector = TestCollector::start().await;
    collector.hang(true);
    let mut holdfast = embedded(&collector).with("OTEL_BSP_MAX_QUEUE_SIZE", 10).start();
    let client = holdfast.client();
    client.get("/v1/runs").await.unwrap();
    until("the exporter hangs", async || (collector.requests() > 0).then_some(())).await;
    for _ in 0..30 {
        let request =
            client.request(Method::GET, "/v1/runs").header("traceparent", format!("00-{CALLER}-00f067aa0ba902b7-01"));
        answer(request).await.unwrap();
    }
    collector.hang(false);
    let last = async || {
        let run = client.start("hi").await["run"]["trace_id"].clone();
        (!collector.trace(run.as_str().unwrap()).is_empty()).then_some(())
    };
    until("spans are sent again", last).await;
    assert_eq!(collector.trace(CALLER).len(), 10);
}

#[tokio::test]
async fn an_endpoint_that_is_no_url_is_refused() {
    let mut command = Embedded::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", "not a url").command();
    let sentence = crate::support::refusal(&mut command);
    assert!(sentence.starts_with("holdfast: OTEL_EXPORTER_OTLP_ENDPOINT"), "{sentence}");
}
