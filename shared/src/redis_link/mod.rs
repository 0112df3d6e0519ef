//! Connections to Redis, as run log, queue and rate limit need them.
//!
//! `Link` is one connection with a keeper, which replaces it when it is dead, silent, or leads to a server that takes no
//! writes. `client` reads the URL, with its certificates. Every wait for Redis is bounded (`within`).

mod client;
mod keeper;

use std::{
    collections::BTreeSet,
    error::Error,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use secrecy::SecretString;
use tokio::sync::{Notify, watch};

use keeper::Keeper;

/// Time for one try to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Time for an answer to a command that does not block.
const RESPONSE_LIMIT: Duration = Duration::from_secs(2);

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Commands that Redis answers at once, and subscriptions. The keeper asks for a sign of life every second.
    Prompt,
    /// Commands that block, behind which a sign of life would wait. Their caller says when one took too long (`doubt`).
    Blocking,
}

/// A connection that its keeper replaces when it fails; cheap to clone.
#[derive(Clone)]
pub struct Link {
    current: watch::Receiver<Option<MultiplexedConnection>>,
    shared: Arc<LinkState>,
}

/// What a link and its keeper share.
struct LinkState {
    /// Wakes the keeper, which then replaces the connection.
    doubts: Arc<Notify>,
    /// The channels that each new connection subscribes to.
    channels: Mutex<BTreeSet<String>>,
}

impl Link {
    /// Connects once. Each push that is no answer goes to `on_push`.
    pub async fn open(
        url: &SecretString,
        used_for: Use,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Self, RedisError> {
        let client = client::read(url)?;
        let doubts = Arc::new(Notify::new());
        let doubted = Arc::clone(&doubts);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout((used_for == Use::Prompt).then_some(RESPONSE_LIMIT))
            .set_push_sender(move |info: PushInfo| -> Result<(), redis::aio::SendError> {
                if info.kind == PushKind::Disconnection {
                    doubted.notify_one();
                } else {
                    on_push(info);
                }
                Ok(())
            });
        let shared = Arc::new(LinkState { doubts, channels: Mutex::default() });
        let current = Keeper::start(client, config, used_for, Arc::clone(&shared)).await?;
        Ok(Self { current, shared })
    }

    /// Has the keeper replace the connection.
    pub fn doubt(&self) {
        self.shared.doubts.notify_one();
    }

    /// Subscribes to a channel, on every later connection too.
    pub async fn subscribe(&self, channel: String) -> Result<(), RedisError> {
        self.shared.channels().insert(channel.clone());
        self.connection().await?.subscribe(channel).await
    }

    /// Ends `subscribe`.
    pub async fn unsubscribe(&self, channel: String) -> Result<(), RedisError> {
        self.shared.channels().remove(&channel);
        self.connection().await?.unsubscribe(channel).await
    }

    /// The connection, as soon as there is one.
    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut current = self.current.clone();
        let connected = current.wait_for(Option::is_some).await.map(|connection| connection.clone());
        connected.ok().flatten().ok_or_else(|| (ErrorKind::Io, "the process ends").into())
    }

    fn note<T>(&self, answer: RedisResult<T>, is_refused: impl FnOnce(&T) -> bool) -> RedisResult<T> {
        let is_lost = match &answer {
            Ok(values) => is_refused(values),
            Err(error) => error.is_unrecoverable_error() || refuses_writes(error),
        };
        if is_lost {
            self.doubt();
        }
        answer
    }
}

impl LinkState {
    fn channels(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.connection().await?.req_packed_command(command).await;
            self.note(answer, is_refusal)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.connection().await?.req_packed_commands(pipeline, offset, count).await;
            self.note(answer, |values| values.iter().any(is_refusal))
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Whether a server that is no master any more has refused a write.
fn is_refusal(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly))
}

fn refuses_writes(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// Whether Redis cannot answer now, so that the same call may succeed later.
pub fn is_away(error: &RedisError) -> bool {
    match error.kind() {
        // A certificate that one side refuses, it will refuse again.
        ErrorKind::Io => !is_refused_certificate(error),
        ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::ReadOnly) => true,
        _ => false,
    }
}

fn is_refused_certificate(error: &RedisError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

/// Awaits an answer, but not for long: while Redis is away, a call would wait for the connection to come back.
pub async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()),
    }
}
