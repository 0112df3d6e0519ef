//! The keeper of one connection to Redis. It detects a failed connection and replaces it.
//!
//! A connection to a vanished server accepts each command and answers none, for minutes. So the keeper sends
//! heartbeats: a command that only a master accepts.

use std::{sync::Arc, time::Duration};

use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use tokio::{sync::watch, time::sleep};

use super::{CONNECT_LIMIT, LinkState, Use, refuses_writes, within};
use crate::backoff::Backoff;

/// Pause between two heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// Time-out of a heartbeat.
const BEAT_LIMIT: Duration = Duration::from_millis(1500);

/// Pauses between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A key that never exists. Its deletion is a write, which changes nothing and which a replica refuses.
const NO_KEY: &str = "holdfast:beat";

/// Opens connections with one configuration.
pub(super) struct Keeper {
    client: Client,
    config: AsyncConnectionConfig,
    used_for: Use,
    shared: Arc<LinkState>,
}

impl Keeper {
    /// Connects once, and keeps the connection until the last receiver is dropped.
    pub(super) async fn start(
        client: Client,
        config: AsyncConnectionConfig,
        used_for: Use,
        shared: Arc<LinkState>,
    ) -> Result<watch::Receiver<Option<MultiplexedConnection>>, RedisError> {
        let keeper = Self { client, config, used_for, shared };
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

    async fn keep(self, mut connection: MultiplexedConnection, current: watch::Sender<Option<MultiplexedConnection>>) {
        loop {
            self.until_lost(&mut connection).await;
            current.send_replace(None);
            connection = self.reconnect().await;
            current.send_replace(Some(connection.clone()));
        }
    }

    async fn until_lost(&self, connection: &mut MultiplexedConnection) {
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

    async fn reconnect(&self) -> MultiplexedConnection {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            match self.connect().await {
                Ok(connection) => return connection,
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Connects once. The connection has all subscriptions before a caller uses it.
    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let connecting = self.client.get_multiplexed_async_connection_with_config(&self.config);
        let mut connection = within(CONNECT_LIMIT, connecting).await?;
        if let Err(refused) = beat(&mut connection).await
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
async fn is_alive(connection: &mut MultiplexedConnection) -> bool {
    match beat(connection).await {
        Ok(()) => true,
        Err(error) => !error.is_io_error() && !error.is_unrecoverable_error() && !refuses_writes(&error),
    }
}

async fn beat(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    within(BEAT_LIMIT, redis::cmd("DEL").arg(NO_KEY).exec_async(connection)).await
}
