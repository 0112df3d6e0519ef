//! The queue: wake-ups for idle workers, cancel signals for busy ones, and the claims as an apalis backend.
//!
//! The queue holds no jobs: the run's row is the job. Whatever is lost here costs latency only, because workers look
//! into the database by themselves now and then.

mod backend;
mod memory;
mod redis;

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use uuid::Uuid;

pub use backend::{ClaimSettings, Claims, MakeRoom};

use crate::{config::Stores, redis_link};

/// Redis could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("Redis: could not {doing}")]
pub struct Error {
    doing: &'static str,
    source: ::redis::RedisError,
}

impl Error {
    /// Whether Redis cannot be reached now, so that the same call may succeed later.
    pub fn is_away(&self) -> bool {
        redis_link::is_away(&self.source)
    }
}

/// Wake-ups and cancel signals; cheap to clone.
#[derive(Clone)]
pub struct Queue(QueueBackend);

#[derive(Clone)]
enum QueueBackend {
    Redis(redis::RedisQueue),
    Memory(Arc<memory::MemoryQueue>),
}

/// Connects to the queue.
pub async fn connect(stores: &Stores) -> Result<Queue, Error> {
    match stores {
        Stores::ScaledOut { redis_url, .. } => {
            Ok(Queue(QueueBackend::Redis(redis::RedisQueue::connect(redis_url).await?)))
        }
        Stores::Embedded { .. } | Stores::EmbeddedInMemory => Ok(Queue(QueueBackend::Memory(Arc::default()))),
    }
}

impl Queue {
    /// Tells one idle worker that there is a run to claim.
    pub async fn wake(&self) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.wake().await,
            QueueBackend::Memory(queue) => {
                queue.wake();
                Ok(())
            }
        }
    }

    /// Waits for a wake-up, at most `timeout`.
    pub async fn wait_for_wake_up(&self, timeout: Duration) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.wait_for_wake_up(timeout).await,
            QueueBackend::Memory(queue) => {
                queue.wait_for_wake_up(timeout).await;
                Ok(())
            }
        }
    }

    /// Tells whoever executes the run that it is to be cancelled.
    pub async fn signal_cancel(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.signal_cancel(run_id).await,
            QueueBackend::Memory(queue) => {
                queue.signal_cancel(run_id);
                Ok(())
            }
        }
    }

    /// The cancel signals from now on, of all runs.
    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.cancels().await,
            QueueBackend::Memory(queue) => Ok(queue.cancels()),
        }
    }
}
