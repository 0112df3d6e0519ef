//! The keeper of one connection to Redis. It detects a failed connection and replaces it.
//!
//! A connection to a vanished server accepts each command and answers none, for minutes. So the keeper sends
//! heartbeats: a command that only a master accepts, and each master of a Cluster.

use std::{sync::Arc, time::Duration};

use redis::RedisError;
use tokio::{sync::watch, time::sleep};

use super::{CONNECT_LIMIT, LinkState, Use, connection::RedisConnection, refuses_writes, server::Server, within};
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

impl Keeper {
    /// Connects once, and keeps the connection until the last receiver is dropped.
    pub(super) async fn start(
        server: Server,
        used_for: Use,
        shared: Arc<LinkState>,
    ) -> Result<watch::Receiver<Option<RedisConnection>>, RedisError> {
        let mut keeper = Self { server, used_for, shared };
        let connection = keeper.connect().await?;
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
        loop {
            self.until_lost(&mut connection).await;
            // The other masters of a Cluster still answer.
            if !self.server.is_cluster() {
                current.send_replace(None);
            }
            connection = self.reconnect().await;
            current.send_replace(Some(connection.clone()));
        }
    }

    async fn until_lost(&self, connection: &mut RedisConnection) {
        loop {
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

    async fn reconnect(&mut self) -> RedisConnection {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            match self.connect().await {
                Ok(connection) => return connection,
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Connects once. The connection has all subscriptions before a caller uses it.
    async fn connect(&mut self) -> Result<RedisConnection, RedisError> {
        let mut connection = self.server.connect().await?;
        // A Cluster without one of its masters is better than none.
        if !self.server.is_cluster()
            && let Err(refused) = beat(&mut connection).await
            && (refused.is_io_error() || refuses_writes(&refused))
        {
            return Err(refused);
        }
        let channels: Vec<String> = self.shared.channels().iter().cloned().collect();
        if !channels.is_empty() {
            within(CONNECT_LIMIT, connection.subscribe(channels)).await?;
        }
        Ok(connection)
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
