//! Connections to Redis, for run log, queue and rate limit.
//!
//! `Link` is one connection with a keeper. The keeper replaces a connection that is dead, silent, or leads to a
//! read-only server. `server` reads the URL and its certificates. Each wait for Redis has a time-out (`within`).

mod connection;
mod keeper;
mod server;

use std::{
    collections::BTreeSet,
    error::Error,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{
    Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisError, RedisFuture, RedisResult, ServerErrorKind, Value,
    aio::ConnectionLike,
};
use secrecy::SecretString;
use tokio::sync::{Notify, watch};

use connection::RedisConnection;
use keeper::Keeper;
use server::Server;

/// Time-out of one attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Time-out of an answer to a command that does not block.
const RESPONSE_LIMIT: Duration = Duration::from_secs(2);

/// The kind of commands on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Commands that Redis answers at once, and subscriptions. The keeper sends a heartbeat each second.
    Prompt,
    /// Commands that block and would delay a heartbeat. Their caller reports a command that took too long (`doubt`).
    Blocking,
}

/// A connection that its keeper replaces after a failure; cheap to clone.
#[derive(Clone)]
pub struct Link {
    current: watch::Receiver<Option<RedisConnection>>,
    is_cluster: bool,
    shared: Arc<LinkState>,
}

/// The state that a link and its keeper share.
struct LinkState {
    /// Wakes the keeper, which then replaces the connection.
    doubts: Notify,
    /// The channels that each new connection subscribes to.
    channels: Mutex<BTreeSet<String>>,
}

impl Link {
    /// Connects once, or fails. `on_push` receives each push.
    pub async fn open(
        url: &SecretString,
        used_for: Use,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Self, RedisError> {
        let shared = Arc::new(LinkState { doubts: Notify::new(), channels: Mutex::default() });
        let state = Arc::clone(&shared);
        let receive = move |info: PushInfo| match info.kind {
            PushKind::Disconnection => state.doubts.notify_one(),
            // The channel's slot has another server now, and the driver has forgotten the channel.
            PushKind::SUnsubscribe if state.has_channel_of(&info) => state.doubts.notify_one(),
            _ => on_push(info),
        };
        let server = Server::read(url, used_for, Arc::new(receive))?;
        let is_cluster = server.is_cluster();
        let current = Keeper::start(server, used_for, Arc::clone(&shared)).await?;
        Ok(Self { current, is_cluster, shared })
    }

    /// Has the keeper replace the connection.
    pub fn doubt(&self) {
        self.shared.doubts.notify_one();
    }

    /// Subscribes to a channel, on each later connection too.
    pub async fn subscribe(&self, channel: String) -> Result<(), RedisError> {
        self.shared.channels().insert(channel.clone());
        let missing = self.connection().await?.subscribe(vec![channel]).await?;
        if missing.is_empty() {
            return Ok(());
        }
        Err((ErrorKind::ClusterConnectionNotFound, "the channel's server is away").into())
    }

    /// Ends a subscription.
    pub async fn unsubscribe(&self, channel: String) -> Result<(), RedisError> {
        self.shared.channels().remove(&channel);
        self.connection().await?.unsubscribe(channel).await
    }

    /// Returns the command that publishes to a channel.
    pub fn publish_command(&self) -> &'static str {
        if self.is_cluster { "SPUBLISH" } else { "PUBLISH" }
    }

    /// Returns the most commands with keys of their own that one pipeline carries. A Cluster's has one slot, so each
    /// of its commands goes alone.
    pub fn most_in_pipeline(&self) -> usize {
        if self.is_cluster { 1 } else { usize::MAX }
    }

    /// Returns the connection, as soon as there is one.
    async fn connection(&self) -> Result<RedisConnection, RedisError> {
        let mut current = self.current.clone();
        let connected = current.wait_for(Option::is_some).await.map(|connection| connection.clone());
        connected.ok().flatten().ok_or_else(|| (ErrorKind::Io, "the process ends").into())
    }

    fn note<T>(&self, answer: RedisResult<T>, is_refused: impl FnOnce(&T) -> bool) -> RedisResult<T> {
        let is_lost = match &answer {
            Ok(values) => is_refused(values),
            Err(error) => error.is_unrecoverable_error() || refuses_writes(error),
        };
        if is_lost && !self.is_cluster {
            self.doubt();
        }
        answer
    }
}

impl LinkState {
    fn channels(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the push is about a channel that the link follows.
    fn has_channel_of(&self, info: &PushInfo) -> bool {
        let channel = match info.data.first() {
            Some(Value::BulkString(channel)) => str::from_utf8(channel).ok(),
            _ => None,
        };
        channel.is_some_and(|channel| self.channels().contains(channel))
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

/// Returns whether a server refused a write, because it is no longer the master.
fn is_refusal(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::ReadOnly))
}

fn refuses_writes(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// Returns whether Redis is away, so that a later call may succeed.
pub fn is_away(error: &RedisError) -> bool {
    match error.kind() {
        // A refused certificate will be refused again.
        ErrorKind::Io => !is_refused_certificate(error),
        ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::ReadOnly) => true,
        // A Cluster or Sentinels during a failover.
        ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel => true,
        ErrorKind::Server(ServerErrorKind::ClusterDown | ServerErrorKind::MasterDown | ServerErrorKind::TryAgain) => {
            true
        }
        _ => false,
    }
}

fn is_refused_certificate(error: &RedisError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

/// Awaits an answer for a limited time. Without the limit, a call would wait until Redis is back.
pub async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()),
    }
}
