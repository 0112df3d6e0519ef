//! The statements of storage, on the schema that the migrations make.

use holdfast_shared::storage::statement_texts;

use crate::{backends::TestBackends, on_each_backend};

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
