//! The pools of connections to either database, and the statements outside transactions.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use sqlx::{AssertSqlSafe, SqlitePool};

use super::{
    Error, outages,
    pieces::PieceSizes,
    pool::{Connections, PostgresPool},
    statement::{Sql, statements},
    value::{Row, Value, postgres_args, sqlite_args},
    writer::SqliteWriter,
};

/// Time-out of one answer, which may be lost with its connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// Waits for an answer, in a box, because a run must not hold a query's state while it lives. An async block would hold that
/// state twice.
pub fn within<'a, T: 'a>(
    answer: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
) -> BoxFuture<'a, Result<T, sqlx::Error>> {
    let silent = || sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the database does not answer"));
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer);
    Box::pin(answer.map(move |answered| answered.unwrap_or_else(|_| Err(silent())).inspect_err(outages::note)))
}

/// A pool of connections to either database.
#[derive(Clone)]
pub enum Database {
    /// PostgreSQL.
    Postgres(PostgresPool),
    /// SQLite has one writer. Readers do not wait for it.
    Sqlite {
        /// The connection that writes.
        writer: SqliteWriter,
        /// The connections that read.
        reader: SqlitePool,
    },
}

statements! {
    /// Returns whether the server refuses writes. A file tells by its last write.
    IS_READ_ONLY {
        postgres = "select current_setting('transaction_read_only') = 'on'",
        sqlite = "select false",
    },
}

impl Database {
    /// Returns whether this is PostgreSQL, for a parameter that only one of the two understands.
    pub const fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Returns the database for writes that no caller waits for. On SQLite they let all other writes go first.
    pub fn in_background(&self) -> Self {
        match self {
            Self::Postgres(pool) => Self::Postgres(pool.clone()),
            Self::Sqlite { writer, reader } => Self::Sqlite { writer: writer.in_background(), reader: reader.clone() },
        }
    }

    /// Returns the sizes of the next pieces of background writes.
    pub(super) fn sizes(&self) -> &PieceSizes {
        match self {
            Self::Postgres(pool) => pool.sizes(),
            Self::Sqlite { writer, .. } => writer.sizes(),
        }
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> Connections {
        match self {
            Self::Postgres(pool) => pool.connections(),
            Self::Sqlite { writer, reader } => {
                let (writer, reader) = (connections(writer.pool()), connections(reader));
                Connections {
                    used: writer.used + reader.used,
                    idle: writer.idle + reader.idle,
                    max: writer.max + reader.max,
                }
            }
        }
    }

    /// Reads rows outside any transaction. `doing` names the action for the error.
    pub async fn fetch_all<T: Row>(&self, doing: &'static str, sql: Sql, args: Vec<Value>) -> Result<Vec<T>, Error> {
        let rows = match self {
            Self::Postgres(pool) => {
                within(pool.fetch_all(sqlx::query_as_with(AssertSqlSafe(sql.for_postgres()), postgres_args(args))))
                    .await
            }
            Self::Sqlite { reader, .. } => {
                within(sqlx::query_as_with(AssertSqlSafe(sql.for_sqlite()), sqlite_args(args)).fetch_all(reader)).await
            }
        };
        rows.map_err(Error::doing(doing))
    }

    /// Reads at most one row outside any transaction.
    pub async fn fetch_optional<T: Row>(
        &self,
        doing: &'static str,
        sql: Sql,
        args: Vec<Value>,
    ) -> Result<Option<T>, Error> {
        Ok(self.fetch_all(doing, sql, args).await?.into_iter().next())
    }

    /// Writes with one statement, and returns the rows that it touched.
    pub async fn write<T: Row>(&self, doing: &'static str, sql: Sql, args: Vec<Value>) -> Result<Vec<T>, Error> {
        match self {
            Self::Postgres(_) => self.fetch_all(doing, sql, args).await,
            Self::Sqlite { writer, .. } => {
                let query = sqlx::query_as_with(AssertSqlSafe(sql.for_sqlite()), sqlite_args(args));
                let _turn = writer.turn().await;
                writer.note(within(query.fetch_all(writer.pool())).await).map_err(Error::doing(doing))
            }
        }
    }

    /// Truncates SQLite's log of writes, which has rows that are deleted since. Returns false if a reader still needs the log.
    pub async fn truncate_log(&self) -> Result<bool, Error> {
        match self {
            Self::Postgres(_) => Ok(true),
            Self::Sqlite { writer, reader } => {
                const DOING: &str = "truncate the log of writes";
                // Order matters: this moves most of a long log while others write, so the writer truncates a short one.
                let moved = sqlx::raw_sql("pragma wal_checkpoint(passive)").execute(reader);
                within(moved).await.map_err(Error::doing(DOING))?;
                writer.truncate_log().await.map_err(Error::doing(DOING))
            }
        }
    }

    /// Returns when writes can succeed. A file that refused the last write must accept one.
    pub async fn ping(&self) -> Result<(), Error> {
        const PING: &str = "ping the database";
        if let Self::Sqlite { writer, .. } = self
            && writer.is_failing()
        {
            return writer.probe().await.map_err(Error::doing(PING));
        }
        match self.fetch_optional::<(bool,)>(PING, IS_READ_ONLY, vec![]).await? {
            Some((true,)) => {
                outages::leave_earlier_connections();
                Err(Error::doing(PING)(outages::read_only()))
            }
            _ => Ok(()),
        }
    }
}

fn connections(pool: &SqlitePool) -> Connections {
    // The pool may count below zero while a connection changes its user.
    let (open, idle) = (pool.size(), u32::try_from(pool.num_idle()).unwrap_or(0));
    Connections { used: open.saturating_sub(idle), idle, max: pool.options().get_max_connections() }
}
