//! The extension pgvector, which an operator may create in PostgreSQL at any time, and the schema's part for it.

use sqlx::AssertSqlSafe;

use super::{Database, Error, pool::PooledConnection, statement::statements};

const SCHEMA: &str = include_str!("../../../../migrations/pgvector.sql");

/// The extension pgvector in the database, as this process found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pgvector {
    /// The database does not have it.
    Missing,
    /// The schema was brought up to date before the extension was there.
    WithoutTable,
    /// Searches can use it.
    Ready,
}

statements! {
    /// Returns whether the extension is there, and whether its column is.
    FIND_PGVECTOR {
        postgres = "
            select exists (select 1 from pg_extension where extname = 'vector'),
                exists (
                    select 1
                    from pg_attribute
                    where attrelid = to_regclass('kb.passage_embeddings')
                      and attname = 'embedding'
                      and not attisdropped
                )
        ",
    },
}

impl Pgvector {
    const fn of(found: (bool, bool)) -> Self {
        match found {
            (false, _) => Self::Missing,
            (true, false) => Self::WithoutTable,
            (true, true) => Self::Ready,
        }
    }
}

/// Looks for the extension.
pub async fn find_pgvector(database: &Database) -> Result<Pgvector, Error> {
    match database {
        Database::Postgres(_) => {
            let found = database.fetch_optional("look for pgvector", FIND_PGVECTOR, vec![]).await?;
            Ok(found.map_or(Pgvector::Missing, Pgvector::of))
        }
        Database::Sqlite { .. } => Ok(Pgvector::Missing),
    }
}

/// Makes the schema's part for the extension, if it is there. The caller holds the lock of the schema.
pub async fn migrate_pgvector(connection: &mut PooledConnection) -> Result<(), Error> {
    let find = sqlx::query_as(AssertSqlSafe(FIND_PGVECTOR.for_postgres()));
    let found = find.fetch_one(connection.connection()).await.map_err(Error::doing("look for pgvector"))?;
    if Pgvector::of(found) == Pgvector::WithoutTable {
        let made = sqlx::raw_sql(SCHEMA).execute(connection.connection()).await;
        made.map_err(Error::doing("make the tables for pgvector"))?;
        tracing::info!("made the tables for pgvector");
    }
    Ok(())
}
