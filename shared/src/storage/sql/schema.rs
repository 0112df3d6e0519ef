//! The schema's version: forward only, one numbered file per step and dialect in `migrations/`.

use std::{collections::HashSet, time::Duration};

use sqlx::{
    Row as _,
    migrate::{Migrate as _, Migrator},
};

use super::{Database, Error, pgvector::migrate_pgvector, pool::PooledConnection, statement::statements};

/// One of several concurrent processes migrates. The driver's own lock is of a connection, and a pooler may share that, so
/// a transaction of another connection has the lock until the migration ends. The others wait without a transaction,
/// which would keep a connection of the pooler.
const TRY_LOCK: &str =
    "begin; set local idle_in_transaction_session_timeout = 0; select pg_try_advisory_xact_lock(7306082915)";

/// Pause between two tries.
const ANOTHER_TRY: Duration = Duration::from_millis(200);

static POSTGRES: Migrator = sqlx::migrate!("../migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("../migrations/sqlite");

/// The schema after all migrations of SQLite, for a new file. SQLite reads its whole schema again at each `alter table`, and
/// the migrations have 84 of them.
const SQLITE_SCHEMA: &str = include_str!("../../../../migrations/sqlite.sql");

statements! {
    /// Returns the versions of the applied migrations.
    APPLIED = "
        select version
        from _sqlx_migrations
        where success
    ",
    /// Returns the name of the table of migrations, if there is one.
    MIGRATIONS_TABLE {
        postgres = "
            select tablename::text
            from pg_tables
            where schemaname = 'kb' and tablename = '_sqlx_migrations'
        ",
        sqlite = "
            select name
            from sqlite_master
            where name = '_sqlx_migrations'
        ",
    },
}

/// Applies each missing migration.
pub async fn migrate(database: &Database) -> Result<(), Error> {
    match database {
        Database::Postgres(pool) => {
            let mut lock = pool.acquire().await.map_err(Error::doing("connect to migrate"))?;
            let mut connection = pool.acquire().await.map_err(Error::doing("connect to migrate"))?;
            while !try_lock(&mut lock).await.map_err(Error::doing("lock the schema"))? {
                tokio::time::sleep(ANOTHER_TRY).await;
            }
            let created = sqlx::raw_sql("create schema if not exists kb").execute(connection.connection()).await;
            created.map_err(Error::doing("create the schema kb"))?;
            let mut migrations = Migrator { migrations: POSTGRES.migrations.clone(), ..Migrator::DEFAULT };
            migrations.set_locking(false).run(connection.connection()).await?;
            migrate_pgvector(&mut connection).await?;
        }
        Database::Sqlite { writer, .. } => {
            // In one transaction, because each commit waits for the disk. It writes from its first statement on, so it waits
            // for another program that writes.
            let mut tx =
                writer.pool().begin_with("begin immediate").await.map_err(Error::doing("begin the migration"))?;
            tx.ensure_migrations_table(&SQLITE.table_name).await?;
            if tx.list_applied_migrations(&SQLITE.table_name).await?.is_empty() {
                let created = sqlx::raw_sql(SQLITE_SCHEMA).execute(&mut *tx).await;
                created.map_err(Error::doing("create the schema"))?;
                SQLITE.skip(&mut *tx, None).await?;
            } else {
                SQLITE.run(&mut *tx).await?;
            }
            tx.commit().await.map_err(Error::doing("commit the migration"))?;
        }
    }
    Ok(())
}

async fn try_lock(lock: &mut PooledConnection) -> Result<bool, sqlx::Error> {
    let is_locked: bool = sqlx::raw_sql(TRY_LOCK).fetch_one(lock.connection()).await?.try_get(0)?;
    if !is_locked {
        sqlx::raw_sql("rollback").execute(lock.connection()).await?;
    }
    Ok(is_locked)
}

/// Refuses a database that lacks a migration. One with more migrations is of a newer version, which keeps it readable.
pub async fn check(database: &Database) -> Result<(), Error> {
    if is_empty(database).await? {
        return Err(Error::OldSchema);
    }
    let applied = database.fetch_all::<(i64,)>("read the schema's version", APPLIED, vec![]).await?;
    let applied: HashSet<i64> = applied.into_iter().map(|row| row.0).collect();
    let known = match database {
        Database::Postgres(_) => &POSTGRES,
        Database::Sqlite { .. } => &SQLITE,
    };
    if known.iter().any(|migration| !applied.contains(&migration.version)) {
        return Err(Error::OldSchema);
    }
    Ok(())
}

/// Returns whether the database has no applied migration.
pub async fn is_empty(database: &Database) -> Result<bool, Error> {
    let tables = database.fetch_all::<(String,)>("look for the schema", MIGRATIONS_TABLE, vec![]).await?;
    Ok(tables.is_empty())
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

    use super::{SQLITE, SQLITE_SCHEMA};

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations/sqlite.sql");

    /// The statements that made the schema, without those that SQLite makes itself.
    const OBJECTS: &str = "
        select sql || ';'
        from sqlite_schema
        where sql is not null
          and name not like 'sqlite_%'
          and name not in (
              'passage_words_data', 'passage_words_idx', 'passage_words_docsize', 'passage_words_config'
          )
          and name <> '_sqlx_migrations'
        order by rowid
    ";

    /// The settings of the full-text index, which the schema does not show.
    const SETTINGS: &str = "select group_concat(k || '=' || v) from passage_words_config";
    const MAKE_SETTINGS: &str = "insert into passage_words (passage_words, rank) values ('secure-delete', 1);";

    /// The tables that have no rows after the migrations.
    const EMPTY_TABLES: &str = "
        select name
        from sqlite_schema
        where type = 'table'
          and name not in ('passage_words_data', 'passage_words_config', '_sqlx_migrations')
    ";

    async fn file() -> SqliteConnection {
        SqliteConnection::connect("sqlite::memory:").await.unwrap()
    }

    async fn texts(file: &mut SqliteConnection, sql: &'static str) -> Vec<String> {
        sqlx::query_scalar(sql).fetch_all(file).await.unwrap()
    }

    #[tokio::test]
    async fn the_schema_of_a_new_file_is_that_of_all_migrations() {
        let mut migrated = file().await;
        SQLITE.run(&mut migrated).await.unwrap();
        let objects = texts(&mut migrated, OBJECTS).await;
        for table in texts(&mut migrated, EMPTY_TABLES).await {
            let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}")))
                .fetch_one(&mut migrated)
                .await
                .unwrap();
            assert_eq!(rows, 0, "a migration writes rows of {table}, which a new file would lack");
        }
        if std::env::var_os("HOLDFAST_UPDATE_SCHEMA").is_some() {
            let head = "-- The schema of a new file: all migrations of migrations/sqlite in one. A test writes it.";
            let text = [&[head.to_owned()], objects.as_slice(), &[MAKE_SETTINGS.to_owned()]].concat().join("\n");
            std::fs::write(FILE, text + "\n").unwrap();
            return;
        }
        let mut new = file().await;
        sqlx::raw_sql(SQLITE_SCHEMA).execute(&mut new).await.unwrap();
        let advice = "set HOLDFAST_UPDATE_SCHEMA to write migrations/sqlite.sql";
        assert_eq!(texts(&mut new, OBJECTS).await, objects, "{advice}");
        assert_eq!(texts(&mut new, SETTINGS).await, texts(&mut migrated, SETTINGS).await, "{advice}");
    }
}
