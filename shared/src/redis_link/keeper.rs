//! The keeper of one connection to Redis. It detects a failed connection and replaces it.
//!
//! A connection to a vanished server accepts each command and answers none, for minutes. So the keeper sends
//! heartbeats: a command that only a master accepts, and each master of a Cluster.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use redis::RedisError;
use tokio::{sync::watch, time::sleep};

use super::{LinkState, Use, connection::RedisConnection, refuses_writes, server::Server, within};
use crate::backoff::Backoff;

/// Pause between two heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// Time-out of a heartbeat.
const BEAT_LIMIT: Duration = Duration::from_millis(1500);

/// Pauses between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Keeper {
    server: Server,
    used_for: Use,
    shared: Arc<LinkState>,
}

/// A new connection, with the channels that it is subscribed to.
struct NewConnection {
    connection: RedisConnection,
    channels: BTreeSet<String>,
}

impl Keeper {
    /// Connects once, and keeps the connection until the last receiver is dropped.
    pub(super) async fn start(
        server: Server,
        used_for: Use,
        shared: Arc<LinkState>,
    ) -> Result<watch::Receiver<Option<RedisConnection>>, RedisError> {
        let mut keeper = Self { server, used_for, shared };
        let connection = keeper.connect().await?.connection;
        let (current, receiver) = watch::channel(Some(connection.clone()));
        tokio::spawn(async move {
            let closing = current.clone();
            tokio::select! {
                () = closing.closed() => {}
                () = keeper.keep(connection, current) => {}
            }
        });
        Ok(receiver)
    }

    async fn keep(mut self, mut connection: RedisConnection, current: watch::Sender<Option<RedisConnection>>) {
        let mut missing = Vec::new();
        loop {
            self.until_lost(&mut connection, missing).await;
            // The other masters of a Cluster still answer.
            if !self.server.is_cluster() {
                current.send_replace(None);
            }
            let new = self.reconnect().await;
            connection = new.connection;
            current.send_replace(Some(connection.clone()));
            // A caller may have subscribed on the connection that was in use meanwhile.
            missing = self.shared.channels().difference(&new.channels).cloned().collect();
        }
    }

    /// Returns when the connection must be replaced. Until then it subscribes to the channels that are missing, as soon as
    /// their server is back.
    async fn until_lost(&self, connection: &mut RedisConnection, mut missing: Vec<String>) {
        loop {
            // A caller may have ended a subscription meanwhile.
            missing.retain(|channel| self.shared.channels().contains(channel));
            if !missing.is_empty() {
                match connection.subscribe(missing).await {
                    Ok(still) => missing = still,
                    Err(_) => return,
                }
            }
            let beat = async {
                sleep(BEAT).await;
                match self.used_for {
                    Use::Prompt => is_alive(connection).await,
                    Use::Blocking => true,
                }
            };
            tokio::select! {
                () = self.shared.doubts.notified() => return,
                alive = beat => if !alive { return },
            }
        }
    }

    async fn reconnect(&mut self) -> NewConnection {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            match self.connect().await {
                Ok(new) => return new,
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Connects once. The connection has all subscriptions before a caller uses it, but those whose server is away.
    async fn connect(&mut self) -> Result<NewConnection, RedisError> {
        let mut connection = self.server.connect().await?;
        // A Cluster without one of its masters is better than none.
        if !self.server.is_cluster()
            && let Err(refused) = beat(&mut connection).await
            && (refused.is_io_error() || refuses_writes(&refused))
        {
            return Err(refused);
        }
        let mut channels = self.shared.channels().clone();
        if !channels.is_empty() {
            for missing in connection.subscribe(channels.iter().cloned().collect()).await? {
                channels.remove(&missing);
            }
        }
        Ok(NewConnection { connection, channels })
    }
}

/// Returns whether the server lives and is the master. An error of a full Redis, for one, is a sign of life.
async fn is_alive(connection: &mut RedisConnection) -> bool {
    match beat(connection).await {
        Ok(()) => true,
        Err(error) => !error.is_io_error() && !error.is_unrecoverable_error() && !refuses_writes(&error),
    }
}

async fn beat(connection: &mut RedisConnection) -> Result<(), RedisError> {
    within(BEAT_LIMIT, connection.beat()).await
}
