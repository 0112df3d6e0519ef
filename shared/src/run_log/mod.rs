//! The run log: the hot, per-run event log, and the push of each append to whoever follows the run.
//!
//! It is quick and may lose anything at any moment; the archive in `storage` is what lasts. It refuses what does not
//! belong: events of an attempt that a later one has fenced, and events behind a gap.
//! Wake-ups and cancel signals are not here but in `queue`.

mod batcher;
mod memory;
mod redis;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    config::{Stores, StoresConfig},
    event::{Damaged, Event},
    event_id::EventId,
    redis_link,
};

/// Events in a row of one attempt, in their encoded form.
#[derive(Debug, Clone)]
pub struct EventBatch {
    pub attempt: u32,
    /// Numbers of the first and the last event.
    pub first: u32,
    pub last: u32,
    /// The events' lines, each with its newline.
    pub lines: Bytes,
}

impl EventBatch {
    /// The batch of some events in a row; `None` if there are none.
    pub fn of(events: &[Event]) -> Option<Self> {
        let (first, last) = (events.first()?.id, events.last()?.id);
        let lines: Vec<u8> = events.iter().flat_map(|event| event.line().iter().copied().chain([b'\n'])).collect();
        Some(Self { attempt: first.attempt, first: first.n, last: last.n, lines: lines.into() })
    }
}

/// What the log says to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The events are in the log, now or since an earlier try.
    Stored,
    /// A later attempt has written: stop, write nothing more.
    Fenced,
    /// The log has lost what came before: flush, which proves that the run is still held, then append as a rebuild.
    Behind,
}

/// Whether an append may leave a gap in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    Refuse,
    /// Everything before the batch is in the archive.
    Archived,
}

/// Where a writer's last append has left the log: if the log is still like that, the next one follows it.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    entries: u64,
    /// When the log's time was last begun anew.
    renewed: Instant,
}

/// An append, as it reaches everyone who follows its run.
#[derive(Debug, Clone)]
pub struct Push {
    pub run_id: Uuid,
    pub lines: Bytes,
}

/// The log could not be reached, or held something unreadable; it may have lost anything.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("Redis: could not {doing}")]
    Redis { doing: &'static str, source: ::redis::RedisError },
    #[error("could not read the run log")]
    Damaged(#[from] Damaged),
}

impl Error {
    /// Whether Redis cannot be reached now, so that the same call may succeed later.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Redis { source, .. } if redis_link::is_away(source))
    }
}

/// The hot log of every run; cheap to clone.
#[derive(Clone)]
pub struct RunLog(RunLogBackend);

#[derive(Clone)]
enum RunLogBackend {
    Redis(redis::RedisLog),
    Memory(Arc<memory::MemoryLog>),
}

/// Connects to the log. The pushes of all followed runs arrive at the receiver.
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
    /// Appends a batch and pushes it to the run's followers. May be repeated.
    pub async fn append(&self, run_id: Uuid, batch: &EventBatch, gap: Gap) -> Result<AppendOutcome, Error> {
        self.append_next(run_id, batch, gap, &mut None).await
    }

    /// The same for a writer that appends again and again, each batch behind the one before, with the mark that its last
    /// append has left.
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

    /// The next events after `after`, in the order of the log, about `bytes` of them where there are as many; the first may
    /// lie before `after`.
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

    /// Begins to receive the run's pushes.
    pub async fn subscribe(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.subscribe(run_id).await,
            RunLogBackend::Memory(log) => {
                log.subscribe(run_id);
                Ok(())
            }
        }
    }

    /// Ends `subscribe`.
    pub async fn unsubscribe(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.unsubscribe(run_id).await,
            RunLogBackend::Memory(log) => {
                log.unsubscribe(run_id);
                Ok(())
            }
        }
    }

    /// Removes the logs of erased runs. A writer that a later attempt has not fenced may begin
    /// such a log again.
    pub async fn remove(&self, run_ids: &[Uuid]) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.remove(run_ids).await,
            RunLogBackend::Memory(log) => {
                log.remove(run_ids);
                Ok(())
            }
        }
    }

    /// Tries what an append needs. A log that answers `ping` may still refuse it.
    pub async fn ready(&self) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.ready().await,
            RunLogBackend::Memory(_) => Ok(()),
        }
    }

    /// Asks the log for a sign of life.
    pub async fn ping(&self) -> Result<(), Error> {
        match &self.0 {
            RunLogBackend::Redis(log) => log.ping().await,
            RunLogBackend::Memory(_) => Ok(()),
        }
    }
}
