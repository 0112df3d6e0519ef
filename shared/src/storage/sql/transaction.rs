//! Transactions. One function begins, commits and rolls back all of them.

use sqlx::AssertSqlSafe;

use super::{
    Database, Error,
    database::within,
    pool::PooledConnection,
    statement::Sql,
    value::{Row, Value, postgres_args, sqlite_args},
    writer::SqliteTransaction,
};
use crate::quotas::QuotaExceeded;

/// A transaction. Dropping it rolls it back, sooner or later.
pub struct Tx {
    /// The action, for errors, as in "could not <doing>".
    pub(super) doing: &'static str,
    pub(super) connection: TxConnection,
}

/// The connection of a transaction.
pub(super) enum TxConnection {
    Postgres(PooledConnection),
    Sqlite(SqliteTransaction),
}

/// The decision at the end of a transaction, with its result.
pub enum Settle<T> {
    /// The writes stay.
    Commit(T),
    /// The writes go, and the locks are free at once.
    RollBack(T),
}

pub use Settle::{Commit, RollBack};

impl Database {
    /// Runs `body` in a transaction that may write, and commits or rolls back as its result says. An error rolls back.
    /// `doing` names the action for the error, which also says whether a retry can help.
    pub async fn transact<T>(
        &self,
        doing: &'static str,
        body: impl AsyncFnOnce(&mut Tx) -> Result<Settle<T>, Error>,
    ) -> Result<T, Error> {
        let mut tx = self.begin(doing).await?;
        match body(&mut tx).await {
            Ok(Commit(result)) => tx.settle("commit").await.map(|()| result),
            Ok(RollBack(result)) => tx.settle("rollback").await.map(|()| result),
            // Dropping the transaction closes its connection, which a refusal need not cost.
            Err(error) => {
                if !error.is_away() {
                    // The first error has the cause, whatever the rollback says.
                    let _ = tx.settle("rollback").await;
                }
                Err(error)
            }
        }
    }

    async fn begin(&self, doing: &'static str) -> Result<Tx, Error> {
        let begun = match self {
            Self::Postgres(pool) => {
                let begin = async {
                    let mut connection = pool.acquire().await?;
                    sqlx::raw_sql(pool.begin()).execute(connection.connection()).await?;
                    Ok(TxConnection::Postgres(connection))
                };
                within(begin).await
            }
            Self::Sqlite { writer, .. } => writer.begin(writer.turn().await).await.map(TxConnection::Sqlite),
        };
        Ok(Tx { doing, connection: begun.map_err(Error::doing(doing))? })
    }
}

impl Tx {
    /// Executes a statement, and returns the number of rows that it touched.
    pub async fn execute(&mut self, sql: Sql, args: Vec<Value>) -> Result<u64, Error> {
        let touched = match &mut self.connection {
            TxConnection::Postgres(tx) => {
                let query = sqlx::query_with(AssertSqlSafe(sql.for_postgres()), postgres_args(args));
                within(query.execute(tx.connection())).await.map(|done| done.rows_affected())
            }
            TxConnection::Sqlite(tx) => {
                let query = sqlx::query_with(AssertSqlSafe(sql.for_sqlite()), sqlite_args(args));
                let executed = within(query.execute(tx.connection())).await;
                tx.note(executed).map(|done| done.rows_affected())
            }
        };
        touched.map_err(Error::doing(self.doing))
    }

    /// Executes a statement, and returns its rows.
    pub async fn fetch_all<T: Row>(&mut self, sql: Sql, args: Vec<Value>) -> Result<Vec<T>, Error> {
        let rows = match &mut self.connection {
            TxConnection::Postgres(tx) => {
                let query = sqlx::query_as_with(AssertSqlSafe(sql.for_postgres()), postgres_args(args));
                within(query.fetch_all(tx.connection())).await
            }
            TxConnection::Sqlite(tx) => {
                let query = sqlx::query_as_with(AssertSqlSafe(sql.for_sqlite()), sqlite_args(args));
                let rows = within(query.fetch_all(tx.connection())).await;
                tx.note(rows)
            }
        };
        rows.map_err(Error::doing(self.doing))
    }

    /// Executes a statement, and returns its first row.
    pub async fn fetch_optional<T: Row>(&mut self, sql: Sql, args: Vec<Value>) -> Result<Option<T>, Error> {
        Ok(self.fetch_all(sql, args).await?.into_iter().next())
    }

    /// Executes a statement, and returns its first row. Fails if there is none.
    pub async fn fetch_one<T: Row>(&mut self, sql: Sql, args: Vec<Value>) -> Result<T, Error> {
        self.fetch_optional(sql, args).await?.ok_or_else(|| self.no_row())
    }

    /// Returns the error of a statement that must return a row.
    pub fn no_row(&self) -> Error {
        Error::doing(self.doing)(sqlx::Error::RowNotFound)
    }

    /// Returns the error of a quota that refuses the transaction.
    pub fn refused_by(&self, exceeded: QuotaExceeded) -> Error {
        Error::Quota { doing: self.doing, exceeded }
    }

    async fn settle(self, how: &'static str) -> Result<(), Error> {
        let settled = match self.connection {
            TxConnection::Postgres(mut tx) => {
                within(async {
                    let settled = sqlx::raw_sql(how).execute(tx.connection()).await.map(drop);
                    tx.release(settled)
                })
                .await
            }
            TxConnection::Sqlite(tx) if how == "commit" => tx.commit().await,
            TxConnection::Sqlite(tx) => tx.rollback().await,
        };
        settled.map_err(Error::doing(self.doing))
    }
}
