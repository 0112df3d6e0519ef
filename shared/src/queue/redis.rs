//! Wake-ups and cancel signals of the scaled-out mode: a list of sentinels and a channel.

use std::time::Duration;

use redis::{Client, PushInfo, PushKind, RedisError, Value, aio::ConnectionManager};
use secrecy::SecretString;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Error;
use crate::redis_link::{self, within};

const WAKE_LIST: &str = "holdfast:wake";
const CANCEL_CHANNEL: &str = "holdfast:cancel";

/// Sentinels that are kept; more would only wake workers for nothing.
const MAX_SENTINELS: isize = 1024;

/// Time that a wake-up or a signal may take; workers find out by themselves a moment later.
const SIGNAL_LIMIT: Duration = Duration::from_millis(500);

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
        let client = redis_link::client(url).map_err(doing("use REDIS_URL"))?;
        redis_link::try_once(&client).await.map_err(doing("open a connection"))?;
        let patient = redis_link::settings().set_response_timeout(None);
        let commands = redis_link::open(&client, redis_link::settings()).await.map_err(doing("open a connection"))?;
        let blocking = redis_link::open(&client, patient).await.map_err(doing("open a connection"))?;
        Ok(Self { client, commands, blocking })
    }

    pub async fn wake(&self) -> Result<(), Error> {
        let mut push = redis::pipe();
        push.lpush(WAKE_LIST, 1).ignore().ltrim(WAKE_LIST, 0, MAX_SENTINELS - 1).ignore();
        within(SIGNAL_LIMIT, push.query_async(&mut self.commands.clone())).await.map_err(doing("wake a worker"))
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
        within(SIGNAL_LIMIT, publish.query_async(&mut self.commands.clone())).await.map_err(doing("signal a cancel"))
    }

    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listened = sender.clone();
        let settings =
            redis_link::settings().set_automatic_resubscription().set_push_sender(move |info| match run_of(&info) {
                Some(run_id) => sender.send(run_id),
                None => Ok(()),
            });
        let mut manager = redis_link::open(&self.client, settings).await.map_err(doing("open a connection"))?;
        within(SIGNAL_LIMIT, manager.subscribe(CANCEL_CHANNEL)).await.map_err(doing("listen for cancels"))?;
        tokio::spawn(hold_while_heard(manager, listened));
        Ok(receiver)
    }
}

/// Keeps the subscription's connection until nobody listens any more.
async fn hold_while_heard(connection: ConnectionManager, sender: mpsc::UnboundedSender<Uuid>) {
    sender.closed().await;
    drop(connection);
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
