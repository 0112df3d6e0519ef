//! The queue: wake-ups for idle workers, cancel signals for busy ones, and the claims as an apalis backend.
//!
//! The queue has no jobs, because the run's row is the job. A lost wake-up or signal costs latency only: workers also
//! poll the database. It also brings the checks of definitions to a worker and their reports back (`checks`).

mod backend;
mod checks;
mod memory;
mod redis;

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use uuid::Uuid;

pub use backend::{ClaimSettings, Claims, MakeRoom};
pub use checks::RequestedCheck;

use crate::{
    agent::{AgentCheck, CheckRequest},
    config::Stores,
    redis_link,
};

/// A call to Redis failed.
#[derive(Debug, thiserror::Error)]
#[error("Redis: could not {doing}")]
pub struct Error {
    doing: &'static str,
    source: ::redis::RedisError,
}

impl Error {
    /// Returns whether Redis is away, so that a later call may succeed.
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

/// Connects to the queue. Fails if Redis cannot be reached.
pub async fn connect(stores: &Stores) -> Result<Queue, Error> {
    match stores {
        Stores::ScaledOut { redis_url, .. } => {
            Ok(Queue(QueueBackend::Redis(redis::RedisQueue::connect(redis_url).await?)))
        }
        Stores::Embedded { .. } | Stores::EmbeddedInMemory => Ok(Queue(QueueBackend::Memory(Arc::default()))),
    }
}

impl Queue {
    /// Wakes one idle worker, because there is a run to claim.
    pub async fn wake(&self) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.wake().await,
            QueueBackend::Memory(queue) => {
                queue.wake();
                Ok(())
            }
        }
    }

    /// Returns after a wake-up, and after `timeout` at the latest.
    pub async fn wait_for_wake_up(&self, timeout: Duration) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.wait_for_wake_up(timeout).await,
            QueueBackend::Memory(queue) => {
                queue.wait_for_wake_up(timeout).await;
                Ok(())
            }
        }
    }

    /// Signals to the run's worker that it must cancel the run.
    pub async fn signal_cancel(&self, run_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.signal_cancel(run_id).await,
            QueueBackend::Memory(queue) => {
                queue.signal_cancel(run_id);
                Ok(())
            }
        }
    }

    /// Returns the cancel signals from now on, of all runs.
    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.cancels().await,
            QueueBackend::Memory(queue) => Ok(queue.cancels()),
        }
    }

    /// Has a worker check a definition, and returns its report. Returns `None` if no worker reports within `patience`.
    pub async fn check(&self, request: CheckRequest, patience: Duration) -> Result<Option<AgentCheck>, Error> {
        let report = async {
            match &self.0 {
                QueueBackend::Redis(queue) => queue.check(&request).await,
                QueueBackend::Memory(queue) => Ok(queue.check(request).await),
            }
        };
        tokio::time::timeout(patience, report).await.unwrap_or(Ok(None))
    }

    /// Returns the checks that processes request from now on.
    pub async fn checks(&self) -> Result<mpsc::UnboundedReceiver<RequestedCheck>, Error> {
        match &self.0 {
            QueueBackend::Redis(queue) => queue.checks().await,
            QueueBackend::Memory(queue) => Ok(queue.checks()),
        }
    }
}
