//! The statements of storage, on the schema that the migrations make.

use holdfast_shared::storage::{Target, statement_texts};

use crate::{backends::TestBackends, on_each_backend, raw::Raw};

#[tokio::test]
async fn sqlite_plans_statements_without_the_values_of_their_parameters() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("holdfast.db")).unwrap();
    let is_stable = Raw::sqlite(folder.path()).await.number("select sqlite_compileoption_used('ENABLE_QPSG')").await;
    assert_eq!(is_stable, 1, "cargo has not read .cargo/config.toml, which sets LIBSQLITE3_FLAGS");
}

async fn the_database_can_prepare_every_statement(backends: TestBackends) {
    // A file has the statements of a database in memory.
    let Some(mut raw) = backends.raw().await else { return };
    let mut refused = Vec::new();
    for (name, text) in statement_texts(backends.storage.back_end()) {
        if let Err(error) = raw.prepare(&text).await {
            refused.push(format!("{name}: {error}\n{text}"));
        }
    }
    assert!(refused.is_empty(), "the database refuses {} statements:\n{}", refused.len(), refused.join("\n\n"));
}

/// Statements that find runs by their ids or their conversation, though they also name the status.
const LOOKUPS: [&str; 10] = [
    "memories::HOLD",
    "run::closing::END",
    "run::closing::INSERT_ANSWER",
    "run::completion::FREE",
    "run::flush::EXTEND",
    "run::queued::TAKE_QUEUED",
    "run::steering::END_JOINED_RUNS",
    "run::steering::INSERT_JOINED_EVENTS",
    "run::steering::STEERING_MESSAGES",
    "run::unfinished::LOCK_UNFINISHED",
];

/// PostgreSQL may plan a worker's statements while nothing runs or waits, and keep these plans for thousands of runs.
#[tokio::test]
async fn plans_made_while_nothing_runs_find_each_run_by_its_id() {
    let backends = TestBackends::scaled_out().await;
    for _ in 0..50 {
        backends.submit(Target::New { agent_id: None }, "hi").await;
    }
    let mut raw = backends.raw().await.expect("PostgreSQL has connections");
    raw.execute("update agent_runs set status = 'completed', finished_at = now()", "").await;
    let texts = statement_texts(backends.storage.back_end());
    for lookup in LOOKUPS {
        let (_, text) = texts.iter().find(|(name, _)| name.ends_with(lookup)).expect(lookup);
        let plan = raw.generic_plan(text).await;
        let is_scan = |line: &str| line.contains("Scan") && line.contains("on agent_runs");
        let scans: Vec<_> = plan.windows(2).filter(|lines| is_scan(&lines[0])).collect();
        assert!(!scans.is_empty(), "{lookup} finds no run: {plan:#?}");
        assert!(scans.iter().all(|lines| lines[1].contains("Index Cond: ")), "{lookup} may read many runs: {plan:#?}");
        // The id is the last column of other indexes, so such a lookup reads all of them.
        let mut by_id = scans.iter().filter(|lines| lines[1].contains("(id = "));
        assert!(by_id.all(|lines| lines[0].contains("agent_runs_pkey")), "{lookup} may read an index: {plan:#?}");
    }
}

on_each_backend!(the_database_can_prepare_every_statement);
