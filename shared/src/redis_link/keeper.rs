//! The keeper of one connection to Redis: it finds out that the connection has failed, and makes another.
//!
//! A connection whose other end is gone without a word takes every command and answers none, for minutes. So the keeper asks
//! each connection for a sign of life, by a command that only a master answers well.

use std::{sync::Arc, time::Duration};

use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use tokio::{sync::watch, time::sleep};

use super::{CONNECT_LIMIT, LinkState, Use, refuses_writes, within};

/// Pause between two signs of life.
const BEAT: Duration = Duration::from_secs(1);

/// Time for a sign of life.
const BEAT_LIMIT: Duration = Duration::from_millis(1500);

/// Pauses between two tries to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A key that never exists. Deleting it is a write, which a replica refuses, and changes nothing.
const NO_KEY: &str = "holdfast:beat";

/// What makes connections of one kind.
pub(super) struct Keeper {
    client: Client,
    config: AsyncConnectionConfig,
    used_for: Use,
    shared: Arc<LinkState>,
}

impl Keeper {
    /// Connects once, and keeps the connection until the last receiver is gone.
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
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connect().await {
                Ok(connection) => return connection,
                Err(_) => sleep(pause).await,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// One try. The connection is subscribed to every channel before a caller uses it.
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

/// Any answer but that of a replica is a sign of life. A Redis that is full, for one, is still the right one.
async fn is_alive(connection: &mut MultiplexedConnection) -> bool {
    match beat(connection).await {
        Ok(()) => true,
        Err(error) => !error.is_io_error() && !error.is_unrecoverable_error() && !refuses_writes(&error),
    }
}

async fn beat(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    within(BEAT_LIMIT, redis::cmd("DEL").arg(NO_KEY).exec_async(connection)).await
}
