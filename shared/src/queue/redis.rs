//! Wake-ups and cancel signals of the scaled-out mode: a list of sentinels and a channel.

use std::time::Duration;

use redis::{PushInfo, PushKind, RedisError, Value};
use secrecy::SecretString;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Error;
use crate::redis_link::{Link, Use, within};

const WAKE_LIST: &str = "holdfast:wake";
const CANCEL_CHANNEL: &str = "holdfast:cancel";

/// Most sentinels in the list. More would only wake workers for nothing.
const MAX_SENTINELS: isize = 1024;

/// Time-out of a wake-up or a signal. Workers poll a moment later anyway.
const SIGNAL_LIMIT: Duration = Duration::from_millis(500);

/// Longest pop. A worker then polls once without need.
const LONGEST_POP: Duration = Duration::from_secs(2);

/// Time after a pop's own time-out at which its connection counts as dead.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct RedisQueue {
    url: SecretString,
    commands: Link,
    /// A separate connection, because a blocked pop delays all commands after it.
    blocking: Link,
}

impl RedisQueue {
    pub async fn connect(url: &SecretString) -> Result<Self, Error> {
        let commands = Link::open(url, Use::Prompt, drop).await.map_err(doing("open a connection"))?;
        let blocking = Link::open(url, Use::Blocking, drop).await.map_err(doing("open a connection"))?;
        Ok(Self { url: url.clone(), commands, blocking })
    }

    pub async fn wake(&self) -> Result<(), Error> {
        let mut push = redis::pipe();
        push.lpush(WAKE_LIST, 1).ignore().ltrim(WAKE_LIST, 0, MAX_SENTINELS - 1).ignore();
        within(SIGNAL_LIMIT, push.query_async(&mut self.commands.clone())).await.map_err(doing("wake a worker"))
    }

    pub async fn wait_for_wake_up(&self, timeout: Duration) -> Result<(), Error> {
        // A longer pop would hide a dead connection for longer.
        let timeout = timeout.min(LONGEST_POP);
        let mut pop = redis::cmd("BLPOP");
        pop.arg(WAKE_LIST).arg(timeout.as_secs_f64());
        let popped: Result<Result<Value, RedisError>, _> =
            tokio::time::timeout(timeout + GRACE, pop.query_async(&mut self.blocking.clone())).await;
        match popped {
            Ok(popped) => popped.map(drop).map_err(doing("wait for a wake-up")),
            Err(_) => {
                self.blocking.doubt();
                Ok(())
            }
        }
    }

    pub async fn signal_cancel(&self, run_id: Uuid) -> Result<(), Error> {
        let mut publish = redis::cmd(self.commands.publish_command());
        publish.arg(CANCEL_CHANNEL).arg(run_id.to_string());
        within(SIGNAL_LIMIT, publish.query_async(&mut self.commands.clone())).await.map_err(doing("signal a cancel"))
    }

    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listener = sender.clone();
        let signals = Link::open(&self.url, Use::Prompt, move |info| {
            if let Some(run_id) = run_of(&info) {
                let _ = sender.send(run_id);
            }
        });
        let signals = signals.await.map_err(doing("open a connection"))?;
        within(SIGNAL_LIMIT, signals.subscribe(CANCEL_CHANNEL.to_owned()))
            .await
            .map_err(doing("listen for cancels"))?;
        tokio::spawn(hold_until_closed(signals, listener));
        Ok(receiver)
    }
}

/// Keeps the subscription's connection until its receiver is dropped.
async fn hold_until_closed(connection: Link, sender: mpsc::UnboundedSender<Uuid>) {
    sender.closed().await;
    drop(connection);
}

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error { doing, source }
}

fn run_of(info: &PushInfo) -> Option<Uuid> {
    match (&info.kind, info.data.get(1)) {
        (PushKind::Message | PushKind::SMessage, Some(Value::BulkString(run_id))) => {
            std::str::from_utf8(run_id).ok()?.parse().ok()
        }
        _ => None,
    }
}
