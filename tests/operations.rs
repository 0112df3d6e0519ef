//! Metrics, the dashboard, the alerts, and the pages that explain them to operators.

use std::{collections::BTreeSet, fs, path::Path};

use reqwest::Method;
use serde_json::{Value, json};
use test_servers::{Postgres, free_port, promtool};

use crate::support::{
    Embedded, ScaledOut, agent, frames_of, refusal, tools::ToolServer, until, upstream::TestUpstream,
};

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the metrics of a process, after promtool has checked them.
async fn metrics(url: &str) -> String {
    let response = reqwest::get(format!("{url}/metrics")).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4");
    let metrics = response.text().await.unwrap();
    let report = promtool(&["check", "metrics"], &metrics).unwrap_or_else(|report| panic!("{report}\n{metrics}"));
    assert_eq!(report, "");
    metrics
}

/// Returns the value of a series.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("no {series} in {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Waits until a series of a process has at least this value.
async fn until_at_least(url: &str, series: &str, least: f64) {
    until(&format!("{series} is {least}"), || async { (value(&metrics(url).await, series) >= least).then_some(()) })
        .await;
}

/// Returns the names of the described metrics.
fn names(metrics: &str) -> BTreeSet<String> {
    let described = |line: &str| Some(line.strip_prefix("# HELP ")?.split(' ').next()?.to_owned());
    metrics.lines().filter_map(described).collect()
}

/// Returns the metrics that a text names, without the suffixes of histograms.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|at: char| !at.is_ascii_alphanumeric() && at != '_');
    let ours = words.filter(|word| word.starts_with("holdfast_") || word.starts_with("process_"));
    let base = |word: &str| {
        let suffix = ["_seconds_bucket", "_seconds_count", "_seconds_sum"].iter().find(|end| word.ends_with(*end));
        suffix.map_or(word, |_| word.rsplit_once('_').unwrap().0).to_owned()
    };
    ours.map(base).collect()
}

/// Returns the expressions of the dashboard's panels.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("docs/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

fn worker_address(scaled: ScaledOut) -> (ScaledOut, String) {
    let address = format!("127.0.0.1:{}", free_port());
    (scaled.with("HOLDFAST_METRICS_ADDR", &address), format!("http://{address}"))
}

#[tokio::test]
async fn each_process_has_its_metrics_from_the_start_and_they_are_documented_and_used() {
    let (scaled, worker_url) = worker_address(ScaledOut::new());
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let mut embedded = Embedded::new().start();
    worker.wait_for_log("worker started");
    let of_api = names(&metrics(&api.base()).await);
    let of_worker = names(&metrics(&worker_url).await);
    let of_both = names(&metrics(&embedded.base()).await);
    assert_eq!(of_api.union(&of_worker).cloned().collect::<BTreeSet<_>>(), of_both);
    assert_ne!(of_api, of_worker);
    let documented = named(&file("docs/operations/metrics.md"));
    assert_eq!(of_both, documented, "docs/operations/metrics.md");
    let used = named(&(expressions().join("\n") + &file("docs/alerts.yml")));
    let strange: Vec<_> = used.difference(&of_both).collect();
    assert!(strange.is_empty(), "no process has {strange:?}");
    let ours = of_both.iter().filter(|name| name.starts_with("holdfast_"));
    let unused: Vec<_> = ours.filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "neither the dashboard nor an alert looks at {unused:?}");
}

#[tokio::test]
async fn metrics_count_what_happens() {
    let (scaled, worker_url) = worker_address(ScaledOut::new());
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let server = ToolServer::answering_at_once().await;
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    frames_of(&client, &agent_id, "[tokens=2] [call=kb__count {\"note\":\"n\"}]").await;
    client.wait_for_run(client.start("[fail]").await["run"]["id"].as_str().unwrap()).await;
    until_at_least(&worker_url, "holdfast_run_failures_total{code=\"scripted_failure\"}", 1.0).await;
    let before = metrics(&worker_url).await;
    for (series, count) in [
        ("holdfast_tool_call_seconds_count", 1.0),
        ("holdfast_runs_ended_total{status=\"completed\"}", 1.0),
        ("holdfast_runs_ended_total{status=\"failed\"}", 1.0),
        ("holdfast_run_failures_total{code=\"max_attempts\"}", 0.0),
        ("holdfast_takeovers_total", 0.0),
        ("holdfast_worker_slots", 256.0),
        ("holdfast_build_info{version=\"0.1.0\",role=\"worker\"}", 1.0),
    ] {
        assert_eq!(value(&before, series), count, "{series}");
    }
    let mut stream = client.stream("[tokens=200] [delay=20] hi").await;
    let frames = stream.up_to_nth("message.delta", 10).await;
    worker.kill();
    let _other = scaled.worker();
    let after = frames.last().unwrap().id.clone();
    drop(client.events(&stream.run_id, Some(&after)).await);
    stream.up_to("attempt.started").await;
    until_at_least(&worker_url, "holdfast_takeovers_total", 1.0).await;
    until_at_least(&worker_url, "holdfast_flush_seconds_count", 1.0).await;
    let of_api = metrics(&api.base()).await;
    let series_of_events =
        "holdfast_http_request_seconds_count{method=\"GET\",route=\"/v1/runs/{id}/events\",status=\"200\"}";
    assert_eq!(value(&of_api, series_of_events), 1.0);
    assert_eq!(value(&of_api, "holdfast_streams_resumed_total"), 1.0);
    assert_eq!(value(&of_api, "holdfast_runs{status=\"running\"}"), 1.0);
    assert_eq!(value(&of_api, "holdfast_oldest_queued_run_seconds"), 0.0);
    assert_eq!(value(&of_api, "holdfast_database_connections_max"), 16.0);
}

#[tokio::test]
async fn invented_paths_and_names_are_no_labels() {
    let mut process = Embedded::new().start();
    let client = process.client();
    let strange = Method::from_bytes(b"STRANGE").unwrap();
    assert_eq!(client.request(strange, "/nowhere/1").send().await.unwrap().status(), 404);
    let metrics = metrics(&process.base()).await;
    let series_of_unknown = "holdfast_http_request_seconds_count{method=\"other\",route=\"none\",status=\"404\"}";
    assert_eq!(value(&metrics, series_of_unknown), 1.0);
    assert_eq!(value(&metrics, "holdfast_oldest_queued_run_seconds"), 0.0);
    assert_eq!(value(&metrics, "holdfast_database_connections_max"), 13.0);
}

#[tokio::test]
async fn a_run_that_waits_for_a_worker_has_an_age_and_one_after_another_has_none() {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    let first = client.start("[tokens=1]").await;
    until_at_least(&api.base(), "holdfast_oldest_queued_run_seconds", 0.5).await;
    let worker = scaled.worker();
    client.wait_for_run(first["run"]["id"].as_str().unwrap()).await;
    let mut running = client.stream("[tokens=3000] [delay=20]").await;
    running.up_to("message.delta").await;
    let conversation = client.run(&running.run_id).await["conversation_id"].as_str().unwrap().to_owned();
    client.post(&format!("/v1/conversations/{conversation}/messages"), json!({"content": "next"})).await.unwrap();
    let metrics_after = metrics(&api.base()).await;
    assert_eq!(value(&metrics_after, "holdfast_runs{status=\"queued\"}"), 1.0);
    assert_eq!(value(&metrics_after, "holdfast_oldest_queued_run_seconds"), 0.0);
    drop(worker);
}

#[tokio::test]
async fn the_metrics_show_an_outage() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None).with("HOLDFAST_LEASE_MS", 60_000);
    let (mut scaled, worker_url) = worker_address(scaled);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=3000] [delay=20] hi").await;
    stream.up_to_nth("message.delta", 5).await;
    scaled.redis.kill();
    until_at_least(&worker_url, "holdfast_append_failures_total", 1.0).await;
    let without_redis = metrics(&api.base()).await;
    assert_eq!(value(&without_redis, "holdfast_reachable{place=\"redis\"}"), 0.0);
    assert_eq!(value(&without_redis, "holdfast_reachable{place=\"database\"}"), 1.0);
    postgres.stop();
    until_at_least(&worker_url, "holdfast_flush_failures_total", 1.0).await;
    let without_both = metrics(&api.base()).await;
    assert_eq!(value(&without_both, "holdfast_reachable{place=\"database\"}"), 0.0);
    // An old count would look like a current one.
    assert!(value(&without_both, "holdfast_runs{status=\"running\"}").is_nan());
    postgres.restart();
    scaled.redis.restart();
}

#[tokio::test]
async fn a_model_that_fails_is_counted_by_its_code() {
    let upstream = TestUpstream::refusing("no", &["yes"]).await;
    let mut process = Embedded::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "m")
        .with("OPENAI_BASE_URL", &upstream.base_url)
        .start();
    let client = process.client();
    for input in ["well", "no"] {
        client.wait_for_run(client.start(input).await["run"]["id"].as_str().unwrap()).await;
    }
    until_at_least(&process.base(), "holdfast_run_failures_total{code=\"model_refused\"}", 1.0).await;
    let metrics_text = metrics(&process.base()).await;
    assert_eq!(value(&metrics_text, "holdfast_model_failures_total{code=\"model_refused\"}"), 1.0);
    assert_eq!(value(&metrics_text, "holdfast_model_failures_total{code=\"model_unavailable\"}"), 0.0);
}

#[tokio::test]
async fn the_metrics_show_a_drain_to_its_end() {
    let (scaled, worker_url) = worker_address(ScaledOut::new());
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=100] [delay=40] hi").await;
    stream.up_to_nth("message.delta", 2).await;
    assert_eq!(value(&metrics(&worker_url).await, "holdfast_draining"), 0.0);
    worker.signal("TERM");
    until_at_least(&worker_url, "holdfast_draining", 1.0).await;
    assert_eq!(value(&metrics(&worker_url).await, "holdfast_runs_executing"), 1.0);
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
    assert!(worker.exit().success());
}

#[test]
fn a_taken_metrics_address_ends_the_worker() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let scaled = ScaledOut::new().with("HOLDFAST_METRICS_ADDR", listener.local_addr().unwrap());
    let reason = refusal(&mut scaled.command("worker"));
    assert!(reason.contains("set HOLDFAST_METRICS_ADDR to a free address"), "{reason}");
}

#[test]
fn prometheus_reads_each_expression_of_the_dashboard() {
    let expressions = expressions();
    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        let expression = expression.replace("$__rate_interval", "5m");
        json!({"record": format!("panel:{number}"), "expr": expression})
    });
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yml");
    fs::write(&path, rules.to_string()).unwrap();
    let report = promtool(&["check", "rules", path.to_str().unwrap()], "").unwrap();
    assert!(report.contains(&format!("{} rules found", expressions.len())), "{report}");
}

#[test]
fn each_alert_fires_when_it_should_and_has_a_runbook() {
    promtool(&["check", "rules", "docs/alerts.yml"], "").unwrap();
    promtool(&["test", "rules", "tests/alerts.yml"], "").unwrap();
    let (alerts, tests, pages) = (file("docs/alerts.yml"), file("tests/alerts.yml"), file("docs/operations.md"));
    let headings: BTreeSet<String> = pages.lines().filter_map(|line| line.strip_prefix("### ")).map(anchor).collect();
    let after = |start: &'static str| alerts.lines().filter_map(move |line| line.trim().strip_prefix(start));
    for alert in after("- alert: ") {
        assert!(tests.contains(&format!("{{<<: *silent, alertname: {alert}")) || alert == "HoldfastNoApi", "{alert}");
        assert!(tests.contains(&format!("        alertname: {alert}\n        exp_alerts:\n          - ")), "{alert}");
    }
    for runbook in after("runbook: ") {
        let heading = runbook.strip_prefix("docs/operations.md#").unwrap();
        assert!(headings.contains(heading), "docs/operations.md has no {heading}: {headings:#?}");
    }
    assert_eq!(after("- alert: ").count(), after("runbook: ").count());
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let slug = heading.to_lowercase().replace(' ', "-");
    slug.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}
