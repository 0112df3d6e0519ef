//! The statements of storage, on the schema that the migrations make.

use std::collections::HashMap;

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

/// PostgreSQL may plan a worker's statements while nothing runs or waits, and keep these plans for thousands of runs.
async fn plans_made_while_nothing_runs_find_each_run_by_its_id(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let texts: HashMap<_, _> = statement_texts(backends.storage.back_end()).into_iter().collect();
    // Only PostgreSQL ends runs in groups.
    if !texts.contains_key("FREE") {
        return;
    }
    for name in ["EXTEND", "FREE", "END", "INSERT_ANSWER"] {
        let plan = raw.generic_plan(&texts[name]).await.expect("only PostgreSQL has all of them");
        let lookups: Vec<_> = plan.windows(2).filter(|lines| lines[0].contains("Scan using agent_runs")).collect();
        assert!(!lookups.is_empty(), "{name} finds no run: {plan:#?}");
        let is_lookup = |lines: &&[String]| {
            let condition = lines[1].trim_start().trim_start_matches("Index Cond: ").trim_start_matches('(');
            ["id = ", "conversation_id = ", "parent_run_id = "].iter().any(|key| condition.starts_with(key))
        };
        assert!(lookups.iter().all(is_lookup), "{name} may read many runs: {plan:#?}");
    }

    // The id is the last column of the queue's index, so such a lookup reads all of it.
    let plan = raw.generic_plan(&texts["TAKE_QUEUED"]).await.unwrap();
    let reads_queue = |lines: &[String]| lines[0].contains("agent_runs_queue") && lines[1].contains("(id = ");
    assert!(!plan.windows(2).any(reads_queue), "{plan:#?}");
}

on_each_backend!(the_database_can_prepare_every_statement, plans_made_while_nothing_runs_find_each_run_by_its_id);
