//! The connections of this process: one for each described server and each scope of its definition.
//!
//! A slot (`slots`) has an attempt to connect. Attempts run as their own tasks: no lock is held while one runs, and an
//! attempt survives callers that stop waiting, so that later runs use what it has started.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::{sync::Notify, task::AbortHandle, time::timeout_at};

use super::{
    connect::{Terms, connect},
    connection::Connection,
    error::{Error, ServerProblem},
    slots::{ConnectAttempt, ConnectFailure, Slot, Slots},
    target::ServerTarget,
    uses::{ConnectionHold, Uses},
};

pub struct ConnectionPool {
    terms: Terms,
    /// `None` once the pool is closed.
    slots: Mutex<Option<Slots>>,
    /// Woken up when a connection becomes idle, or an attempt fails.
    freed: Arc<Notify>,
}

/// A connection with a user, until it is dropped.
pub struct HeldConnection {
    connection: Arc<Connection>,
    _hold: ConnectionHold,
}

impl Deref for HeldConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl ConnectionPool {
    pub fn new(terms: Terms) -> Self {
        let slots = Mutex::new(Some(Slots::new(&terms.config)));
        Self { terms, slots, freed: Arc::default() }
    }

    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns a connection that is usable, as far as the pool knows. A failure before `since` does not count. Fails if
    /// the server cannot be reached, or if too many connections are in use.
    pub async fn acquire(&self, target: &ServerTarget, since: Option<Instant>) -> Result<HeldConnection, Error> {
        let found = self.connected(target, since).await?;
        if found.is_usable() {
            return Ok(found);
        }
        // The connection broke while no caller was waiting. One more attempt is enough: a server that always
        // disconnects at once must not be tried for ever.
        self.connected(target, since).await
    }

    /// Starts the connection if there is none, and keeps it until the hold is dropped. Does not wait for its start.
    pub async fn hold(&self, target: &ServerTarget) -> Result<ConnectionHold, Error> {
        Ok(self.attempt(target, None).await?.1)
    }

    /// Returns how the newest attempt has ended; `None` while it runs.
    pub fn outcome(&self, target: &ServerTarget) -> Option<Result<(), Error>> {
        let slots = self.slots();
        let attempt = slots.as_ref()?.get(target)?.attempt.peek()?;
        Some(attempt.as_ref().map(drop).map_err(|failure| failure.error.clone()))
    }

    /// Returns the connection to a server, if there is one.
    pub fn current(&self, target: &ServerTarget) -> Option<HeldConnection> {
        let slots = self.slots();
        let slot = slots.as_ref()?.get(target)?;
        let connection = slot.attempt.peek()?.as_ref().ok().filter(|connection| connection.is_usable())?;
        Some(HeldConnection { connection: Arc::clone(connection), _hold: slot.uses.begin() })
    }

    /// Ends all connections and attempts; later attempts fail.
    pub async fn close(&self) {
        let slots = self.slots().take();
        futures::future::join_all(slots.into_iter().flat_map(Slots::into_slots).map(Slot::end)).await;
    }

    async fn connected(&self, target: &ServerTarget, since: Option<Instant>) -> Result<HeldConnection, Error> {
        let (attempt, hold) = self.attempt(target, since).await?;
        let connection = attempt.await.map_err(|failure| failure.error)?;
        Ok(HeldConnection { connection, _hold: hold })
    }

    /// Returns the existing attempt if it is still good, or starts a new one. While all connections are in use, waits shortly
    /// for one.
    async fn attempt(
        &self,
        target: &ServerTarget,
        since: Option<Instant>,
    ) -> Result<(ConnectAttempt, ConnectionHold), Error> {
        let deadline = tokio::time::Instant::now() + self.terms.config.mcp_wait;
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Order matters: a connection that becomes idle after the look wakes this wait up.
            freed.as_mut().enable();
            if let Some(found) = self.try_attempt(target, since)? {
                return Ok(found);
            }
            if timeout_at(deadline, freed).await.is_err() {
                let found = self.try_attempt(target, since)?;
                return found.ok_or_else(|| target.error(ServerProblem::Busy));
            }
        }
    }

    /// Does as `attempt`, but returns `None` if all connections are in use.
    fn try_attempt(
        &self,
        target: &ServerTarget,
        since: Option<Instant>,
    ) -> Result<Option<(ConnectAttempt, ConnectionHold)>, Error> {
        let mut slots = self.slots();
        let slots = slots.as_mut().ok_or_else(|| target.error(ServerProblem::Stopping))?;
        if let Some(slot) = slots.get(target).filter(|slot| slot.is_good(since)) {
            return Ok(Some(slot.begin()));
        }
        let Some(leaving) = slots.make_room(target) else { return Ok(None) };
        for slot in leaving {
            tokio::spawn(slot.end());
        }
        // A run that holds the server holds its next connection too.
        let uses = slots.get(target).map_or_else(|| Uses::new(Arc::clone(&self.freed)), |slot| Arc::clone(&slot.uses));
        let (attempt, task) = self.start(target.clone(), Arc::clone(&uses));
        slots.insert(target, attempt.clone(), task, Arc::clone(&uses));
        Ok(Some((attempt, uses.begin())))
    }

    fn start(&self, target: ServerTarget, uses: Arc<Uses>) -> (ConnectAttempt, AbortHandle) {
        let (terms, freed) = (self.terms.clone(), Arc::clone(&self.freed));
        let attempt = tokio::spawn({
            let target = target.clone();
            async move {
                let connection = connect(&target, &terms).await?;
                tokio::spawn(close_when_idle(Arc::downgrade(&connection), uses, terms.config.mcp_idle));
                Ok(connection)
            }
        });
        let task = attempt.abort_handle();
        let outcome = attempt.map(move |result| {
            // The task does not panic, so it can only have been aborted.
            let outcome = result.unwrap_or_else(|_| Err(target.error(ServerProblem::Stopping)));
            outcome.map_err(|error| {
                freed.notify_waiters();
                ConnectFailure { error, at: Instant::now() }
            })
        });
        let outcome = outcome.boxed().shared();
        // The end is noted when it comes, although no caller may wait for it.
        tokio::spawn(outcome.clone());
        (outcome, task)
    }

    fn slots(&self) -> MutexGuard<'_, Option<Slots>> {
        self.slots.lock().expect("no thread panics with this lock")
    }
}

async fn close_when_idle(connection: Weak<Connection>, uses: Arc<Uses>, idle: Duration) {
    loop {
        let due = {
            let Some(connection) = connection.upgrade() else { return };
            if !connection.is_usable() {
                return;
            }
            match uses.idle_since().map(|since| since + idle) {
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
