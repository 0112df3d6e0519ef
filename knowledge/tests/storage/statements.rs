//! The statements of knowledge, on the schema that the migrations make.

use holdfast_knowledge::statement_texts;
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr, SqliteConnection};

use crate::{
    backends::{TestKnowledge, connect_postgres},
    on_both_databases,
};

on_both_databases!(the_database_can_prepare_every_statement);

#[tokio::test]
async fn a_database_with_pgvector_can_prepare_every_statement() {
    let create = "create schema extensions; create extension vector schema extensions";
    let test = TestKnowledge::before_pgvector().await.with_pgvector(create, 0).await;
    let statements = statement_texts(&test.storage);
    assert!(statements.iter().any(|(name, _)| name.ends_with("embeddings::NEAREST")));
    the_database_can_prepare_every_statement(test).await;
}

async fn the_database_can_prepare_every_statement(test: TestKnowledge) {
    let texts = statement_texts(&test.storage);
    assert!(texts.len() > 30, "{} statements", texts.len());
    let mut refused = Vec::new();
    for (name, text) in texts {
        let text = AssertSqlSafe(text).into_sql_str();
        let prepared = match test.urls() {
            (Some(url), _) => {
                let mut connection = connect_postgres(&url).await;
                connection.prepare(text).await.map(drop)
            }
            (None, file) => {
                let mut connection = SqliteConnection::connect(&file).await.unwrap();
                connection.prepare(text).await.map(drop)
            }
        };
        refused.extend(prepared.err().map(|error| format!("{name}: {error}")));
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
