//! Schemas of other versions of the program.

use clap::Parser;
use holdfast_shared::{
    config::StoresConfig,
    storage::{self, Error},
};
use sqlx::{Connection, SqliteConnection};

#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    stores: StoresConfig,
}

#[tokio::test]
async fn an_old_sqlite_file_is_refused_until_it_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let config = Settings::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    // As a version before the last migration would have left it.
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    for sql in [
        "drop table chat_summaries",
        "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)",
    ] {
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
    let config = Settings::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    let newer = "insert into _sqlx_migrations select 9999, 'newer', installed_on, success, checksum, execution_time from _sqlx_migrations limit 1";
    sqlx::query(newer).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    storage::connect(&stores, &config).await.unwrap();
}
