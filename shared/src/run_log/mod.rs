//! The run log: the hot events of each run, and a push of each append to the run's subscribers.
//!
//! The log is quick and may lose anything at any moment; the archive in `storage` is durable. The log refuses events of
//! a fenced attempt, and events after a gap. Wake-ups and cancel signals belong to `queue`.

mod batcher;
mod memory;
mod redis;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    config::{Stores, StoresConfig},
    event::{DamagedEvent, Event},
    event_id::EventId,
    redis_link,
};

/// Consecutive encoded events of one attempt.
#[derive(Debug, Clone)]
pub struct EventBatch {
    /// The attempt of each event.
    pub attempt: u32,
    /// Number of the first event in its attempt.
    pub first: u32,
    /// Number of the last event in its attempt.
    pub last: u32,
    /// The events' lines, each with its newline.
    pub lines: Bytes,
}

impl EventBatch {
    /// Returns the batch of consecutive events; `None` for no events.
    pub fn of(events: &[Event]) -> Option<Self> {
        let (first, last) = (events.first()?.id, events.last()?.id);
        let lines: Vec<u8> = events.iter().flat_map(|event| event.line().iter().copied().chain([b'\n'])).collect();
        Some(Self { attempt: first.attempt, first: first.n, last: last.n, lines: lines.into() })
    }
}

/// The log's answer to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The log has the events, now or since an earlier try.
    Stored,
    /// A later attempt has written. The worker stops and writes nothing more.
    Fenced,
    /// The log has lost earlier events. The worker flushes, which proves its claim, and then appends with
    /// `Gap::Archived`.
    Behind,
}

/// Tells whether an append may leave a gap in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The log refuses an append after a gap.
    Refuse,
    /// The archive has each event before the batch, so the log accepts the gap.
    Archived,
}

/// The log's state after a writer's last append. The next append follows it directly if the log is unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    entries: u64,
    /// When the writer last renewed the log's expiry.
    renewed: Instant,
}

/// An append, as each subscriber of its run receives it.
#[derive(Debug, Clone)]
pub struct Push {
    /// The run of the events.
    pub run_id: Uuid,
    /// The events' lines, each with its newline.
    pub lines: Bytes,
}

/// The log could not be reached, or it has an unreadable entry. It may have lost anything.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call to Redis failed.
    #[error("Redis: could not {doing}")]
    Redis {
        /// The action, as in "could not <doing>".
        doing: &'static str,
        /// The client's error.
        source: ::redis::RedisError,
    },
    /// An entry is no line of an event.
    #[error("could not read the run log")]
    Damaged(#[from] DamagedEvent),
}

impl Error {
    /// Returns whether Redis is away, so that a later call may succeed.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Redis { source, .. } if redis_link::is_away(source))
    }
}

/// The hot log of all runs; cheap to clone.
#[derive(Clone)]
pub struct RunLog(RunLogBackend);

#[derive(Clone)]
enum RunLogBackend {
    Redis(redis::RedisLog),
    Memory(Arc<memory::MemoryLog>),
}

/// Connects to the log. The receiver gets the pushes of all subscribed runs. Fails if Redis cannot be reached.
pub async fn connect(stores: &Stores, config: &StoresConfig) -> Result<(RunLog, mpsc::UnboundedReceiver<Push>), Error> {
    match stores {
        Stores::ScaledOut { redis_url, .. } => {
            let (log, pushes) = redis::RedisLog::connect(redis_url, config.log_ttl).await?;
            Ok((RunLog(RunLogBackend::Redis(log)), pushes))
        }
        Stores::Embedded { .. } | Stores::EmbeddedInMemory => {
            let (log, pushes) = memory::MemoryLog::new();
            Ok((RunLog(RunLogBackend::Memory(Arc::new(log))), pushes))
        }
    }
}

impl RunLog {
    /// Appends a batch, and pushes it to the run's subscribers. The caller may repeat it.
    pub async fn append(&self, run_id: Uuid, batch: &EventBatch, gap: Gap) -> Result<AppendOutcome, Error> {
        self.append_next(run_id, batch, gap, &mut None).await
    }

    /// Appends as `append` does, for a writer whose batches are consecutive. `mark` is the state that the writer's last
    /// append returned.
    pub async fn append_next(
        &self,
        run_id: Uuid,
        batch: &EventBatch,
        gap: Gap,
        mark: &mut Option<Mark>,
    ) -> Result<AppendOutcome, Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.append(run_id, batch, gap, mark).await,
            RunLogBackend::Memory(log) => Ok(log.append(run_id, batch, gap)),
        }
    }

    /// Returns events after `after` in the log's order, about `bytes` of them. The first of them may lie before
    /// `after`.
    pub async fn read(&self, run_id: Uuid, after: EventId, bytes: usize) -> Result<Vec<Event>, Error> {
        let entries = match &self.0 {
            RunLogBackend::Redis(log) => log.read(run_id, after, bytes).await?,
            RunLogBackend::Memory(log) => log.read(run_id, after, bytes),
        };
        let mut events = Vec::new();
        for entry in entries {
            events.extend(Event::parse_batch(&entry)?);
        }
        Ok(events)
    }

    /// Starts the pushes of a run.
    pub async fn subscribe(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.subscribe(run_id).await,
            RunLogBackend::Memory(log) => {
                log.subscribe(run_id);
                Ok(())
            }
        }
    }

    /// Ends the pushes of a run.
    pub async fn unsubscribe(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.unsubscribe(run_id).await,
            RunLogBackend::Memory(log) => {
                log.unsubscribe(run_id);
                Ok(())
            }
        }
    }

    /// Removes the logs of erased runs. A writer without a fence by a later attempt may create such a log again.
    pub async fn remove(&self, run_ids: &[Uuid]) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.remove(run_ids).await,
            RunLogBackend::Memory(log) => {
                log.remove(run_ids);
                Ok(())
            }
        }
    }

    /// Tries each command that an append needs. A Redis that answers `ping` may still refuse them.
    pub async fn ready(&self) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.ready().await,
            RunLogBackend::Memory(_) => Ok(()),
        }
    }

    /// Returns when Redis answers a PING.
    pub async fn ping(&self) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.ping().await,
            RunLogBackend::Memory(_) => Ok(()),
        }
    }
}
