//! The pooled connections to PostgreSQL, each used for one statement or one transaction.
//!
//! A user that received its answer returns the connection to the pool. A connection that is dropped earlier, within a
//! statement or a transaction, is closed, and the server rolls back.

use std::{
    io,
    time::{Duration, Instant},
};

use deadpool::managed::{self, Metrics, Object, QueueMode, RecycleError, RecycleResult};
use sqlx::{Connection as _, PgConnection, Postgres, postgres::PgArguments, query::QueryAs};

use super::{outages, pieces::PieceSizes, servers::Servers, value::Row};

/// Time-out of getting a connection. A slower database counts as away.
pub const ACQUIRE: Duration = Duration::from_secs(3);

/// Pause between two attempts to connect to a starting server.
const STARTING: Duration = Duration::from_millis(100);

/// Idle time after which the pool tests a connection before its next use.
const UNTRIED: Duration = Duration::from_secs(1);

/// Time-out of that test.
const PING: Duration = Duration::from_secs(1);

/// Idle time after which the pool closes a connection.
const IDLE: Duration = Duration::from_secs(600);

/// Idle connections that the pool keeps open.
const KEPT: usize = 2;

/// Age at which the pool closes a connection, so that the server's memory for it does not grow for ever.
const LIFETIME: Duration = Duration::from_secs(1800);

/// The number of a process's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Connections in use.
    pub used: u32,
    /// Open connections without a user.
    pub idle: u32,
    /// Most connections.
    pub max: u32,
}

#[derive(Clone)]
pub struct PostgresPool {
    pool: managed::Pool<ConnectionManager>,
    /// The statement that begins a transaction.
    begin: &'static str,
    /// Whether a fenced write needs a transaction, which brings the settings of `begin`.
    is_behind_pooler: bool,
    sizes: PieceSizes,
}

/// A statement with its parameters and the type of its rows.
pub type PgQuery<'q, T> = QueryAs<'q, Postgres, T, PgArguments>;

/// Opens connections, and checks those that will be used again.
struct ConnectionManager(Servers);

struct ManagedConnection {
    connection: PgConnection,
    connected_at: Instant,
    returned_at: Instant,
}

/// A connection in use. Dropping it closes it, unless `release` returns it to the pool.
pub struct PooledConnection(Option<Object<ConnectionManager>>);

impl PostgresPool {
    /// Makes a pool of at most `size` connections.
    pub fn new(servers: Servers, size: usize) -> Self {
        // The last used connection is the next one, so that unneeded ones stay idle.
        let builder = managed::Pool::builder(ConnectionManager(servers)).max_size(size).queue_mode(QueueMode::Lifo);
        let pool = builder.build().expect("a pool without timeouts needs no runtime");
        let watched = pool.weak();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE / 10).await;
                let Some(pool) = watched.upgrade() else { break };
                let mut spare = pool.status().size.saturating_sub(KEPT);
                pool.retain(|managed, _| {
                    let is_needed = managed.returned_at.elapsed() < IDLE || spare == 0;
                    spare -= usize::from(!is_needed);
                    is_needed
                });
            }
        });
        Self { pool, begin: "begin", is_behind_pooler: false, sizes: PieceSizes::default() }
    }

    /// Has every fenced write begin a transaction with this statement, for a pooler that keeps a connection and its
    /// settings for the time of a transaction only.
    pub fn behind_pooler(self, begin: &'static str) -> Self {
        Self { begin, is_behind_pooler: true, ..self }
    }

    /// Returns the sizes of the next pieces.
    pub fn sizes(&self) -> &PieceSizes {
        &self.sizes
    }

    pub fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    /// Returns a connection, as soon as there is one.
    pub async fn acquire(&self) -> Result<PooledConnection, sqlx::Error> {
        match tokio::time::timeout(ACQUIRE, self.pool.get()).await {
            Ok(Ok(managed)) => Ok(PooledConnection(Some(managed))),
            Ok(Err(managed::PoolError::Backend(error))) => Err(error),
            Ok(Err(other)) => Err(sqlx::Error::Io(io::Error::other(other.to_string()))),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Executes one statement and returns its rows.
    pub async fn fetch_all<T: Row>(&self, query: PgQuery<'_, T>) -> Result<Vec<T>, sqlx::Error> {
        let mut connection = self.acquire().await?;
        let rows = query.fetch_all(connection.connection()).await;
        connection.release(rows)
    }

    /// Returns the statement that begins a transaction.
    pub fn begin(&self) -> &'static str {
        self.begin
    }

    pub fn connections(&self) -> Connections {
        let status = self.pool.status();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Connections {
            used: number(status.size - status.available),
            idle: number(status.available),
            max: number(status.max_size),
        }
    }
}

impl managed::Manager for ConnectionManager {
    type Type = ManagedConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<ManagedConnection, sqlx::Error> {
        loop {
            // Boxed, because the future of every statement would have room for it.
            match Box::pin(self.0.connect()).await {
                Ok(connection) => {
                    return Ok(ManagedConnection {
                        connection,
                        connected_at: Instant::now(),
                        returned_at: Instant::now(),
                    });
                }
                // A standby will be promoted.
                Err(error) if is_starting(&error) || self.0.are_several() && outages::is_read_only(&error) => {
                    outages::note(&error);
                    tokio::time::sleep(STARTING).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Tests a connection only if it was idle for long, or since before another one was lost.
    async fn recycle(&self, managed: &mut ManagedConnection, _: &Metrics) -> RecycleResult<sqlx::Error> {
        let idle = managed.returned_at.elapsed();
        if managed.connected_at.elapsed() > LIFETIME {
            return Err(RecycleError::message("it is too old"));
        }
        if outages::are_unfit_since(managed.connected_at) {
            return Err(RecycleError::message("the server may have been demoted or cut off"));
        }
        if idle > UNTRIED || outages::within(idle) {
            match tokio::time::timeout(PING, managed.connection.ping()).await {
                Ok(alive) => alive?,
                // The other idle connections would be silent too, and cost as much time each.
                Err(_) => {
                    outages::leave_earlier_connections();
                    return Err(RecycleError::message("the server does not answer"));
                }
            }
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

impl PooledConnection {
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.0.as_mut().expect("the connection is held until its release").connection
    }

    /// Returns the connection to the pool if this result leaves it in order, and returns the result.
    pub fn release<T>(mut self, result: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if matches!(result, Ok(_) | Err(sqlx::Error::Database(_)))
            && let Some(mut managed) = self.0.take()
        {
            managed.returned_at = Instant::now();
        }
        result
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(managed) = self.0.take() {
            drop(Object::take(managed));
        }
    }
}
