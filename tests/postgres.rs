//! The database is away during a run.

use reqwest::Method;
use serde_json::json;
use test_servers::Postgres;

use crate::support::{BlockStream, Client, Gate, GateMode, Holdfast, ScaledOut, agent, fold, refusal, stream_of};

#[tokio::test]
async fn a_run_finishes_although_postgres_is_restarted() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None).with("HOLDFAST_LEASE_MS", 15_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=600] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    postgres.stop();
    // The stream continues from memory, with one warning.
    frames.extend(stream.up_to("warning.raised").await);
    assert_eq!(frames.last().unwrap().data["code"], "database_away");
    frames.extend(stream.up_to_nth("message.delta", 20).await);
    // A client that resumes a run in this API's memory needs no database either.
    let met = frames[10..].to_vec();
    let again = client.events(&run_id, Some(&frames[9].id)).await.up_to_nth("message.delta", 20).await;
    assert_eq!(again, met[..again.len()]);
    postgres.restart();
    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 600);
    assert_eq!(frames.iter().filter(|frame| frame.event == "warning.raised").count(), 1);
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let run = client.run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(1)));
    assert_eq!(run["output_message"]["content"], fold(&frames));
    assert_eq!(client.events(&run_id, None).await.rest().await, frames);
}

#[tokio::test]
async fn an_outage_longer_than_a_lease_is_no_workers_death() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None)
        .with("HOLDFAST_LEASE_MS", 2_000)
        .with("HOLDFAST_SWEEP_MS", 100)
        .with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let (mut api, mut one, mut two) = (scaled.api(), scaled.worker(), scaled.worker());
    let client = api.client();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = client.stream("[tokens=350] [delay=20] hi").await;
        stream.up_to("message.delta").await;
        streams.push(stream);
    }
    postgres.stop();
    // A worker tries to renew its leases for 667 ms, and retries after 133 ms.
    for worker in [&mut one, &mut two] {
        worker.wait_for_logs("failed to renew leases in time", 4);
    }
    postgres.restart();
    for stream in streams {
        let run_id = stream.run_id.clone();
        stream.rest().await;
        let run = client.run(&run_id).await;
        assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("completed"), Some(1)));
    }
}

#[tokio::test]
async fn a_reconnect_to_an_agents_run_needs_no_database_on_its_old_wire() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None).with("HOLDFAST_LEASE_MS", 15_000);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let mut stream = stream_of(&client, &agent_id, "[tokens=600] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    let met = stream.up_to_nth("message.delta", 5).await.pop().unwrap();
    let mut before = Vec::new();
    for wire in ["native", "chat", "text", "agent", "ai-sdk"] {
        let query = format!("wire={wire}");
        let blocks = BlockStream::rejoin(&client, &run_id, &query, Some(&met.id)).await.unwrap().take(5).await;
        before.push((query, blocks));
    }
    postgres.stop();
    stream.up_to("warning.raised").await;
    for (query, blocks) in before {
        let again = BlockStream::rejoin(&client, &run_id, &query, Some(&met.id)).await.unwrap().take(5).await;
        assert_eq!(again, blocks, "{query}");
    }
}

#[tokio::test]
async fn without_a_database_a_message_is_refused_and_the_next_one_after_it_is_back_is_taken() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let scaled = ScaledOut::on(database.url().to_owned(), None);
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    client.wait_for_run(client.start("[tokens=1]").await["run"]["id"].as_str().unwrap()).await;
    postgres.stop();
    let failure = client.post("/v1/runs", json!({"input": "[tokens=1]"})).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (503, "database_away"));
    every_write_is_refused_for_now(&client).await;
    postgres.restart();
    let submission = client.start("[tokens=1]").await;
    assert_eq!(client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await["status"], "completed");
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 2);
}

/// Checks that each write fails with 503 and Retry-After, so that clients retry.
async fn every_write_is_refused_for_now(client: &Client) {
    let id = "01890000-0000-7000-8000-000000000000";
    let message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let briefing = json!({"agent_id": id, "title": "t", "summary": "s"});
    let writes = [
        (Method::POST, "/v1/conversations".to_owned(), json!({})),
        (Method::PATCH, format!("/v1/conversations/{id}"), json!({"title": "t"})),
        (Method::DELETE, format!("/v1/conversations/{id}"), json!({})),
        (Method::POST, format!("/v1/conversations/{id}/messages"), json!({"content": "hi"})),
        (Method::POST, format!("/v1/conversations/{id}/fork"), json!({"checkpoint_id": id})),
        (Method::POST, "/v1/sessions/s/messages".to_owned(), json!({"content": "hi"})),
        (Method::POST, format!("/v1/runs/{id}/cancel"), json!({})),
        (Method::POST, format!("/v1/runs/{id}/approvals/{id}"), json!({"decision": "approve"})),
        (Method::POST, format!("/v1/runs/{id}/tool_results/call_1"), json!({"output": "x"})),
        (Method::POST, "/v1/agents".to_owned(), json!({"name": "a"})),
        (Method::PUT, format!("/v1/agents/{id}/conversation"), json!({})),
        (Method::POST, "/v1/briefings".to_owned(), briefing),
        (Method::POST, "/api/chat".to_owned(), json!({"id": "c", "message": message})),
        (Method::POST, "/api/chat/c/stop".to_owned(), json!({})),
        (Method::POST, "/api/chat/stream".to_owned(), json!({"message": "hi"})),
        (Method::POST, "/api/agent/stream".to_owned(), json!({"message": "hi", "context_type": "global"})),
        (Method::POST, format!("/api/conversations/{id}/messages"), json!({"content": "hi"})),
    ];
    let refused = writes.map(|(method, path, body)| async move {
        let response = client.request(method.clone(), &path).json(&body).send().await.unwrap();
        let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        (format!("{method} {path}"), response.status().as_u16(), retry_after)
    });
    for (write, status, retry_after) in futures::future::join_all(refused).await {
        assert_eq!((status, retry_after.as_deref()), (503, Some("1")), "{write}");
    }
}

#[tokio::test]
async fn a_proxy_that_accepts_and_hangs_up_is_a_database_that_is_away() {
    let database = Postgres::database();
    let gate = Gate::before(database.url(), GateMode::Open);
    let scaled = ScaledOut::on(gate.url().to_owned(), Some(database));
    let mut api = scaled.api();
    let client = api.client();
    client.start("hi").await;
    gate.set_mode(GateMode::Closed);
    for _ in 0..20 {
        let refused = client.post("/v1/runs", json!({"input": "hi"})).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (503, "database_away"), "{refused:?}");
    }
    let mut late = Holdfast::start(&mut scaled.command("api"));
    late.wait_for_log("failed to reach the database");
    gate.set_mode(GateMode::Open);
    late.client().start("hi").await;
    client.start("hi").await;
}

#[tokio::test]
async fn a_server_that_was_read_only_is_left_for_a_new_connection() {
    let database = Postgres::database();
    let url = database.url().to_owned();
    let scaled = ScaledOut::on(url.clone(), None);
    let mut api = scaled.api();
    let client = api.client();
    client.start("hi").await;
    let name = url.rsplit('/').next().unwrap();
    // Each connection keeps the state that its server reported when it was opened.
    database.execute(&format!("alter database {name} set default_transaction_read_only = on"));
    let end_all = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    database.execute(end_all);
    while !api.log_so_far().contains("read-only") {
        let refused = client.post("/v1/runs", json!({"input": "hi"})).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (503, "database_away"), "{refused:?}");
    }
    let ready = client.request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(ready.status(), 503, "the server accepts connections but no writes");
    database.execute(&format!("begin read write; alter database {name} reset default_transaction_read_only; commit"));
    client.start("hi").await;
    assert_eq!(client.get("/readyz").await.unwrap(), json!({"ready": true}));
}

#[tokio::test]
async fn a_pooler_that_drops_the_search_path_is_refused_with_a_reason() {
    let database = Postgres::database();
    let gate = Gate::before(database.url(), GateMode::Open);
    let scaled = ScaledOut::on(gate.url().to_owned(), None);
    gate.set_mode(GateMode::WithoutOptions);
    for role in ["migrate", "api", "worker"] {
        let reason = refusal(&mut scaled.command(role));
        assert!(reason.contains("search_path") && reason.contains("alter role"), "{reason}");
    }
    let name = database.url().rsplit('/').next().unwrap();
    database.execute(&format!("alter database {name} set search_path = kb"));
    scaled.api().client().start("hi").await;
}

#[tokio::test]
async fn a_run_whose_rows_a_failover_has_lost_frees_its_slot() {
    let database = Postgres::database();
    let scaled = ScaledOut::on(database.url().to_owned(), None)
        .with("HOLDFAST_LEASE_MS", 60_000)
        .with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let (mut api, mut worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=20] [delay=20] lost").await;
    stream.up_to("message.delta").await;
    database.execute("delete from kb.chat_conversations");
    worker.wait_for_log("another worker holds the run");
    let submission = client.start("[tokens=3] next").await;
    assert_eq!(client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await["status"], "completed");
}
