//! Wake-ups and cancel signals of the scaled-out mode: a list of sentinels and a channel.

use std::time::Duration;

use redis::{
    Client, PushInfo, PushKind, RedisError, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Error;

const WAKE_LIST: &str = "holdfast:wake";
const CANCEL_CHANNEL: &str = "holdfast:cancel";

/// Sentinels that are kept; more would only wake workers for nothing.
const MAX_SENTINELS: isize = 1024;

/// Time that a wake-up or a signal may take; workers find out by themselves a moment later.
const SIGNAL_LIMIT: Duration = Duration::from_millis(500);

/// Time for a connection at the start of the process.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How much longer than asked a blocked pop may take before its connection counts as dead.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct RedisQueue {
    client: Client,
    commands: ConnectionManager,
    /// A connection of its own, because a blocked pop holds up whatever is behind it.
    blocking: ConnectionManager,
}

impl RedisQueue {
    pub async fn connect(url: &SecretString) -> Result<Self, Error> {
        let separator = if url.expose_secret().contains('?') { '&' } else { '?' };
        let client = Client::open(format!("{}{separator}protocol=resp3", url.expose_secret()))
            .map_err(doing("use REDIS_URL"))?;
        let quick = quick_to_return().set_response_timeout(Some(Duration::from_secs(2)));
        let patient = quick_to_return().set_response_timeout(None);
        let commands =
            within("open a connection", CONNECT_LIMIT, ConnectionManager::new_with_config(client.clone(), quick))
                .await?;
        let blocking =
            within("open a connection", CONNECT_LIMIT, ConnectionManager::new_with_config(client.clone(), patient))
                .await?;
        Ok(Self { client, commands, blocking })
    }

    pub async fn wake(&self) -> Result<(), Error> {
        let mut push = redis::pipe();
        push.lpush(WAKE_LIST, 1).ignore().ltrim(WAKE_LIST, 0, MAX_SENTINELS - 1).ignore();
        within("wake a worker", SIGNAL_LIMIT, push.query_async(&mut self.commands.clone())).await
    }

    pub async fn woken(&self, patience: Duration) -> Result<(), Error> {
        let mut pop = redis::cmd("BLPOP");
        pop.arg(WAKE_LIST).arg(patience.as_secs_f64());
        let mut connection = self.blocking.clone();
        let popped: Result<Result<Value, RedisError>, _> =
            tokio::time::timeout(patience + GRACE, pop.query_async(&mut connection)).await;
        match popped {
            Ok(popped) => popped.map(drop).map_err(doing("wait for a wake-up")),
            Err(_) => Ok(()),
        }
    }

    pub async fn signal_cancel(&self, run_id: Uuid) -> Result<(), Error> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(CANCEL_CHANNEL).arg(run_id.to_string());
        within("signal a cancel", SIGNAL_LIMIT, publish.query_async(&mut self.commands.clone())).await
    }

    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listened = sender.clone();
        let config =
            quick_to_return().set_automatic_resubscription().set_push_sender(move |info| match run_of(&info) {
                Some(run_id) => sender.send(run_id),
                None => Ok(()),
            });
        let mut manager =
            within("open a connection", CONNECT_LIMIT, ConnectionManager::new_with_config(self.client.clone(), config))
                .await?;
        within("listen for cancels", CONNECT_LIMIT, manager.subscribe(CANCEL_CHANNEL)).await?;
        tokio::spawn(hold_while_heard(manager, listened));
        Ok(receiver)
    }
}

/// Keeps the subscription's connection until nobody listens any more.
async fn hold_while_heard(connection: ConnectionManager, sender: mpsc::UnboundedSender<Uuid>) {
    sender.closed().await;
    drop(connection);
}

/// Awaits an answer, but not for long: while Redis is away, a call would wait for the connection to come back.
async fn within<T>(
    doing: &'static str,
    limit: Duration,
    answer: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Error> {
    let timed = tokio::time::timeout(limit, answer).await;
    let answer =
        timed.unwrap_or_else(|_| Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time").into()));
    answer.map_err(|source| Error { doing, source })
}

fn quick_to_return() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(usize::MAX)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_millis(500))
        .set_connection_timeout(Some(Duration::from_secs(2)))
}

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error { doing, source }
}

fn run_of(info: &PushInfo) -> Option<Uuid> {
    match (&info.kind, info.data.get(1)) {
        (PushKind::Message, Some(Value::BulkString(run_id))) => std::str::from_utf8(run_id).ok()?.parse().ok(),
        _ => None,
    }
}
