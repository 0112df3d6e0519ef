//! The statements of storage, on the schema that the migrations make.

use holdfast_shared::storage::statement_texts;

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

/// Statements of workers that find runs by their ids, though they also name the status.
const LOOKUPS: [&str; 7] =
    ["EXTEND", "FREE", "END", "INSERT_ANSWER", "INSERT_JOINED_EVENTS", "END_JOINED_RUNS", "HOLD"];

/// PostgreSQL may plan a worker's statements while nothing runs or waits, and keep these plans for thousands of runs.
async fn plans_made_while_nothing_runs_find_each_run_by_its_id(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    for (name, text) in statement_texts(backends.storage.back_end()) {
        // The id is the last column of the queue's index, so such a lookup reads all of it.
        let may_scan = name == "TAKE_QUEUED";
        if !may_scan && !LOOKUPS.contains(&name) {
            continue;
        }
        // Only PostgreSQL keeps plans.
        let Some(plan) = raw.generic_plan(&text).await else { return };
        let is_scan = |line: &str| line.contains("Scan") && line.contains("on agent_runs");
        let scans: Vec<_> = plan.windows(2).filter(|lines| is_scan(&lines[0])).collect();
        assert!(may_scan || !scans.is_empty(), "{name} finds no run: {plan:#?}");
        for scan in scans {
            let condition = scan[1].trim_start().trim_start_matches("Index Cond: ").trim_start_matches('(');
            let is_lookup =
                ["id = ", "conversation_id = ", "parent_run_id = "].iter().any(|key| condition.starts_with(key));
            let reads_queue = scan[0].contains("agent_runs_queue ") && condition.starts_with("id = ");
            assert!(!reads_queue && (is_lookup || may_scan), "{name} may read many runs: {plan:#?}");
        }
    }
}

on_each_backend!(the_database_can_prepare_every_statement, plans_made_while_nothing_runs_find_each_run_by_its_id);
