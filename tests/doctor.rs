//! `holdfast doctor` finds bad settings before a process starts with them.

use std::{
    io::{Read, Write},
    net::TcpListener,
    process::Command,
    thread,
};

use test_servers::Postgres;

use crate::support::{Embedded, Holdfast, ScaledOut};

/// Returns the exit status and the output of the command.
fn doctor(command: &mut Command, args: &[&str]) -> (Option<i32>, String) {
    let output = command.args(args).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[test]
fn a_deployment_that_works_is_well_for_each_role() {
    let scaled = ScaledOut::new();
    for (role, part) in [("api", "users"), ("worker", "model"), ("both", "model")] {
        let (status, printed) = doctor(&mut scaled.command("doctor"), &[role]);
        assert_eq!(status, Some(0), "{printed}");
        for part in [part, "database", "Redis"] {
            assert!(printed.contains(&format!("ok     {part}: ")), "{printed}");
        }
    }
}

#[test]
fn all_faults_are_reported_at_once() {
    let mut scaled = ScaledOut::new();
    scaled.redis.kill();
    let mut command = scaled.command("doctor");
    command.env("DATABASE_URL", "postgres://x@127.0.0.1:1/x");
    command.env("HOLDFAST_MCP_USER", "nobody-of-this-name");
    command.env("CHAT_MODEL_PROVIDER", "gemini").env("HOLDFAST_AGENTS", "/nowhere/agents.yaml");
    let (status, printed) = doctor(&mut command, &["worker"]);
    assert_eq!(status, Some(1), "{printed}");
    for wrong in [
        "model: GEMINI_API_KEY",
        "MCP servers: HOLDFAST_MCP_USER",
        "agents: HOLDFAST_AGENTS",
        "database: could not",
        "Redis: could not",
    ] {
        assert!(printed.contains(&format!("wrong  {wrong}")), "{printed}");
    }
    assert!(printed.contains("holdfast: 5 parts are wrong"), "{printed}");
}

#[test]
fn a_value_that_no_process_reads_is_refused_by_its_variable() {
    let (status, printed) = doctor(Holdfast::command().env("HOLDFAST_LEASE_MS", "soon"), &["doctor"]);
    assert_eq!(status, Some(2), "{printed}");
    assert!(printed.contains("HOLDFAST_LEASE_MS"), "{printed}");
}

#[test]
fn an_old_schema_is_wrong_unless_a_migration_comes_next() {
    let scaled = ScaledOut::new();
    let fresh = Postgres::database();
    let examine = |args: &[&str]| doctor(scaled.command("doctor").env("DATABASE_URL", fresh.url()), args);
    let (status, printed) = examine(&["api"]);
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("wrong  database: the database's schema is older"), "{printed}");
    let (status, printed) = examine(&["api", "--before-migrate"]);
    assert_eq!(status, Some(0), "{printed}");
}

#[test]
fn a_redis_that_takes_no_writes_is_wrong() {
    let scaled = ScaledOut::new();
    scaled.redis.call("REPLICAOF 127.0.0.1 1").unwrap();
    let (status, printed) = doctor(&mut scaled.command("doctor"), &["api"]);
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("wrong  Redis: ") && printed.to_lowercase().contains("read"), "{printed}");
}

#[test]
fn the_doctor_makes_no_database() {
    let embedded = Embedded::new();
    let (status, printed) = doctor(&mut embedded.command(), &["doctor"]);
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("the first start makes it") && !embedded.data_dir().exists(), "{printed}");
    embedded.start_as_it_is().wait_for_log("worker started");
    let (status, printed) = doctor(&mut embedded.command(), &["doctor"]);
    assert_eq!((status, printed.contains("up to date")), (Some(0), true), "{printed}");
}

#[test]
fn budgets_beyond_the_memory_of_the_container_are_a_warning() {
    let scaled = ScaledOut::new();
    // The memory of the containers in docker-compose.yml.
    for (role, memory) in [("api", 1 << 30), ("worker", 2_u64 << 30)] {
        let examine =
            |memory: u64| doctor(&mut scaled.command("doctor"), &[role, "--memory-bytes", &memory.to_string()]);
        let (status, printed) = examine(memory);
        assert_eq!(status, Some(0), "{printed}");
        assert!(printed.contains("ok     memory: its budgets allow "), "{printed}");
        let (status, printed) = examine(memory / 2);
        assert_eq!(status, Some(0), "{printed}");
        let setting =
            if role == "api" { "HOLDFAST_ANSWERS_BYTES (256 MiB)" } else { "HOLDFAST_VECTOR_BYTES (512 MiB)" };
        assert!(printed.contains("warn   memory: ") && printed.contains(setting), "{printed}");
    }
}

/// Starts a provider that gives each request this answer; returns its address.
fn provider_answering(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            // The request ends with its JSON.
            while !request.ends_with(b"}") {
                let read = socket.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..read]);
            }
            let head = "content-type: application/json\r\nconnection: close";
            let _ = write!(socket, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

#[test]
fn a_model_that_its_provider_refuses_is_wrong_and_a_busy_provider_is_a_warning() {
    let unknown = r#"{"error":{"message":"no such model","code":"model_not_found"}}"#;
    let key = r#"{"error":{"message":"Incorrect API key provided: secret-key"}}"#;
    for (status, body, expected, line) in [
        ("404 Not Found", unknown, 1, "wrong  model: openai does not know the model \"gpt-x\""),
        ("401 Unauthorized", key, 1, "wrong  model: the credentials for openai model \"gpt-x\" are refused"),
        ("503 Service Unavailable", "{}", 0, "warn   model: openai model \"gpt-x\" is unavailable"),
    ] {
        let embedded = Embedded::new()
            .with("CHAT_MODEL_PROVIDER", "openai")
            .with("CHAT_MODEL_NAME", "gpt-x")
            .with("OPENAI_API_KEY", "secret-key")
            .with("OPENAI_BASE_URL", provider_answering(status, body))
            .with("HOLDFAST_MODEL_RETRY_MS", 1);
        let (status, printed) = doctor(&mut embedded.command(), &["doctor"]);
        assert_eq!(status, Some(expected), "{printed}");
        assert!(printed.contains(line) && !printed.contains("secret-key"), "{printed}");
    }
}
