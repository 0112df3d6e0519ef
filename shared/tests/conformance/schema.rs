//! Schemas of other versions of this program.

use clap::Parser;
use holdfast_shared::{
    config::StoresConfig,
    storage::{self, Error},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use test_servers::Postgres;
use uuid::Uuid;

#[derive(Parser)]
struct MigrationArgs {
    #[command(flatten)]
    stores: StoresConfig,
}

#[tokio::test]
async fn an_old_sqlite_file_is_refused_until_it_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let config = MigrationArgs::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    // The file of a version without the last migrations.
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    for sql in ["drop table chat_summaries", "delete from _sqlx_migrations where version = 13"] {
        sqlx::query(sql).execute(&mut file).await.unwrap();
    }
    file.close().await.unwrap();
    let refused = storage::connect(&stores, &config).await.err().expect("it was accepted");
    assert!(matches!(refused, Error::OldSchema) && refused.to_string().contains("holdfast migrate"), "{refused}");
    storage::migrate(&stores, &config).await.unwrap();
    storage::connect(&stores, &config).await.unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_accepted_because_a_deploy_runs_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let config = MigrationArgs::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    let newer = "insert into _sqlx_migrations select 9999, 'newer', installed_on, success, checksum, execution_time from _sqlx_migrations limit 1";
    sqlx::query(newer).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    storage::connect(&stores, &config).await.unwrap();
}

#[tokio::test]
async fn messages_of_a_version_without_turns_get_the_turn_of_their_run() {
    let database = Postgres::database();
    let config =
        MigrationArgs::parse_from(["conformance", "--database-url", database.url(), "--redis-url", "redis://x"]).stores;
    storage::migrate(&config.stores().unwrap(), &config).await.unwrap();
    let mut server = PgConnection::connect(database.url()).await.unwrap();
    let (conversation, run) = (Uuid::now_v7(), Uuid::now_v7());
    let statements = [
        format!(
            "insert into kb.chat_conversations (id, owner_id, created_at, activity_at) values ('{conversation}', 'ann', now(), now())"
        ),
        format!(
            "insert into kb.chat_messages (id, conversation_id, owner_id, run_id, position, role, content, status, created_at) \
             values ('{}', '{conversation}', 'ann', '{run}', 2, 'user', 'q', 'complete', now())",
            Uuid::now_v7()
        ),
        format!(
            "insert into kb.agent_runs (id, owner_id, conversation_id, position, status, input_message_id, output_message_id, archived_to, checkpoint, created_at) \
             values ('{run}', 'ann', '{conversation}', 2, 'queued', '{run}', '{run}', 1, 1, now())"
        ),
        format!(
            "insert into kb.chat_messages (id, conversation_id, owner_id, run_id, position, role, content, status, created_at) \
             values ('{}', '{conversation}', 'ann', '{run}', 5, 'assistant', 'a', 'complete', now())",
            Uuid::now_v7()
        ),
    ];
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut server).await.unwrap();
    }
    let turns: Vec<i64> =
        sqlx::query_scalar("select turn from kb.chat_messages order by position").fetch_all(&mut server).await.unwrap();
    assert_eq!(turns, [2, 2]);
}

#[tokio::test]
async fn four_processes_can_migrate_a_fresh_database_at_once() {
    let database = Postgres::database();
    let config =
        MigrationArgs::parse_from(["conformance", "--database-url", database.url(), "--redis-url", "redis://x"]).stores;
    let stores = config.stores().unwrap();
    let migrate = || storage::migrate(&stores, &config);
    for migrated in <[_; 4]>::from(tokio::join!(migrate(), migrate(), migrate(), migrate())) {
        migrated.unwrap();
    }
}
