//! The statements of the workspace, on the schema that the migrations make.

use holdfast_workspace::statement_texts;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr, SqliteConnection};

use crate::{backends::TestWorkspace, on_both_databases};

on_both_databases!(the_database_can_prepare_every_statement);

async fn the_database_can_prepare_every_statement(test: TestWorkspace) {
    let texts = statement_texts(test.storage.back_end());
    assert!(texts.len() > 40, "{} statements", texts.len());
    let mut refused = Vec::new();
    for (name, text) in texts {
        let text = AssertSqlSafe(text).into_sql_str();
        let prepared = match test.urls() {
            (Some(url), _) => {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                sqlx::query("set search_path to kb").execute(&mut connection).await.unwrap();
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
