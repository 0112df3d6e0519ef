//! The connections to PostgreSQL, each lent for one statement or one transaction.
//!
//! Whoever has had an answer gives its connection back as it is. One that is dropped before, in the middle of a statement or
//! of a transaction, is closed, and the server rolls back what it had begun.

use std::{
    io,
    time::{Duration, Instant},
};

use deadpool::managed::{self, Metrics, Object, QueueMode, RecycleError, RecycleResult};
use sqlx::{
    Connection as _, PgConnection, Postgres,
    postgres::{PgArguments, PgConnectOptions},
    query::QueryAs,
};

use super::{
    database::{Connections, Row},
    lost,
};

/// Longest wait for a connection; a database that takes longer counts as away.
pub(super) const ACQUIRE: Duration = Duration::from_secs(3);

/// Between two tries to connect to a server that is starting.
const STARTING: Duration = Duration::from_millis(100);

/// A connection that has lain idle for longer may be gone.
const UNTRIED: Duration = Duration::from_secs(1);

/// A connection that has lain idle for longer is closed, but for some.
const IDLE: Duration = Duration::from_secs(600);

/// Connections that are kept for whoever comes first.
const KEPT: usize = 2;

/// A connection that is older is closed, so that what a server keeps for it does not grow for ever.
const LIFETIME: Duration = Duration::from_secs(1800);

#[derive(Clone)]
pub(super) struct Pool(managed::Pool<Maker>);

/// A statement with its parameters, and what its rows are read as.
pub(super) type Query<'q, T> = QueryAs<'q, Postgres, T, PgArguments>;

/// Makes connections, and looks after those that are to be lent again.
struct Maker(PgConnectOptions);

struct Line {
    connection: PgConnection,
    made: Instant,
    returned: Instant,
}

/// A connection that somebody has for a while.
pub(super) struct Lent(Option<Object<Maker>>);

impl Pool {
    pub(super) fn new(options: PgConnectOptions, size: usize) -> Self {
        // Whoever was used last is used first, so that those that are not needed lie idle.
        let builder = managed::Pool::builder(Maker(options)).max_size(size).queue_mode(QueueMode::Lifo);
        let pool = builder.build().expect("a pool without timeouts needs no runtime");
        let watched = pool.weak();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE / 10).await;
                let Some(pool) = watched.upgrade() else { break };
                let mut spare = pool.status().size.saturating_sub(KEPT);
                pool.retain(|line, _| {
                    let is_needed = line.returned.elapsed() < IDLE || spare == 0;
                    spare -= usize::from(!is_needed);
                    is_needed
                });
            }
        });
        Self(pool)
    }

    /// A connection, as soon as there is one.
    pub(super) async fn lend(&self) -> Result<Lent, sqlx::Error> {
        match tokio::time::timeout(ACQUIRE, self.0.get()).await {
            Ok(Ok(line)) => Ok(Lent(Some(line))),
            Ok(Err(managed::PoolError::Backend(error))) => Err(error),
            Ok(Err(other)) => Err(sqlx::Error::Io(io::Error::other(other.to_string()))),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// The rows of a statement that is alone.
    pub(super) async fn fetch_all<T: Row>(&self, query: Query<'_, T>) -> Result<Vec<T>, sqlx::Error> {
        let mut lent = self.lend().await?;
        let rows = query.fetch_all(lent.connection()).await;
        lent.give_back(rows)
    }

    pub(super) fn connections(&self) -> Connections {
        let status = self.0.status();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Connections {
            used: number(status.size - status.available),
            idle: number(status.available),
            max: number(status.max_size),
        }
    }
}

impl managed::Manager for Maker {
    type Type = Line;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Line, sqlx::Error> {
        loop {
            match PgConnection::connect_with(&self.0).await {
                Ok(connection) => return Ok(Line { connection, made: Instant::now(), returned: Instant::now() }),
                Err(error) if is_starting(&error) => {
                    lost::note(&error);
                    tokio::time::sleep(STARTING).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A connection is tried again only if it has lain idle for long, or since before another one was lost.
    async fn recycle(&self, line: &mut Line, _: &Metrics) -> RecycleResult<sqlx::Error> {
        let idle = line.returned.elapsed();
        if line.made.elapsed() > LIFETIME {
            return Err(RecycleError::message("it is too old"));
        }
        if lost::was_read_only_since(line.made) {
            return Err(RecycleError::message("the server may have been demoted"));
        }
        if idle > UNTRIED || lost::within(idle) {
            line.connection.ping().await?;
        }
        Ok(())
    }
}

fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

impl Lent {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.0.as_mut().expect("it is lent until it is given back").connection
    }

    /// Gives the connection back, if this answer leaves it in order, and passes the answer on.
    pub(super) fn give_back<T>(mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if matches!(answer, Ok(_) | Err(sqlx::Error::Database(_)))
            && let Some(mut line) = self.0.take()
        {
            line.returned = Instant::now();
        }
        answer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(line) = self.0.take() {
            drop(Object::take(line));
        }
    }
}
