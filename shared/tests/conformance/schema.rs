//! Schemas of other versions of this program.

use std::collections::BTreeMap;

use clap::Parser;
use holdfast_shared::{
    config::StoresConfig,
    storage::{self, Error},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use test_servers::Postgres;

#[derive(Parser)]
struct MigrationArgs {
    #[command(flatten)]
    stores: StoresConfig,
}

#[tokio::test]
async fn a_file_that_lacks_a_migration_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = MigrationArgs::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    // The file of a version without the last migration.
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    sqlx::query("delete from _sqlx_migrations").execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    let refused = storage::connect(&stores, &config).await.err().expect("it was accepted");
    assert!(matches!(refused, Error::OldSchema) && refused.to_string().contains("holdfast migrate"), "{refused}");
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

/// The first migration of another build.
const OTHER_BUILD: &str = "update _sqlx_migrations set checksum = cast('other' as CHECKSUM) where version = 1";

#[tokio::test]
async fn a_folder_of_a_build_before_the_first_version_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let config = MigrationArgs::parse_from(["conformance", "--data-dir", folder.path().to_str().unwrap()]).stores;
    let stores = config.stores().unwrap();
    drop(storage::connect(&stores, &config).await.unwrap());
    let mut file = SqliteConnection::connect(&format!("sqlite:{}/holdfast.db", folder.path().display())).await.unwrap();
    sqlx::query(AssertSqlSafe(OTHER_BUILD.replace("CHECKSUM", "blob"))).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    let contents = || -> BTreeMap<_, _> {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    };
    let before = contents();
    let refusals = [
        storage::connect(&stores, &config).await.err(),
        storage::migrate(&stores, &config).await.err(),
        storage::inspect(&stores, &config).await.err(),
    ];
    for refused in refusals.map(|refused| refused.expect("it was accepted")) {
        assert!(matches!(refused, Error::UnreleasedSchema), "{refused}");
    }
    assert_eq!(contents(), before);
}

#[tokio::test]
async fn a_database_of_a_build_before_the_first_version_is_refused() {
    let database = Postgres::database();
    let config =
        MigrationArgs::parse_from(["conformance", "--database-url", database.url(), "--redis-url", "redis://x"]).stores;
    let stores = config.stores().unwrap();
    storage::migrate(&stores, &config).await.unwrap();
    let mut server = PgConnection::connect(database.url()).await.unwrap();
    let other_build = OTHER_BUILD.replace("CHECKSUM", "bytea").replace("update ", "update kb.");
    sqlx::query(AssertSqlSafe(other_build)).execute(&mut server).await.unwrap();
    for refused in [storage::connect(&stores, &config).await.err(), storage::migrate(&stores, &config).await.err()] {
        let refused = refused.expect("it was accepted");
        assert!(matches!(refused, Error::UnreleasedSchema), "{refused}");
    }
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
