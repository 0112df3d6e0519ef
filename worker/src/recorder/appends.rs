//! The way to the run log: one append in flight; later events go with the next append.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_shared::{
    backoff::Backoff,
    event_id::EventId,
    run_log::{AppendOutcome, Error, EventBatch, Gap, Mark},
};
use tokio::time::Instant;
use uuid::Uuid;

use super::{LeaseLost, append_spans::AppendSpans};
use crate::WorkerState;

/// Under load, the shortest time between two appends; it enlarges the batches.
const LINGER: Duration = Duration::from_millis(2);

/// Rapid appends after which the run lingers. A run's first tokens come right after the events that announce them.
const RAPID_APPENDS: u32 = 3;

/// Pauses after a failed append.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Size of one append, give or take an event.
const APPEND_BYTES: usize = 64 << 10;

/// Most bytes that wait for an append; beyond, the log must catch up from the archive.
const WAITING_BYTES: usize = 8 << 20;

/// The log's result, the mark that the append has left, and the batch.
type AppendResult = (Result<AppendOutcome, Error>, Option<Mark>, EventBatch);

pub struct Appends {
    shared: Arc<WorkerState>,
    run_id: Uuid,
    attempt: u32,
    /// Lines that are in no append yet, and the number of the first one.
    waiting: Vec<u8>,
    first: u32,
    /// The newest number that was pushed.
    last: u32,
    state: AppendState,
    mark: Option<Mark>,
    gap: Gap,
    last_start: Option<Instant>,
    /// Consecutive appends that started right after the previous one.
    rapid: u32,
    backoff: Backoff,
    spans: AppendSpans,
}

/// Whether an append may start.
enum AppendState {
    /// As soon as an event waits.
    Ready,
    /// From this moment on: under load, or after a failure.
    Paused(Instant),
    /// When the one in flight has ended.
    InFlight(AppendInFlight),
    /// The log has lost earlier events. A flush must prove first that the run is still held.
    NeedsArchive,
}

struct AppendInFlight {
    append: BoxFuture<'static, AppendResult>,
    /// The pause after it, unless it fails.
    pause: Option<Instant>,
    /// When it started, if its run is traced.
    started_at: Option<SystemTime>,
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendStep {
    Stored,
    /// The log has lost earlier events: a flush must come first.
    NeedsFlush,
    Failed,
}

impl AppendStep {
    pub fn needs_flush(self) -> bool {
        self == Self::NeedsFlush
    }
}

impl Appends {
    pub fn new(shared: Arc<WorkerState>, run_id: Uuid, attempt: u32, spans: AppendSpans) -> Self {
        Self {
            shared,
            run_id,
            attempt,
            waiting: Vec::new(),
            first: 1,
            last: 0,
            state: AppendState::Ready,
            mark: None,
            gap: Gap::Refuse,
            last_start: None,
            rapid: 0,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            spans,
        }
    }

    /// Adds the next event's line.
    pub fn push(&mut self, n: u32, line: &[u8]) {
        if self.waiting.is_empty() {
            self.first = n;
        }
        self.waiting.extend_from_slice(line);
        self.last = n;
    }

    /// Marks everything up to `archived_to` as durable: a log that lost it may continue after it.
    pub fn set_archived_to(&mut self, archived_to: EventId) {
        self.spans.close();
        let failing = match self.state {
            AppendState::NeedsArchive => true,
            AppendState::Ready | AppendState::Paused(_) => !self.backoff.is_fresh(),
            AppendState::InFlight(_) => false,
        };
        let reaches = archived_to >= EventId::new(self.attempt, self.first.saturating_sub(1));
        if !failing || !reaches {
            return;
        }
        self.continue_after_gap();
        // Durable events need not pass through the log any more, but the last event must, because the log continues
        // from it.
        let durable = archived_to.n.min(self.last.saturating_sub(1));
        if self.waiting.len() > WAITING_BYTES && durable >= self.first {
            let count = (durable + 1 - self.first) as usize;
            let end = memchr::memchr_iter(b'\n', &self.waiting).nth(count - 1).map_or(0, |newline| newline + 1);
            self.waiting.drain(..end);
            self.first = durable + 1;
        }
    }

    /// Marks all events as durable: the log may have any gap from here on.
    pub fn mark_all_archived(&mut self) {
        self.continue_after_gap();
    }

    fn continue_after_gap(&mut self) {
        if let AppendState::NeedsArchive = self.state {
            self.state = AppendState::Ready;
        }
        self.gap = Gap::Archived;
    }

    /// Returns whether an append was ever started.
    pub fn has_begun(&self) -> bool {
        self.last_start.is_some()
    }

    /// Returns whether no event waits and no append is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !matches!(self.state, AppendState::InFlight(_))
    }

    /// Starts the next append when it is due, and resolves when one has ended. Cancel-safe.
    pub async fn step(&mut self) -> Result<AppendStep, LeaseLost> {
        loop {
            match &mut self.state {
                AppendState::InFlight(in_flight) => {
                    let (appended, mark, batch) = (&mut in_flight.append).await;
                    self.mark = mark;
                    return self.settle(appended, batch);
                }
                AppendState::NeedsArchive => std::future::pending().await,
                _ if self.waiting.is_empty() => std::future::pending().await,
                AppendState::Paused(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.state = AppendState::Ready;
                }
                AppendState::Ready => self.state = AppendState::InFlight(self.begin()),
            }
        }
    }

    fn begin(&mut self) -> AppendInFlight {
        let now = Instant::now();
        let rapid = self.last_start.replace(now).is_some_and(|last| now.duration_since(last) <= 2 * LINGER);
        self.rapid = if rapid { self.rapid + 1 } else { 0 };
        let started_at = self.spans.begin();
        let batch = self.next_batch();
        let (shared, run_id, gap) = (Arc::clone(&self.shared), self.run_id, self.gap);
        let mut mark = self.mark.take();
        let append = async move {
            let appended = shared.worker.run_log.append_next(run_id, &batch, gap, &mut mark).await;
            (appended, mark, batch)
        };
        // The first events after a pause go at once; only a run that appends again and again lingers.
        let pause = (self.rapid >= RAPID_APPENDS).then_some(now + LINGER);
        AppendInFlight { append: Box::pin(append), pause, started_at }
    }

    /// Takes the waiting lines, or as many of them as one append should carry.
    fn next_batch(&mut self) -> EventBatch {
        let (attempt, first) = (self.attempt, self.first);
        let end = if self.waiting.len() <= APPEND_BYTES {
            self.waiting.len()
        } else {
            memchr::memchr(b'\n', &self.waiting[APPEND_BYTES..])
                .map_or(self.waiting.len(), |newline| APPEND_BYTES + newline + 1)
        };
        // A copy of the exact size, because the buffer's spare capacity would stay in memory with it.
        let lines = Bytes::copy_from_slice(&self.waiting[..end]);
        self.waiting.drain(..end);
        let last = if self.waiting.is_empty() {
            self.last
        } else {
            first + memchr::memchr_iter(b'\n', &lines).count() as u32 - 1
        };
        self.first = last + 1;
        EventBatch { attempt, first, last, lines }
    }

    /// Leaves the state of an append in flight, which has ended with this result.
    fn settle(&mut self, appended: Result<AppendOutcome, Error>, batch: EventBatch) -> Result<AppendStep, LeaseLost> {
        let AppendState::InFlight(in_flight) = std::mem::replace(&mut self.state, AppendState::Ready) else {
            unreachable!("only an append in flight ends");
        };
        let AppendInFlight { pause, started_at, .. } = in_flight;
        let events = batch.last + 1 - batch.first;
        self.spans.add(started_at, matches!(appended, Ok(AppendOutcome::Stored)).then_some(events));
        match appended {
            Ok(AppendOutcome::Stored) => {
                metrics::counter!("holdfast_events_appended_total").increment(u64::from(events));
                self.gap = Gap::Refuse;
                self.backoff.reset();
                self.state = pause.map_or(AppendState::Ready, AppendState::Paused);
                Ok(AppendStep::Stored)
            }
            Ok(AppendOutcome::Fenced) => Err(LeaseLost),
            Ok(AppendOutcome::Behind) => {
                self.put_back(batch);
                self.state = AppendState::NeedsArchive;
                Ok(AppendStep::NeedsFlush)
            }
            Err(error) => {
                metrics::counter!("holdfast_append_failures_total").increment(1);
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "failed to append to the run log; clients receive events from the archive"
                );
                self.put_back(batch);
                self.state = AppendState::Paused(Instant::now() + self.backoff.next_pause());
                Ok(AppendStep::Failed)
            }
        }
    }

    /// Puts a batch back before the waiting lines.
    fn put_back(&mut self, batch: EventBatch) {
        let later = std::mem::replace(&mut self.waiting, batch.lines.to_vec());
        self.waiting.extend(later);
        self.first = batch.first;
    }
}
