//! The schema's version: forward only, one numbered file per step and dialect in `migrations/`.

use std::{collections::HashMap, time::Duration};

use sqlx::{Row as _, migrate::Migrator};

use super::{Database, Error, pgvector::migrate_pgvector, pool::PooledConnection, statement::statements};

/// One of several concurrent processes migrates. The driver's own lock is of a connection, and a pooler may share that, so
/// a transaction of another connection has the lock until the migration ends. The others wait without a transaction,
/// which would keep a connection of the pooler.
const TRY_LOCK: &str =
    "begin; set local idle_in_transaction_session_timeout = 0; select pg_try_advisory_xact_lock(7306082915)";

/// Pause between two tries.
const ANOTHER_TRY: Duration = Duration::from_millis(200);

/// The version of the first migration.
const FIRST: i64 = 1;

static POSTGRES: Migrator = sqlx::migrate!("../migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("../migrations/sqlite");

statements! {
    /// Returns the versions and the checksums of the applied migrations.
    APPLIED = "
        select version, checksum
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
    if !is_empty(database).await? {
        applied(database).await?;
    }
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
            SQLITE.run(&mut *tx).await?;
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
    let applied = applied(database).await?;
    if known(database).iter().any(|migration| !applied.contains_key(&migration.version)) {
        return Err(Error::OldSchema);
    }
    Ok(())
}

fn known(database: &Database) -> &'static Migrator {
    match database {
        Database::Postgres(_) => &POSTGRES,
        Database::Sqlite { .. } => &SQLITE,
    }
}

/// Returns the checksums of the applied migrations, by their versions. Fails for a database of a build before version 0.1.
async fn applied(database: &Database) -> Result<HashMap<i64, Vec<u8>>, Error> {
    let applied = database.fetch_all::<(i64, Vec<u8>)>("read the schema's version", APPLIED, vec![]).await?;
    let applied: HashMap<i64, Vec<u8>> = applied.into_iter().collect();
    match applied.get(&FIRST) {
        Some(checksum)
            if known(database).iter().any(|known| known.version == FIRST && *known.checksum != **checksum) =>
        {
            Err(Error::UnreleasedSchema)
        }
        _ => Ok(applied),
    }
}

/// Returns whether the database has no applied migration.
pub async fn is_empty(database: &Database) -> Result<bool, Error> {
    let tables = database.fetch_all::<(String,)>("look for the schema", MIGRATIONS_TABLE, vec![]).await?;
    Ok(tables.is_empty())
}
