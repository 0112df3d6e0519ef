//! SQLite's one writer: its connection, the lanes to it, and whether the file refused the last write.
//!
//! SQLite itself ends a transaction when the disk is full, but sqlx still counts it as open. The pool closes such a
//! connection, and the next transaction opens another.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sqlx::{
    AssertSqlSafe, Connection as _, Sqlite, SqliteConnection, SqlitePool, Transaction, sqlite::SqlitePoolOptions,
};

use super::{
    database::within,
    error::is_of_the_file,
    lanes::{Lane, LaneTurn, Lanes},
    pieces::PieceSizes,
    pool::ACQUIRE,
};

#[derive(Clone)]
pub struct SqliteWriter {
    pool: SqlitePool,
    /// True if the last write failed because of the file. The next successful write clears it.
    failing: Arc<AtomicBool>,
    lanes: Lanes,
    lane: Lane,
    sizes: PieceSizes,
}

/// A transaction of the writer. Dropping it rolls it back.
pub struct SqliteTransaction {
    // Order matters: the transaction ends before its turn.
    tx: Transaction<'static, Sqlite>,
    failing: Arc<AtomicBool>,
    _turn: LaneTurn,
}

impl SqliteWriter {
    pub fn new(pool: SqlitePool) -> Self {
        let (lanes, sizes) = (Lanes::default(), PieceSizes::default());
        Self { pool, failing: Arc::default(), lanes, lane: Lane::Foreground, sizes }
    }

    /// Returns the writer for writes that let all others go first.
    pub fn in_background(&self) -> Self {
        Self { lane: Lane::Background, ..self.clone() }
    }

    /// Returns the sizes of the next pieces.
    pub fn sizes(&self) -> &PieceSizes {
        &self.sizes
    }

    /// Returns when it is this writer's turn to ask for the connection. That takes the time of other writes, so it is no part of
    /// the time for an answer.
    pub async fn turn(&self) -> LaneTurn {
        self.lanes.turn(self.lane).await
    }

    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub async fn begin(&self, turn: LaneTurn) -> Result<SqliteTransaction, sqlx::Error> {
        let transaction = within(self.pool.begin_with("begin immediate")).await;
        // The begin of a transaction proves nothing about the disk.
        let tx = transaction.inspect_err(|error| note_failure(&self.failing, error))?;
        Ok(SqliteTransaction { tx, failing: Arc::clone(&self.failing), _turn: turn })
    }

    /// Stores the outcome of a write outside any transaction.
    pub fn note<T>(&self, written: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        note(&self.failing, written)
    }

    /// Writes one page without a change of data.
    pub async fn probe(&self) -> Result<(), sqlx::Error> {
        let written = within(sqlx::raw_sql("pragma user_version = 0").execute(&self.pool)).await;
        self.note(written).map(drop)
    }

    /// Moves all writes from the log beside the file into the file, and truncates the log, because it also has rows that are
    /// deleted since. Returns false if a reader still needs it.
    pub async fn truncate_log(&self) -> Result<bool, sqlx::Error> {
        let _turn = self.in_background().turn().await;
        let truncate = async {
            let mut connection = self.pool.acquire().await?;
            // A long read, such as that of a backup, must not hold up the writer.
            sqlx::raw_sql("pragma busy_timeout = 0").execute(&mut *connection).await?;
            let checkpoint = sqlx::query_as::<_, (i64, i64, i64)>("pragma wal_checkpoint(truncate)");
            let truncated = checkpoint.fetch_one(&mut *connection).await;
            let wait_again = format!("pragma busy_timeout = {}", ACQUIRE.as_millis());
            sqlx::raw_sql(AssertSqlSafe(wait_again)).execute(&mut *connection).await?;
            truncated.map(|(is_busy, _, _)| is_busy == 0)
        };
        within(truncate).await
    }
}

impl SqliteTransaction {
    pub fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }

    /// Stores the failure of a statement because of the file.
    pub fn note<T>(&self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        answer.inspect_err(|error| note_failure(&self.failing, error))
    }

    pub async fn commit(self) -> Result<(), sqlx::Error> {
        note(&self.failing, within(self.tx.commit()).await)
    }

    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        within(self.tx.rollback()).await
    }
}

/// Has the pool close each connection that returns with a transaction.
pub fn closing_unsettled(options: SqlitePoolOptions) -> SqlitePoolOptions {
    options.after_release(|connection, _| {
        Box::pin(async move {
            if connection.is_in_transaction() {
                // Order matters: the ping returns after the rollback of a dropped transaction. A begin in flight does not count
                // yet, but the pool's own ping comes after this and waits for it.
                connection.ping().await?;
            }
            Ok(!connection.is_in_transaction())
        })
    })
}

fn note<T>(failing: &AtomicBool, written: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
    match &written {
        Ok(_) => failing.store(false, Ordering::Relaxed),
        Err(error) => note_failure(failing, error),
    }
    written
}

fn note_failure(failing: &AtomicBool, error: &sqlx::Error) {
    if is_of_the_file(error) {
        failing.store(true, Ordering::Relaxed);
    }
}
