//! The recorder: the only writer of a run's events.
//!
//! An event is encoded once and goes two ways: at once to the run log (`appends`), where clients see it, and within
//! seconds to the archive (`flushes`), where it lasts. Both go on while the executor waits for something else
//! (`alongside`), in its own task, so that a token costs no wake-up of its own. Only `finish` and `leave` end it.

mod append_spans;
mod appends;
mod ending;
mod flushes;

use std::{convert::Infallible, future::Future};

use chrono::Utc;
use holdfast_shared::{
    event::{Event, EventBody},
    event_id::EventId,
    run::{RunError, RunStatus},
    storage::{Answer, Claim, Leave, Progress},
};

use crate::{Worker, spans::Spans};
use append_spans::AppendSpans;
use appends::Appends;
use flushes::Flushes;

/// Writes the events of one attempt.
pub struct Recorder {
    claim: Claim,
    spans: Spans,
    /// The newest event that was emitted.
    last: EventId,
    /// All that the run has said and used, in earlier attempts too.
    answer: Answer,
    /// Whether that is known: of a run that goes on, it must be read first.
    knows_answer: bool,
    appends: Appends,
    flushes: Flushes,
    /// Lines that are shown only when the run was let go of, and the number of the first of them.
    deferred: Vec<u8>,
    deferred_first: u32,
    /// Whether clients were told that the database is away.
    warned: bool,
    /// Whether clients were told that a checkpoint is missing.
    warned_of_checkpoint: bool,
    line: Vec<u8>,
}

/// What became of a recorder's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecorderOutcome {
    Finished {
        status: RunStatus,
        /// Whether a run of the same conversation has waited for this end.
        next_waits: bool,
    },
    /// The run is queued again, or waits for an answer.
    Released(Leave),
    Fenced,
}

/// Somebody else holds the run.
#[derive(Debug, Clone, Copy)]
pub struct LeaseLost;

impl Recorder {
    /// Begins with the claim's own event, which is archived already and not yet in the log.
    pub fn start(worker: &Worker, claim: Claim, spans: Spans) -> Self {
        let last = claim.started.id;
        let knows_answer = claim.is_fresh();
        let mut appends = Appends::new(worker.run_log.clone(), claim.run_id, claim.attempt, AppendSpans::new(spans));
        appends.push(last.n, &[claim.started.line(), &b"\n"[..]].concat());
        let flushes = Flushes::new(worker, claim.clone(), spans);
        Self {
            claim,
            spans,
            last,
            answer: Answer::default(),
            knows_answer,
            appends,
            flushes,
            deferred: Vec::new(),
            deferred_first: 0,
            warned: false,
            warned_of_checkpoint: false,
            line: Vec::with_capacity(256),
        }
    }

    /// Takes over what earlier attempts have said and used.
    pub fn continue_from(&mut self, earlier: Answer) {
        self.answer = earlier;
        self.knows_answer = true;
    }

    /// Records that something has happened. It is on its way when the executor next waits `alongside`.
    pub fn emit(&mut self, body: &EventBody) {
        if let EventBody::MessageDelta { text, .. } = body {
            self.answer.text.push_str(text);
        }
        if body.is_delta() && !self.claim.stream {
            return;
        }
        // Order matters: nothing overtakes what is held back.
        if !self.deferred.is_empty() {
            return self.emit_on_release(body);
        }
        self.encode(body);
        self.appends.push(self.last.n, &self.line);
    }

    /// Records a question, which nobody sees before the run waits for its answer.
    pub fn emit_on_release(&mut self, body: &EventBody) {
        self.encode(body);
        if self.deferred.is_empty() {
            self.deferred_first = self.last.n;
        }
        self.deferred.extend_from_slice(&self.line);
    }

    /// Makes the event's line the next of the tail.
    fn encode(&mut self, body: &EventBody) {
        self.last = self.last.next();
        self.line.clear();
        Event::encode_into(&mut self.line, self.last, Utc::now().timestamp_millis(), body);
        self.flushes.push(self.last, &self.line);
    }

    /// The newest event.
    pub fn last(&self) -> EventId {
        self.last
    }

    /// What is to become durable together with the events so far. It is written soon; whatever must not happen before
    /// awaits `durable`.
    pub fn note(&mut self, progress: Progress) {
        self.answer.usage = progress.usage.unwrap_or(self.answer.usage);
        self.answer.finish_reason = progress.finish_reason.or(self.answer.finish_reason);
        self.flushes.note(progress);
    }

    /// The same, but it is written with whatever is written next.
    pub fn note_for_next_flush(&mut self, progress: Progress) {
        self.flushes.absorb(progress);
    }

    /// Why the run cannot go on, once the database has refused what was noted, for good.
    pub fn refusal(&self) -> Option<RunError> {
        self.flushes.was_refused().then(ending::progress_not_stored)
    }

    /// Waits until everything that was emitted and noted is in the database, however long it is away; or refused. Cancel-safe.
    pub async fn durable(&mut self) -> Result<(), LeaseLost> {
        while !self.flushes.is_durable() && !self.flushes.was_refused() {
            self.step().await?;
        }
        Ok(())
    }

    /// Awaits `other` while events are appended and flushed; fails as soon as the run turns out to be somebody else's.
    pub async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> Result<T, LeaseLost> {
        tokio::select! {
            biased;
            lost = self.progress() => match lost? {},
            output = other => Ok(output),
        }
    }

    /// The same, but first waits until there is room for what `other` will bring: while the database is away, events
    /// pile up in memory.
    pub async fn alongside_with_room<T>(&mut self, other: impl Future<Output = T>) -> Result<T, LeaseLost> {
        while self.flushes.is_full() {
            self.until_flushed().await?;
        }
        self.alongside(other).await
    }

    /// Goes on appending and flushing for ever. Cancel-safe: what is in flight stays so.
    async fn progress(&mut self) -> Result<Infallible, LeaseLost> {
        loop {
            self.step().await?;
        }
    }

    async fn until_flushed(&mut self) -> Result<(), LeaseLost> {
        while self.flushes.is_full() {
            self.step().await?;
        }
        Ok(())
    }

    /// One step of whatever is due next. Cancel-safe.
    async fn step(&mut self) -> Result<(), LeaseLost> {
        tokio::select! {
            append = self.appends.step() => if append?.needs_flush() {
                self.flushes.demand();
            },
            flushed = self.flushes.step() => match flushed? {
                flushes::FlushStep::Durable(archived_to) => {
                    self.appends.set_archived_to(archived_to);
                    self.warn_of_checkpoint();
                }
                flushes::FlushStep::Failed => self.warn_once(),
            },
        }
        Ok(())
    }

    fn warn_of_checkpoint(&mut self) {
        if self.flushes.lacks_checkpoint() && !std::mem::replace(&mut self.warned_of_checkpoint, true) {
            self.emit(&EventBody::WarningRaised {
                code: "checkpoint_not_stored".into(),
                message:
                    "The database refused a checkpoint: the answer goes on, and a fork begins at the checkpoint before."
                        .into(),
            });
        }
    }

    fn warn_once(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            self.emit(&EventBody::WarningRaised {
                code: "database_away".into(),
                message:
                    "The database cannot be reached: the answer goes on, but may be lost until the database is back."
                        .into(),
            });
        }
    }
}
