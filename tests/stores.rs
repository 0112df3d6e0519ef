//! Stores: which outages a start waits for, which settings it refuses, and when it falls back to memory.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use test_servers::Postgres;

use crate::support::{Client, Embedded, Holdfast, ScaledOut, of_kind, refusal};

/// Starts a database server and a deployment on it, whose schema is up to date.
fn on_its_own_postgres() -> (Postgres, ScaledOut) {
    let postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None);
    (postgres, scaled)
}

async fn answers(client: &Client) {
    let submission = client.start("[tokens=3] hi").await;
    assert_eq!(client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await["status"], "completed");
}

/// Returns the first log lines about failed attempts.
fn failed_attempts(holdfast: &mut Holdfast) -> Vec<String> {
    holdfast.wait_for_logs("failed to reach", 3)
}

#[tokio::test]
async fn every_role_waits_for_a_postgres_that_starts_later() {
    let (mut postgres, scaled) = on_its_own_postgres();
    postgres.stop();
    let [mut api, mut worker, mut migrate] =
        ["api", "worker", "migrate"].map(|role| Holdfast::start(&mut scaled.command(role)));
    for process in [&mut api, &mut worker, &mut migrate] {
        let failed_attempts = failed_attempts(process);
        assert!(
            failed_attempts[0].contains("WARN failed to reach the database")
                && failed_attempts[0].contains("Connection refused"),
            "{failed_attempts:?}"
        );
        assert!(
            failed_attempts[1..].iter().all(|line| !line.contains("error=")),
            "the cause is logged once: {failed_attempts:?}"
        );
    }
    postgres.restart();
    assert!(migrate.exit().success());
    answers(&api.client()).await;
    worker.wait_for_log("worker started");
}

#[tokio::test]
async fn a_postgres_that_is_still_starting_up_is_waited_for() {
    let (mut postgres, scaled) = on_its_own_postgres();
    postgres.restart_unready();
    let mut holdfast = Holdfast::start(&mut both_roles(&scaled));
    let failed_attempts = failed_attempts(&mut holdfast);
    assert!(failed_attempts[0].contains("the database system is not accepting connections"), "{failed_attempts:?}");
    postgres.restart();
    answers(&holdfast.client()).await;
}

#[tokio::test]
async fn a_redis_that_starts_later_is_waited_for() {
    let mut scaled = ScaledOut::new();
    scaled.redis.kill();
    let mut holdfast = Holdfast::start(&mut both_roles(&scaled));
    let failed_attempts = failed_attempts(&mut holdfast);
    assert!(
        failed_attempts[0].contains("WARN failed to reach Redis") && failed_attempts[0].contains("Connection refused"),
        "{failed_attempts:?}"
    );
    scaled.redis.restart();
    answers(&holdfast.client()).await;
}

#[test]
fn the_start_deadline_ends_the_process_with_a_reason() {
    let (mut postgres, mut scaled) = on_its_own_postgres();
    scaled = scaled.with("HOLDFAST_START_PATIENCE_MS", 300);
    let check = |mut command: Command, expected: &[&str]| {
        let reason = refusal(&mut command);
        let expected = expected.iter().chain(&["300 ms", "HOLDFAST_START_PATIENCE_MS", "Connection refused"]);
        assert!(expected.clone().all(|part| reason.contains(part)), "{reason}");
        assert_eq!(command.status().unwrap().code(), Some(1));
    };
    scaled.redis.kill();
    check(scaled.command("api"), &["REDIS_URL"]);
    postgres.stop();
    for role in ["api", "worker", "migrate"] {
        check(scaled.command(role), &["DATABASE_URL"]);
    }
}

#[test]
fn a_server_that_refuses_is_not_waited_for() {
    let scaled = ScaledOut::new();
    let database = Postgres::database();
    let check = |variable: &str, value: &str, expected: &str| {
        let since = Instant::now();
        let reason = refusal(scaled.command("api").env(variable, value));
        assert!(reason.contains(expected) && !reason.contains("PATIENCE"), "{reason}");
        assert!(since.elapsed() < Duration::from_secs(10), "it was waited for: {:?}", since.elapsed());
    };
    check("DATABASE_URL", &database.url_with_wrong_password(), "password authentication failed");
    check("DATABASE_URL", &database.url().replace("/test_", "/no_test_"), "does not exist");
    scaled.redis.call("CONFIG SET requirepass secret").unwrap();
    check("REDIS_URL", &scaled.redis.url().replace("//", "//:wrong@"), "REDIS_URL");
}

#[test]
fn sigterm_ends_the_wait_at_once() {
    let (mut postgres, scaled) = on_its_own_postgres();
    postgres.stop();
    // An interrupted `migrate` has failed.
    for (role, status) in [("api", 0), ("worker", 0), ("migrate", 1)] {
        let mut process = Holdfast::start(&mut scaled.command(role));
        process.wait_for_log("failed to reach");
        let since = Instant::now();
        process.signal("TERM");
        assert_eq!(process.exit().code(), Some(status), "{role}");
        assert!(since.elapsed() < Duration::from_secs(3), "it took {:?}", since.elapsed());
    }
}

#[tokio::test]
async fn session_service_uri_is_another_name_for_database_url() {
    let scaled = ScaledOut::new();
    let renamed = |database_url: Option<&str>| {
        let mut command = both_roles(&scaled);
        command.env_remove("DATABASE_URL").env("SESSION_SERVICE_URI", &scaled.database_url);
        command.envs(database_url.map(|url| ("DATABASE_URL", url)));
        command
    };
    for database_url in [None, Some(scaled.database_url.as_str())] {
        let mut holdfast = Holdfast::start(&mut renamed(database_url));
        holdfast.wait_for_log("database: PostgreSQL");
        answers(&holdfast.client()).await;
    }
    let reason = refusal(&mut renamed(Some("postgres://x@127.0.0.1/other")));
    assert!(reason.contains("SESSION_SERVICE_URI: ") && reason.contains("DATABASE_URL"), "{reason}");
    let reason = refusal(renamed(None).env_remove("REDIS_URL"));
    assert!(reason.contains("REDIS_URL: is needed beside SESSION_SERVICE_URI"), "{reason}");
    let reason = refusal(renamed(None).env("SESSION_SERVICE_URI", "sqlite:///x.db"));
    assert!(reason.contains("SESSION_SERVICE_URI: expected a URL that begins with postgres://"), "{reason}");
}

#[test]
fn mongo_uri_is_refused_with_what_to_use_instead() {
    let mongo = Embedded::new().with("MONGO_URI", "mongodb://someone:secret@127.0.0.1");
    let reason = refusal(&mut mongo.command());
    let parts = ["holdfast: MONGO_URI: ", "DATABASE_URL", "REDIS_URL", "HOLDFAST_DATA_DIR"];
    assert!(parts.iter().all(|part| reason.contains(part)) && !reason.contains("secret"), "{reason}");
    Embedded::new().with("MONGO_URI", "").start().base();
    let help = Holdfast::command().arg("--help").env("MONGO_URI", "mongodb://x").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("MONGO"));
}

#[tokio::test]
async fn without_a_usable_database_it_falls_back_to_memory_if_allowed_and_says_so() {
    let embedded = Embedded::new().with("CHAT_MEMORY_FALLBACK", "true");
    fs::write(embedded.data_dir(), "a file where the folder should be").unwrap();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let log_line = holdfast.wait_for_log("THE DATABASE CANNOT BE USED");
    assert!(
        log_line.contains("WARN") && log_line.contains("kept in memory") && log_line.contains("data folder"),
        "{log_line}"
    );
    let ready = client.get("/readyz").await.unwrap();
    let warning = ready["warnings"][0].as_str().unwrap();
    assert!(warning.contains("kept in memory"), "{ready}");
    assert_eq!(ready, json!({"ready": true, "warnings": [warning]}));
    // A conversation works, and each of its runs warns once that its answer is only in memory.
    let mut conversation_id = Value::Null;
    for _ in 0..2 {
        let body = json!({"input": "[tokens=3] hi", "conversation_id": conversation_id});
        let submission = client.post("/v1/runs", body).await.unwrap();
        conversation_id = submission["conversation"]["id"].clone();
        let frames = client.events(submission["run"]["id"].as_str().unwrap(), None).await.rest().await;
        let warnings = of_kind(&frames, "warning.raised");
        assert_eq!(warnings.len(), 1, "{frames:#?}");
        assert_eq!((warnings[0]["code"].as_str(), warnings[0]["id"].as_str()), (Some("kept_in_memory"), Some("1-2")));
        assert_eq!(warnings[0]["message"], *warning);
        assert_eq!(frames.last().unwrap().event, "run.completed");
    }
    let path = format!("/v1/conversations/{}/messages", conversation_id.as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap()["items"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_run_that_is_answered_warns_in_its_first_attempt_only() {
    let embedded = Embedded::new().with("CHAT_MEMORY_FALLBACK", "true");
    fs::write(embedded.data_dir(), "a file where the folder should be").unwrap();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut stream = client.stream("[approval]").await;
    let mut frames = stream.up_to("approval.requested").await;
    let approval_id = frames.last().unwrap().data["approval_id"].as_str().unwrap();
    let path = format!("/v1/runs/{}/approvals/{approval_id}", stream.run_id);
    client.post(&path, json!({"decision": "approve"})).await.unwrap();
    frames.extend(stream.rest().await);
    assert_eq!(of_kind(&frames, "attempt.started").len(), 2);
    assert_eq!(of_kind(&frames, "warning.raised").len(), 1, "{frames:#?}");
}

#[tokio::test]
async fn a_run_whose_progress_the_database_refuses_by_a_rule_ends_with_an_error() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let rule = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(\"create trigger rule before insert on \
                agent_run_tool_calls begin select raise(abort, 'refused'); end\")";
    let file = embedded.data_dir().join("holdfast.db");
    assert!(Command::new("python3").args(["-c", rule]).arg(file).status().unwrap().success());
    let started = client.start("[call=scripted__echo {\"text\": \"hi\"}] [tokens=3]").await;
    let run = client.wait_for_run(started["run"]["id"].as_str().unwrap()).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("state_not_stored")), "{run}");
}

#[test]
fn a_faulty_file_is_refused_or_replaced_by_memory() {
    let check = |break_it: &dyn Fn(&Embedded) -> Command, cause: &str| {
        let embedded = Embedded::new();
        let mut command = break_it(&embedded);
        let reason = refusal(&mut command);
        let parts = ["holdfast.db", "HOLDFAST_DATA_DIR", "backup", cause];
        assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
        let mut holdfast = Holdfast::start(command.env("CHAT_MEMORY_FALLBACK", "true"));
        assert!(holdfast.wait_for_log("THE DATABASE CANNOT BE USED").contains("holdfast.db"));
        holdfast.base();
    };
    let with_file = |embedded: &Embedded, bytes: &[u8]| {
        fs::create_dir_all(embedded.data_dir()).unwrap();
        fs::write(embedded.data_dir().join("holdfast.db"), bytes).unwrap();
        embedded.command()
    };
    check(&|embedded| with_file(embedded, &[b'x'; 4096]), "not a database");
    check(&|embedded| with_file(embedded, &damaged_behind_its_header()), "malformed");
    let folder = |embedded: &Embedded| {
        fs::create_dir_all(embedded.data_dir().join("holdfast.db")).unwrap();
        embedded.command()
    };
    check(&folder, "unable to open");
    // A full disk: files may grow to 8 KiB.
    check(&|embedded| with_file_limit(embedded, "16"), "disk I/O error");
}

/// Starts a process with a largest file size, in blocks of 512 bytes. A larger write fails as on a full disk.
fn with_file_limit(embedded: &Embedded, blocks: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!(r#"trap '' XFSZ; ulimit -S -f {blocks}; exec "$0""#);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_holdfast")]);
    let settings = embedded.command();
    command.env_clear().envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[tokio::test]
async fn a_disk_that_was_full_for_a_moment_takes_messages_again() {
    let embedded = Embedded::new();
    let mut holdfast = Holdfast::start(&mut with_file_limit(&embedded, "unlimited"));
    let client = holdfast.client();
    answers(&client).await;
    let limit_files = |bytes: &str| {
        let pid = holdfast.id().to_string();
        let limited = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status();
        assert!(limited.unwrap().success());
    };
    let readiness = async || {
        let response = client.request(reqwest::Method::GET, "/readyz").send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    limit_files("4096");
    for _ in 0..3 {
        let refused = client.post("/v1/runs", json!({"input": "[tokens=3] hi"})).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (503, "database_away"), "{refused:?}");
        let (status, problem) = readiness().await;
        assert_eq!((status, &problem["reason"]), (503, &json!("database")), "{problem}");
    }
    limit_files("unlimited");
    assert_eq!(readiness().await, (200, json!({"ready": true})));
    answers(&client).await;
}

/// Creates a database file of which only the header is intact.
fn damaged_behind_its_header() -> Vec<u8> {
    let embedded = Embedded::new();
    embedded.start().wait_for_log("worker started");
    let mut bytes = fs::read(embedded.data_dir().join("holdfast.db")).unwrap();
    bytes[100..].fill(0xff);
    bytes
}

#[test]
fn the_fallback_hides_no_mistake() {
    let embedded = Embedded::new().with("CHAT_MEMORY_FALLBACK", "true");
    let mut holdfast = embedded.start();
    holdfast.base();
    assert!(!holdfast.log_so_far().contains("CANNOT BE USED"));
    let reason = refusal(&mut embedded.command());
    assert!(reason.contains("in use by another Holdfast"), "{reason}");
    let scaled = ScaledOut::new().with("CHAT_MEMORY_FALLBACK", "true");
    for mut command in [scaled.command("api"), scaled.command("worker"), both_roles(&scaled)] {
        let reason = refusal(&mut command);
        assert!(reason.contains("CHAT_MEMORY_FALLBACK: ") && reason.contains("DATABASE_URL"), "{reason}");
    }
}

/// Returns the command of plain `holdfast` with PostgreSQL and Redis.
fn both_roles(scaled: &ScaledOut) -> Command {
    let mut command = Holdfast::command();
    command.env("DATABASE_URL", &scaled.database_url).env("REDIS_URL", scaled.redis.url());
    command.envs(scaled.settings.iter().cloned());
    command
}
