//! The way to the archive: the tail of events that are not durable yet, and one flush in flight.
//!
//! A flush that fails is repeated unchanged, because its answer may have been lost after the commit. Later events wait
//! for the next flush.

use std::{
    error::Error as _,
    pin::Pin,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_shared::{
    backoff::Backoff,
    event_id::EventId,
    storage::{ArchiveChunk, Claim, Error, FlushOutcome, Progress, Storage},
};
use tokio::time::{Instant, Sleep};

use super::{LeaseLost, ending::REFUSALS};
use crate::{
    WorkerState,
    spans::{self, Spans},
};

/// Pauses after a failed flush.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Longest time of one flush before it counts as failed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Flushes {
    shared: Arc<WorkerState>,
    claim: Arc<Claim>,
    spans: Spans,
    /// Lines of the events that are in no flush yet, and the last of them.
    tail: Vec<u8>,
    last: EventId,
    /// Progress that becomes durable with them.
    progress: Progress,
    /// The newest event that is in the archive.
    archived_to: EventId,
    /// When the oldest event of the tail must be flushed.
    due_at: Option<Instant>,
    /// The chunk in flight or to be retried; `retry_at` is the time of the retry.
    chunk: Option<Arc<ArchiveChunk>>,
    /// When the chunk was first tried.
    started_at: Option<Instant>,
    in_flight: Option<BoxFuture<'static, Result<FlushOutcome, Error>>>,
    /// Times that the database could be reached and refused the chunk.
    refusals: usize,
    /// Whether it has finally refused progress.
    refused: bool,
    /// Whether it has refused a checkpoint, without which the run continues.
    lacks_checkpoint: bool,
    retry_at: Option<Instant>,
    backoff: Backoff,
    /// Waits for the next flush. Each event interrupts the wait, and a new timer each time would cost more.
    timer: Pin<Box<Sleep>>,
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushStep {
    /// Everything up to this event is in the archive.
    Durable(EventId),
    /// The database is away; the flush will be retried.
    Failed,
}

/// Ticks in an interval, at which a process flushes its runs; the runs of one tick share writes. Fewer ticks make larger
/// writes, which delay tokens.
const FLUSH_TICKS: u32 = 64;

/// The tick that all others are counted from.
static FIRST_TICK: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the last tick that is not after `latest`.
fn tick_before(latest: Instant, interval: Duration) -> Instant {
    let apart = (interval / FLUSH_TICKS).as_nanos().max(1);
    let late = latest.duration_since(*FIRST_TICK).as_nanos() % apart;
    latest - Duration::from_nanos(late as u64)
}

impl Flushes {
    pub fn new(shared: Arc<WorkerState>, claim: Arc<Claim>, spans: Spans) -> Self {
        Self {
            shared,
            tail: Vec::new(),
            last: claim.started.id,
            progress: Progress::default(),
            archived_to: claim.started.id,
            claim,
            spans,
            due_at: None,
            chunk: None,
            started_at: None,
            in_flight: None,
            refusals: 0,
            refused: false,
            lacks_checkpoint: false,
            retry_at: None,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    /// Adds the next event's line.
    pub fn push(&mut self, id: EventId, line: &[u8]) {
        self.tail.extend_from_slice(line);
        self.last = id;
        let config = &self.shared.worker.config;
        if self.tail.len() >= config.flush_bytes {
            self.demand();
        } else if self.due_at.is_none() {
            self.due_at = Some(tick_before(Instant::now() + config.flush, config.flush));
        }
    }

    /// Adds progress that must soon become durable with the newest event.
    pub fn note(&mut self, progress: Progress) {
        self.absorb(progress);
        self.demand();
    }

    /// Adds progress that becomes durable with the next flush, whenever that is.
    pub fn absorb(&mut self, progress: Progress) {
        self.progress.absorb(progress);
    }

    /// Returns whether all events and progress are in the database.
    pub fn is_durable(&self) -> bool {
        self.archived_to >= self.last && self.chunk.is_none() && self.progress.is_empty()
    }

    /// Returns whether the database has finally refused progress.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Returns whether the database has refused a checkpoint.
    pub fn lacks_checkpoint(&self) -> bool {
        self.lacks_checkpoint
    }

    /// Makes the next flush due now. With nothing to flush, it still proves that the run is held.
    pub fn demand(&mut self) {
        self.due_at = Some(Instant::now());
    }

    /// Returns whether more bytes than allowed wait for the database.
    pub fn is_full(&self) -> bool {
        self.tail.len() + self.chunk.as_ref().map_or(0, |chunk| chunk.body.len()) > self.shared.worker.config.tail_bytes
    }

    /// Starts the next flush when it is due, and resolves when one has ended. Cancel-safe.
    pub async fn step(&mut self) -> Result<FlushStep, LeaseLost> {
        if self.in_flight.is_none() {
            let due_at = if self.chunk.is_some() { self.retry_at } else { self.due_at };
            let Some(due_at) = due_at else { return std::future::pending().await };
            if self.timer.deadline() != due_at {
                self.timer.as_mut().reset(due_at);
            }
            self.timer.as_mut().await;
            self.begin();
        }
        let flushed = self.in_flight.as_mut().expect("a flush was just started").await;
        self.in_flight = None;
        self.settle(flushed)
    }

    /// Returns whether a flush is in flight, or has failed and will be repeated.
    pub fn is_trying(&self) -> bool {
        self.chunk.is_some()
    }

    pub fn storage(&self) -> &Storage {
        &self.shared.worker.storage
    }

    /// Returns the data that is not durable yet. Callers wait until no flush is being tried.
    pub fn take_tail(&mut self) -> Option<ArchiveChunk> {
        self.due_at = None;
        let nothing = self.tail.is_empty() && self.progress.is_empty();
        (!nothing).then(|| self.next_chunk())
    }

    fn begin(&mut self) {
        self.retry_at = None;
        let chunk = match &self.chunk {
            Some(chunk) => Arc::clone(chunk),
            None => {
                self.due_at = None;
                // The database recognises a repeated flush by its events: progress without events waits for the next
                // event.
                let nothing = || ArchiveChunk { last: self.last, body: Bytes::new(), progress: Progress::default() };
                Arc::new(if self.tail.is_empty() { nothing() } else { self.next_chunk() })
            }
        };
        self.chunk = Some(Arc::clone(&chunk));
        self.started_at.get_or_insert_with(Instant::now);
        let (shared, claim) = (Arc::clone(&self.shared), Arc::clone(&self.claim));
        let mut span = self.spans.commit("flush", Some(&chunk));
        self.in_flight = Some(Box::pin(async move {
            let worker = &shared.worker;
            let flush = worker.storage.flush(&claim, &chunk, worker.config.lease);
            let flushed = match tokio::time::timeout(FLUSH_TIMEOUT, flush).await {
                Ok(flushed) => flushed,
                Err(_) => Err(Error::TooSlow { doing: "archive events of a run" }),
            };
            flushed.inspect_err(|error| spans::fail_commit(&mut span, error))
        }));
    }

    fn next_chunk(&mut self) -> ArchiveChunk {
        let body = Bytes::from(std::mem::take(&mut self.tail));
        ArchiveChunk { last: self.last, body, progress: std::mem::take(&mut self.progress) }
    }

    fn settle(&mut self, flushed: Result<FlushOutcome, Error>) -> Result<FlushStep, LeaseLost> {
        match flushed {
            Ok(flushed @ (FlushOutcome::Durable | FlushOutcome::WithoutCheckpoint)) => {
                self.lacks_checkpoint |= flushed == FlushOutcome::WithoutCheckpoint;
                self.backoff.reset();
                self.refusals = 0;
                let took = self.started_at.take().expect("the flush was started").elapsed();
                metrics::histogram!("holdfast_flush_seconds").record(took.as_secs_f64());
                let chunk = self.chunk.take().expect("the chunk that was flushed");
                self.archived_to = chunk.last;
                Ok(FlushStep::Durable(chunk.last))
            }
            Ok(FlushOutcome::Fenced) => Err(LeaseLost),
            Err(error) => {
                metrics::counter!("holdfast_flush_failures_total").increment(1);
                self.refusals += usize::from(error.refuses_write());
                if self.refusals >= REFUSALS {
                    self.refused = true;
                    self.chunk =
                        self.chunk.take().map(|chunk| Arc::new(Arc::unwrap_or_clone(chunk).without_progress()));
                }
                let cause = error.source().map(ToString::to_string);
                let pause = self.backoff.next_pause();
                tracing::warn!(%error, cause, retry_in_ms = pause.as_millis() as u64, "failed to archive events; they stay in memory");
                self.retry_at = Some(Instant::now() + pause);
                Ok(FlushStep::Failed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use tokio::time::Instant;

    use super::{FLUSH_TICKS, tick_before};

    #[test]
    fn runs_flush_at_shared_ticks_and_none_flushes_late() {
        let (interval, first) = (Duration::from_millis(6_400), Instant::now());
        let mut ticks = BTreeSet::new();
        for ms in 0..6_400 {
            let latest = first + interval + Duration::from_millis(ms);
            let tick = tick_before(latest, interval);
            assert!(tick <= latest && latest - tick < interval / FLUSH_TICKS);
            ticks.insert(tick);
        }
        assert!([FLUSH_TICKS, FLUSH_TICKS + 1].contains(&(ticks.len() as u32)), "{}", ticks.len());
    }

    #[test]
    fn without_an_interval_a_run_flushes_at_once() {
        let latest = Instant::now();
        assert_eq!(tick_before(latest, Duration::ZERO), latest);
    }
}
