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

on_each_backend!(the_database_can_prepare_every_statement);
