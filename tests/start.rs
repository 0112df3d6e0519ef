//! Starts: the defaults work without settings, and wrong settings are refused with a reason.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Embedded, Holdfast, ScaledOut, refusal};

#[tokio::test]
async fn it_starts_with_nothing_and_says_what_it_uses() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start_as_it_is();
    let client = holdfast.client();
    holdfast.wait_for_log("worker started");
    let log_lines = [holdfast.wait_for_log("database: SQLite"), holdfast.wait_for_log("model: scripted")];
    assert!(log_lines[0].contains("holdfast.db") && log_lines[1].contains("CHAT_MODEL_PROVIDER"), "{log_lines:?}");
    let page = client.request(reqwest::Method::GET, "/").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<title>Holdfast</title>") && page.contains("src=\"/assets/"), "{page}");
    let submission = client.start("[tokens=3] hi").await;
    let run = client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    assert_eq!((run["status"].as_str(), run["model"].as_str()), (Some("completed"), Some("scripted/scripted")));
}

#[tokio::test]
async fn conversations_survive_a_restart() {
    let embedded = Embedded::new();
    let first = embedded.start_as_it_is().client().start("[tokens=3] hi").await;
    let id = first["conversation"]["id"].as_str().unwrap().to_owned();
    let client_holdfast = &mut embedded.start();
    let client = client_holdfast.client();
    client.wait_for_run(first["run"]["id"].as_str().unwrap()).await;
    let messages = client.get(&format!("/v1/conversations/{id}/messages")).await.unwrap();
    assert_eq!(messages["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn memory_keeps_nothing_and_says_so() {
    let embedded = Embedded::new().with("CHAT_MEMORY_BACKEND", "memory");
    let mut holdfast = embedded.start_as_it_is();
    holdfast.wait_for_log("everything is lost");
    let client = holdfast.client();
    let submission = client.start("[tokens=3] hi").await;
    client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    assert!(!embedded.data_dir().exists());
}

#[test]
fn ctrl_c_ends_an_idle_process_at_once() {
    let embedded = Embedded::new();
    for signal in ["INT", "TERM"] {
        let mut holdfast = embedded.start();
        holdfast.base();
        holdfast.wait_for_log("worker started");
        let since = Instant::now();
        holdfast.signal(signal);
        assert!(holdfast.exit().success());
        assert!(since.elapsed() < Duration::from_secs(3), "it took {:?}", since.elapsed());
    }
}

#[tokio::test]
async fn a_second_ctrl_c_ends_a_busy_process_at_once() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let mut events = holdfast.client().stream("[tokens=1000] [delay=100] hi").await;
    events.up_to("message.delta").await;
    holdfast.signal("INT");
    holdfast.wait_for_log("shutting down");
    holdfast.signal("INT");
    assert_eq!(holdfast.exit().code(), Some(130));
}

#[test]
fn a_taken_port_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let reason = refusal(Embedded::new().command().env("HOLDFAST_ADDR", &address));
    assert!(reason.contains(&address) && reason.contains("HOLDFAST_ADDR"), "{reason}");
}

#[test]
fn a_data_folder_that_another_process_holds_is_refused() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    holdfast.base();
    let reason = refusal(&mut embedded.command());
    assert!(reason.contains("in use by another Holdfast") && reason.contains("HOLDFAST_DATA_DIR"), "{reason}");
}

#[test]
fn an_old_schema_is_refused_until_it_is_migrated() {
    let scaled = ScaledOut::new();
    let fresh = test_servers::Postgres::database();
    for role in ["api", "worker"] {
        let reason = refusal(scaled.command(role).env("DATABASE_URL", fresh.url()));
        assert!(reason.contains("holdfast migrate"), "{reason}");
    }
    let migrate = scaled.command("migrate").env("DATABASE_URL", fresh.url()).status().unwrap();
    assert!(migrate.success());
    Holdfast::start(scaled.command("api").env("DATABASE_URL", fresh.url())).base();
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let check = |settings: &[(&str, &str)], role: Option<&str>, expected: &[&str]| {
        let mut command = Holdfast::command();
        command.env("HOLDFAST_DATA_DIR", "/dev/null/holdfast").args(role).envs(settings.iter().copied());
        let reason = refusal(&mut command);
        assert!(expected.iter().all(|part| reason.contains(part)), "{settings:?}: {reason}");
    };
    check(&[("HOLDFAST_ADDR", "nowhere")], None, &["HOLDFAST_ADDR", "127.0.0.1:8080"]);
    check(&[("HOLDFAST_WORKER_CONCURRENCY", "none")], None, &["HOLDFAST_WORKER_CONCURRENCY", "number"]);
    check(&[("HOLDFAST_LEASE_MS", "soon")], Some("worker"), &["HOLDFAST_LEASE_MS", "milliseconds"]);
    check(&[("CHAT_MODEL_PROVIDER", "oracle")], None, &["CHAT_MODEL_PROVIDER", "gemini", "scripted"]);
    check(&[("CHAT_HISTORY_LIMIT", "-1")], None, &["CHAT_HISTORY_LIMIT"]);
    check(&[("CHAT_MEMORY_BACKEND", "postgres")], None, &["CHAT_MEMORY_BACKEND", "DATABASE_URL"]);
    check(&[("DATABASE_URL", "postgres://x@127.0.0.1/x")], None, &["REDIS_URL"]);
    check(&[("REDIS_URL", "redis://127.0.0.1")], None, &["DATABASE_URL"]);
    check(&[("DATABASE_URL", "mysql://x"), ("REDIS_URL", "redis://x")], None, &["DATABASE_URL", "postgres://"]);
    let contradiction =
        [("DATABASE_URL", "postgres://x@127.0.0.1/x"), ("REDIS_URL", "redis://x"), ("CHAT_MEMORY_BACKEND", "sqlite")];
    check(&contradiction, None, &["CHAT_MEMORY_BACKEND", "DATABASE_URL"]);
    check(&[("OPENAI_API_KEY", "sk-x")], None, &["CHAT_MODEL_PROVIDER"]);
    check(&[("ANTHROPIC_API_KEY", "sk-x")], None, &["CHAT_MODEL_PROVIDER"]);
    check(&[("CHAT_MODEL_PROVIDER", "gemini")], None, &["GEMINI_API_KEY"]);
    check(&[], Some("api"), &["DATABASE_URL", "REDIS_URL"]);
    check(&[], Some("worker"), &["DATABASE_URL", "REDIS_URL"]);
    check(&[], None, &["/dev/null/holdfast", "HOLDFAST_DATA_DIR"]);
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let names = [
        "CHAT_MODEL_PROVIDER",
        "CHAT_MODEL_NAME",
        "OPENAI_API_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "HOLDFAST_METRICS_ADDR",
        "HOLDFAST_LEASE_MS",
    ];
    let mut embedded = Embedded::new();
    for name in names {
        embedded = embedded.with(name, "");
    }
    let mut holdfast = embedded.start();
    holdfast.base();
    holdfast.wait_for_log("model: scripted");
}

#[tokio::test]
async fn geminis_key_alone_chooses_gemini() {
    let embedded = Embedded::new().with("GEMINI_API_KEY", "x");
    let line = embedded.start().wait_for_log("model: ");
    assert!(line.contains("gemini, gemini-1.5-flash"), "{line}");
}

#[test]
fn help_lists_every_variable_with_its_default() {
    let help = Holdfast::command().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for part in [
        "HOLDFAST_ADDR",
        "127.0.0.1:8080",
        "HOLDFAST_DATA_DIR",
        "DATABASE_URL",
        "REDIS_URL",
        "HOLDFAST_WORKER_CONCURRENCY",
        "256",
        "HOLDFAST_LEASE_MS",
        "15000",
        "HOLDFAST_SWEEP_MS",
        "HOLDFAST_ARCHIVE_RETENTION_MS",
        "HOLDFAST_METRICS_ADDR",
        "CHAT_MODEL_PROVIDER",
        "CHAT_MODEL_NAME",
        "CHAT_MEMORY_BACKEND",
        "CHAT_HISTORY_LIMIT",
        "GEMINI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "OPENAI_BASE_URL",
    ] {
        assert!(help.contains(part), "--help does not show {part}");
    }
}

#[tokio::test]
async fn a_worker_serves_its_own_metrics_when_asked_to() {
    let address = format!("127.0.0.1:{}", test_servers::free_port());
    let scaled = ScaledOut::new().with("HOLDFAST_METRICS_ADDR", &address);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    client.wait_for_run(client.start("[tokens=3] hi").await["run"]["id"].as_str().unwrap()).await;
    let text = |path: &str| {
        let url = format!("http://{address}{path}");
        async move { reqwest::get(url).await.unwrap().text().await.unwrap() }
    };
    assert_eq!(text("/healthz").await, "ok\n");
    let metrics = text("/metrics").await;
    for name in [
        "holdfast_first_token_seconds_count 1",
        "holdfast_run_seconds_count 1",
        "holdfast_queue_wait_seconds_count 1",
        "holdfast_runs_ended_total{status=\"completed\"} 1",
        "holdfast_events_appended_total",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
    let metrics = client.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("holdfast_runs{status=\"queued\"} 0"), "{metrics}");
    assert_eq!(client.get("/readyz").await.unwrap(), json!({"ready": true}));
}
