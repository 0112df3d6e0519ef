//! The run log of the scaled-out mode: one stream and one channel per run, both named `holdfast:run:<id>`.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use redis::{
    Client, PushInfo, PushKind, RedisError, Script, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Appended, Batch, Error, Gap, Push};
use crate::event_id::EventId;

static APPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("append.lua")));

/// An entry of a stream: its id, and its one field with the lines.
type Entry = (String, (String, Vec<u8>));

#[derive(Clone)]
pub struct RedisLog {
    commands: ConnectionManager,
    /// A connection of its own, so that pushes never wait behind answers.
    subscriptions: ConnectionManager,
    ttl: Duration,
}

impl RedisLog {
    pub async fn connect(url: &SecretString, ttl: Duration) -> Result<(Self, mpsc::UnboundedReceiver<Push>), Error> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let commands = manager(url, ConnectionManagerConfig::new()).await?;
        let relayed = ConnectionManagerConfig::new().set_automatic_resubscription().set_push_sender(move |info| {
            match push_of(info) {
                Some(push) => sender.send(push),
                None => Ok(()),
            }
        });
        let subscriptions = manager(url, relayed).await?;
        Ok((Self { commands, subscriptions, ttl }, pushes))
    }

    pub async fn append(&self, run_id: Uuid, batch: &Batch, gap: Gap) -> Result<Appended, Error> {
        let mut invocation = APPEND.key(name(run_id));
        invocation.arg(batch.attempt).arg(batch.first).arg(batch.last);
        invocation.arg(if gap == Gap::Archived { "archived" } else { "refuse" });
        invocation.arg(&batch.lines[..]).arg(self.ttl.as_millis() as u64);
        let answer: String =
            within("append events", APPEND_LIMIT, invocation.invoke_async(&mut self.commands.clone())).await?;
        match answer.as_str() {
            "fenced" => Ok(Appended::Fenced),
            "behind" => Ok(Appended::Behind),
            _ => Ok(Appended::Stored),
        }
    }

    pub async fn read(&self, run_id: Uuid, after: EventId, limit: usize) -> Result<Vec<Bytes>, Error> {
        let mut range = redis::cmd("XRANGE");
        range.arg(name(run_id)).arg(format!("({after}")).arg("+").arg("COUNT").arg(limit);
        let entries: Vec<Entry> =
            within("read events", REQUEST_LIMIT, range.query_async(&mut self.commands.clone())).await?;
        Ok(entries.into_iter().map(|(_, (_, lines))| lines.into()).collect())
    }

    pub async fn follow(&self, run_id: Uuid) -> Result<(), Error> {
        within("follow a run", REQUEST_LIMIT, self.subscriptions.clone().subscribe(name(run_id))).await
    }

    pub async fn unfollow(&self, run_id: Uuid) -> Result<(), Error> {
        within("stop following a run", REQUEST_LIMIT, self.subscriptions.clone().unsubscribe(name(run_id))).await
    }

    pub async fn ping(&self) -> Result<(), Error> {
        within("get a sign of life", REQUEST_LIMIT, redis::cmd("PING").query_async(&mut self.commands.clone())).await
    }
}

/// Time that a client's request may wait for Redis, which it can do without.
const REQUEST_LIMIT: Duration = Duration::from_millis(300);

/// Time that an append may take before it is repeated.
const APPEND_LIMIT: Duration = Duration::from_secs(2);

/// Time for the first connection, at the start of the process.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Awaits an answer, but not for long: while Redis is away, a call would wait for the connection to come back.
async fn within<T>(
    doing: &'static str,
    limit: Duration,
    answer: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Error> {
    let timed = tokio::time::timeout(limit, answer).await;
    let answer =
        timed.unwrap_or_else(|_| Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time").into()));
    answer.map_err(|source| Error::Redis { doing, source })
}

/// A connection that comes back by itself, however long that takes.
async fn manager(url: &SecretString, config: ConnectionManagerConfig) -> Result<ConnectionManager, Error> {
    let separator = if url.expose_secret().contains('?') { '&' } else { '?' };
    let client =
        Client::open(format!("{}{separator}protocol=resp3", url.expose_secret())).map_err(doing("use REDIS_URL"))?;
    let config = config
        .set_number_of_retries(usize::MAX)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_millis(500))
        .set_connection_timeout(Some(Duration::from_secs(2)))
        .set_response_timeout(Some(Duration::from_secs(2)));
    within("open a connection", CONNECT_LIMIT, ConnectionManager::new_with_config(client, config)).await
}

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error::Redis { doing, source }
}

fn name(run_id: Uuid) -> String {
    format!("holdfast:run:{}", run_id.simple())
}

fn push_of(info: PushInfo) -> Option<Push> {
    if info.kind != PushKind::Message {
        return None;
    }
    let mut data = info.data.into_iter();
    let (Value::BulkString(channel), Value::BulkString(lines)) = (data.next()?, data.next()?) else { return None };
    let run_id = std::str::from_utf8(&channel).ok()?.strip_prefix("holdfast:run:")?.parse().ok()?;
    Some(Push { run_id, lines: lines.into() })
}
