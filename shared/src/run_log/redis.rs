//! The run log of the scaled-out mode: one stream and one channel per run, both named `holdfast:run:<id>`.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use bytes::Bytes;
use redis::{PushInfo, PushKind, RedisError, Script, Value};
use secrecy::SecretString;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    AppendOutcome, Error, EventBatch, Gap, Mark, Push,
    batcher::{AppendBatcher, Expiry},
};
use crate::{
    event_id::EventId,
    redis_link::{Link, Use, within},
};

/// Tries what an append needs: scripts, writes, memory and channels. A Redis that only answers PING is not ready.
static READY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("ready.lua")));
const READY_KEY: &str = "holdfast:ready";

static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read.lua")));

#[derive(Clone)]
pub struct RedisLog {
    commands: Link,
    appends: AppendBatcher,
    /// A separate connection, so that pushes never wait for answers.
    subscriptions: Link,
    ttl: Duration,
}

impl RedisLog {
    pub async fn connect(url: &SecretString, ttl: Duration) -> Result<(Self, mpsc::UnboundedReceiver<Push>), Error> {
        let (sender, pushes) = mpsc::unbounded_channel();
        let commands = Link::open(url, Use::Prompt, drop).await.map_err(doing("open a connection"))?;
        let relayed = Link::open(url, Use::Prompt, move |info| {
            if let Some(push) = push_of(info) {
                let _ = sender.send(push);
            }
        });
        let subscriptions = relayed.await.map_err(doing("open a connection"))?;
        let appends = AppendBatcher::start(commands.clone());
        Ok((Self { commands, appends, subscriptions, ttl }, pushes))
    }

    pub async fn append(
        &self,
        run_id: Uuid,
        batch: &EventBatch,
        gap: Gap,
        mark: &mut Option<Mark>,
    ) -> Result<AppendOutcome, Error> {
        // A rare renewal costs less than an exact expiry, so the stream lives a little longer than the setting says.
        let slack = self.ttl / 64;
        let (before, now) = (mark.take(), Instant::now());
        let renewed = before.map(|mark| mark.renewed).filter(|renewed| now.duration_since(*renewed) < slack);
        let expiry = Expiry { after: self.ttl + slack, renew: renewed.is_none() };
        let append = self.appends.append(name(run_id), batch, gap, before.map(|mark| mark.entries), expiry);
        let answer = append.await.map_err(doing("append events"))?;
        match answer.as_str() {
            "fenced" => Ok(AppendOutcome::Fenced),
            "behind" => Ok(AppendOutcome::Behind),
            stored => {
                let entries = stored.parse().ok();
                *mark = entries.map(|entries| Mark { entries, renewed: renewed.unwrap_or(now) });
                Ok(AppendOutcome::Stored)
            }
        }
    }

    pub async fn read(&self, run_id: Uuid, after: EventId, bytes: usize) -> Result<Vec<Bytes>, Error> {
        let mut commands = self.commands.clone();
        let mut read = READ.key(name(run_id));
        let read = read.arg(after.to_string()).arg(bytes).invoke_async::<Vec<Vec<u8>>>(&mut commands);
        let entries = within(REQUEST_LIMIT, read).await.map_err(doing("read events"))?;
        Ok(entries.into_iter().map(Bytes::from).collect())
    }

    pub async fn subscribe(&self, run_id: Uuid) -> Result<(), Error> {
        within(REQUEST_LIMIT, self.subscriptions.subscribe(name(run_id))).await.map_err(doing("follow a run"))
    }

    pub async fn unsubscribe(&self, run_id: Uuid) -> Result<(), Error> {
        within(REQUEST_LIMIT, self.subscriptions.unsubscribe(name(run_id))).await.map_err(doing("stop following a run"))
    }

    pub async fn remove(&self, run_ids: &[Uuid]) -> Result<(), Error> {
        for some in run_ids.chunks(REMOVED_AT_ONCE) {
            let mut unlink = redis::cmd("UNLINK");
            for run_id in some {
                unlink.arg(name(*run_id));
            }
            let mut commands = self.commands.clone();
            let removed = unlink.query_async::<u64>(&mut commands);
            within(REQUEST_LIMIT, removed).await.map_err(doing("remove logs"))?;
        }
        Ok(())
    }

    pub async fn ping(&self) -> Result<(), Error> {
        within(REQUEST_LIMIT, redis::cmd("PING").query_async(&mut self.commands.clone()))
            .await
            .map_err(doing("get a sign of life"))
    }

    pub async fn ready(&self) -> Result<(), Error> {
        let mut commands = self.commands.clone();
        let mut ready = READY.key(READY_KEY);
        ready.arg(commands.publish_command());
        within(REQUEST_LIMIT, ready.invoke_async::<()>(&mut commands)).await.map_err(doing("append to a log"))
    }
}

/// Time-out of Redis in a client's request, which can continue without it.
const REQUEST_LIMIT: Duration = Duration::from_millis(300);

/// Logs that one command removes.
const REMOVED_AT_ONCE: usize = 500;

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error::Redis { doing, source }
}

fn name(run_id: Uuid) -> String {
    format!("holdfast:run:{}", run_id.simple())
}

fn push_of(info: PushInfo) -> Option<Push> {
    if !matches!(info.kind, PushKind::Message | PushKind::SMessage) {
        return None;
    }
    let mut data = info.data.into_iter();
    let (Value::BulkString(channel), Value::BulkString(lines)) = (data.next()?, data.next()?) else { return None };
    let run_id = std::str::from_utf8(&channel).ok()?.strip_prefix("holdfast:run:")?.parse().ok()?;
    Some(Push { run_id, lines: lines.into() })
}
