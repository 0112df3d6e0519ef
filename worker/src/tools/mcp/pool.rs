//! The connections of this process: one for each described server, shared by all runs that use it.
//!
//! An entry is an attempt to connect, which ends once and has one result for all its users. Attempts run as their own
//! tasks: no lock is held while one runs, and an attempt survives callers that stop waiting.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tokio::task::AbortHandle;

use super::{
    connect::{Terms, connect},
    connection::Connection,
    error::{Error, ServerProblem},
    target::{Key, ServerTarget},
};

/// Time in which a failed server is not tried again, so that not every run waits for the complete time-out.
const FAILURE_MEMORY: Duration = Duration::from_secs(3);

pub struct ConnectionPool {
    terms: Terms,
    idle: Duration,
    entries: Mutex<Option<HashMap<Key, Entry>>>,
}

type ConnectAttempt = Shared<BoxFuture<'static, Result<Arc<Connection>, ConnectFailure>>>;

#[derive(Clone)]
struct ConnectFailure {
    error: Error,
    at: Instant,
}

struct Entry {
    outcome: ConnectAttempt,
    task: AbortHandle,
}

impl ConnectionPool {
    pub fn new(terms: Terms, idle: Duration) -> Self {
        Self { terms, idle, entries: Mutex::new(Some(HashMap::new())) }
    }

    /// Returns a connection that is usable, as far as the pool knows. A failure before `since` does not count. Fails if
    /// the server cannot be reached.
    pub async fn acquire(&self, target: &ServerTarget, since: Option<Instant>) -> Result<Arc<Connection>, Error> {
        let connection = self.attempt(target, since)?.await.map_err(|failure| failure.error)?;
        if connection.is_usable() {
            return Ok(connection);
        }
        // The connection broke while no caller was waiting. One more attempt is enough: a server that always
        // disconnects at once must not be tried for ever.
        self.attempt(target, since)?.await.map_err(|failure| failure.error)
    }

    /// Returns the existing attempt if it is still good, or starts a new one.
    fn attempt(&self, target: &ServerTarget, since: Option<Instant>) -> Result<ConnectAttempt, Error> {
        let key = target.key();
        let mut entries = self.entries();
        let entries = entries.as_mut().ok_or_else(|| target.error(ServerProblem::Stopping))?;
        if let Some(entry) = entries.get(&key)
            && entry.is_good(since)
        {
            return Ok(entry.outcome.clone());
        }
        entries.retain(|_, entry| entry.is_good(None));
        let entry = self.start(target.clone());
        let attempt = entry.outcome.clone();
        entries.insert(key, entry);
        Ok(attempt)
    }

    /// Returns the connection to a server, if there is one.
    pub fn connected(&self, target: &ServerTarget) -> Option<Arc<Connection>> {
        let entries = self.entries();
        let connection = entries.as_ref()?.get(&target.key())?.outcome.peek()?.as_ref().ok()?;
        connection.is_usable().then(|| Arc::clone(connection))
    }

    /// Ends all connections and attempts; later attempts fail.
    pub async fn close(&self) {
        let entries = self.entries().take().unwrap_or_default();
        let closing = entries.into_values().map(|entry| async move {
            entry.task.abort();
            if let Ok(connection) = entry.outcome.await {
                connection.close().await;
            }
        });
        futures::future::join_all(closing).await;
    }

    fn entries(&self) -> MutexGuard<'_, Option<HashMap<Key, Entry>>> {
        self.entries.lock().expect("no thread panics with this lock")
    }

    fn start(&self, target: ServerTarget) -> Entry {
        let (terms, idle) = (self.terms.clone(), self.idle);
        let attempt = tokio::spawn({
            let target = target.clone();
            async move {
                let connection = connect(&target, &terms).await?;
                tokio::spawn(close_when_idle(Arc::downgrade(&connection), idle));
                Ok(connection)
            }
        });
        let task = attempt.abort_handle();
        let outcome = attempt.map(move |result| {
            // The task does not panic, so it can only have been aborted.
            let outcome = result.unwrap_or_else(|_| Err(target.error(ServerProblem::Stopping)));
            outcome.map_err(|error| ConnectFailure { error, at: Instant::now() })
        });
        Entry { outcome: outcome.boxed().shared(), task }
    }
}

impl Entry {
    /// Returns whether callers should wait for this attempt or take its result.
    fn is_good(&self, since: Option<Instant>) -> bool {
        match self.outcome.peek() {
            None => true,
            Some(Ok(connection)) => connection.is_usable(),
            Some(Err(failure)) => {
                failure.at.elapsed() < FAILURE_MEMORY && since.is_none_or(|since| failure.at >= since)
            }
        }
    }
}

async fn close_when_idle(connection: Weak<Connection>, idle: Duration) {
    loop {
        let due = {
            let Some(connection) = connection.upgrade() else { return };
            if !connection.is_usable() {
                return;
            }
            match connection.unused_until(idle) {
                Some(due) if due <= Instant::now() => {
                    connection.close().await;
                    return;
                }
                Some(due) => due,
                None => Instant::now() + idle,
            }
        };
        tokio::time::sleep_until(due.into()).await;
    }
}
