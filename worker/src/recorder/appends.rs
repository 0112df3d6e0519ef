//! The way to the run log: one append in flight, and what comes meanwhile goes with the next.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_shared::{
    event_id::EventId,
    run_log::{AppendOutcome, Error, EventBatch, Gap, Mark, RunLog},
};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Fenced, stretch::Stretches};

/// Under load, the shortest time between two appends: it widens the batches.
const LINGER: Duration = Duration::from_millis(2);

/// Appends in a hurry after which it is load: a run's first words come right behind what announces them.
const HURRIED: u32 = 3;

/// Wait after a failed append; it doubles up to the longest.
const BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// Size of one append, give or take an event.
const APPEND_BYTES: usize = 64 << 10;

/// Most bytes that wait for an append; beyond, the log must catch up from the archive.
const WAITING_BYTES: usize = 8 << 20;

/// What the log has said, and where the append has left it.
type Answer = (Result<AppendOutcome, Error>, Option<Mark>);

pub struct Appends {
    run_log: RunLog,
    run_id: Uuid,
    attempt: u32,
    /// Lines that are in no append yet, and the number of the first of them.
    waiting: Vec<u8>,
    first: u32,
    /// The newest number that was pushed.
    last: u32,
    in_flight: Option<(EventBatch, BoxFuture<'static, Answer>)>,
    mark: Option<Mark>,
    gap: Gap,
    /// Nothing is appended until a flush has proved that the run is still held.
    behind: bool,
    /// Nothing is appended before this.
    not_before: Option<Instant>,
    last_begun: Option<Instant>,
    /// Appends in a row that came right after the one before.
    hurried: u32,
    backoff: Duration,
    stretches: Stretches,
    /// When the append in flight was begun, if its run is traced.
    begun: Option<SystemTime>,
}

/// What a step has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Stored,
    /// The log has lost what came before: flush.
    Behind,
    Failed,
}

impl Step {
    pub fn is_behind(self) -> bool {
        self == Self::Behind
    }
}

impl Appends {
    pub fn new(run_log: RunLog, run_id: Uuid, attempt: u32, stretches: Stretches) -> Self {
        Self {
            run_log,
            run_id,
            attempt,
            waiting: Vec::new(),
            first: 1,
            last: 0,
            in_flight: None,
            mark: None,
            gap: Gap::Refuse,
            behind: false,
            not_before: None,
            last_begun: None,
            hurried: 0,
            backoff: BACKOFF,
            stretches,
            begun: None,
        }
    }

    /// Takes the next event's line.
    pub fn push(&mut self, n: u32, line: &[u8]) {
        if self.waiting.is_empty() {
            self.first = n;
        }
        self.waiting.extend_from_slice(line);
        self.last = n;
    }

    /// Everything up to `archived_to` is durable: a log that lost it may go on behind it.
    pub fn archived_to(&mut self, archived_to: EventId) {
        self.stretches.cut();
        let failing = self.behind || self.backoff > BACKOFF;
        let reaches = archived_to >= EventId::new(self.attempt, self.first.saturating_sub(1));
        if !failing || !reaches || self.in_flight.is_some() {
            return;
        }
        self.behind = false;
        self.gap = Gap::Archived;
        // What is durable need not pass through the log any more, but the last event must: it carries the log on.
        let known = archived_to.n.min(self.last.saturating_sub(1));
        if self.waiting.len() > WAITING_BYTES && known >= self.first {
            let dropped = (known + 1 - self.first) as usize;
            let end = memchr::memchr_iter(b'\n', &self.waiting).nth(dropped - 1).map_or(0, |newline| newline + 1);
            self.waiting.drain(..end);
            self.first = known + 1;
        }
    }

    /// Everything that was pushed is durable: the log may have any gap from here on.
    pub fn archived_all(&mut self) {
        self.behind = false;
        self.gap = Gap::Archived;
    }

    /// Whether nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Begins the next append when it is due, and resolves when one has ended. Cancel-safe.
    pub async fn step(&mut self) -> Result<Step, Fenced> {
        if self.in_flight.is_none() {
            self.due().await;
            self.begin();
        }
        let (_, append) = self.in_flight.as_mut().expect("an append was just begun");
        let (appended, mark) = append.await;
        self.mark = mark;
        let (batch, _) = self.in_flight.take().expect("the append that has just ended");
        self.settle(batch, appended)
    }

    /// Resolves when there is something to append and nothing speaks against it.
    async fn due(&mut self) {
        if self.waiting.is_empty() || self.behind {
            return std::future::pending().await;
        }
        if let Some(not_before) = self.not_before {
            tokio::time::sleep_until(not_before).await;
            self.not_before = None;
        }
    }

    fn begin(&mut self) {
        let now = Instant::now();
        let hurried = self.last_begun.replace(now).is_some_and(|last| now.duration_since(last) <= 2 * LINGER);
        self.hurried = if hurried { self.hurried + 1 } else { 0 };
        // The first events after a pause go at once; only a run that appends again and again lingers.
        self.not_before = (self.hurried >= HURRIED).then_some(now + LINGER);
        self.begun = self.stretches.begin();
        let batch = self.next_batch();
        let (run_log, run_id, gap, sent) = (self.run_log.clone(), self.run_id, self.gap, batch.clone());
        let mut mark = self.mark.take();
        let append = async move {
            let appended = run_log.append_next(run_id, &sent, gap, &mut mark).await;
            (appended, mark)
        };
        self.in_flight = Some((batch, Box::pin(append)));
    }

    /// Takes what waits, or as much of it as one append should carry.
    fn next_batch(&mut self) -> EventBatch {
        let (attempt, first) = (self.attempt, self.first);
        let end = match self.waiting.len() <= APPEND_BYTES {
            true => self.waiting.len(),
            false => memchr::memchr(b'\n', &self.waiting[APPEND_BYTES..])
                .map_or(self.waiting.len(), |newline| APPEND_BYTES + newline + 1),
        };
        // A copy of the exact size: the buffer's spare capacity would be kept in memory with it.
        let lines = Bytes::copy_from_slice(&self.waiting[..end]);
        self.waiting.drain(..end);
        let last = match self.waiting.is_empty() {
            true => self.last,
            false => first + memchr::memchr_iter(b'\n', &lines).count() as u32 - 1,
        };
        self.first = last + 1;
        EventBatch { attempt, first, last, lines }
    }

    fn settle(&mut self, batch: EventBatch, appended: Result<AppendOutcome, Error>) -> Result<Step, Fenced> {
        let stored = matches!(appended, Ok(AppendOutcome::Stored)).then(|| batch.last + 1 - batch.first);
        self.stretches.add(self.begun.take(), stored);
        match appended {
            Ok(AppendOutcome::Stored) => {
                metrics::counter!("holdfast_events_appended_total").increment(u64::from(batch.last + 1 - batch.first));
                self.gap = Gap::Refuse;
                self.backoff = BACKOFF;
                Ok(Step::Stored)
            }
            Ok(AppendOutcome::Fenced) => Err(Fenced),
            Ok(AppendOutcome::Behind) => {
                self.take_back(batch);
                self.behind = true;
                Ok(Step::Behind)
            }
            Err(error) => {
                metrics::counter!("holdfast_append_failures_total").increment(1);
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the run log is away; events go by way of the archive"
                );
                self.take_back(batch);
                self.not_before = Some(Instant::now() + self.backoff);
                self.backoff = (self.backoff * 2).min(LONGEST_BACKOFF);
                Ok(Step::Failed)
            }
        }
    }

    /// Puts a batch back in front of what waits.
    fn take_back(&mut self, batch: EventBatch) {
        let later = std::mem::replace(&mut self.waiting, batch.lines.to_vec());
        self.waiting.extend(later);
        self.first = batch.first;
    }
}
