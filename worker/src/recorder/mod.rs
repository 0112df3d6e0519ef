//! The recorder: the only writer of a run's events.
//!
//! An event is encoded once and goes two ways. `appends` sends it at once to the run log, where clients read it;
//! `flushes` sends it within seconds to the archive, where it is durable. Both continue while the executor awaits
//! something else (`alongside`), in the executor's task, so that a token needs no extra wake-up. Only `finish` and
//! `release` end the recorder.

mod append_spans;
mod appends;
mod ending;
mod flushes;

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, task::Poll};

use chrono::Utc;
use holdfast_shared::{
    event::{Event, EventBody, WarningRaised},
    event_id::EventId,
    parts::PartsBuilder,
    run::{RunError, RunStatus},
    storage::{Answer, AnsweredRun, Claim, Closed, Progress, Release},
};

use crate::{WorkerState, spans::Spans};
use append_spans::AppendSpans;
use appends::Appends;
use flushes::Flushes;

/// Writes the events of one attempt.
pub struct Recorder {
    claim: Arc<Claim>,
    spans: Spans,
    /// The newest event that was emitted.
    last: EventId,
    /// The text and usage of the run so far, including earlier attempts.
    answer: Answer,
    /// The parts of this attempt. The finish adds those of earlier ones.
    parts: PartsBuilder,
    /// Whether `answer` is complete: the earlier answer of a resumed run must be read first.
    knows_answer: bool,
    appends: Appends,
    flushes: Flushes,
    /// Lines that go to the run log only after the run was released, and the number of the first one.
    deferred: Vec<u8>,
    deferred_first: u32,
    /// Whether clients received the warning that the database is away.
    warned: bool,
    /// Whether clients received the warning that a checkpoint is missing.
    warned_of_checkpoint: bool,
    line: Vec<u8>,
}

/// The outcome of a recorder's run.
#[derive(Debug)]
pub enum RecorderOutcome {
    Finished {
        status: RunStatus,
        /// The effects on other runs.
        closed: Box<Closed>,
    },
    /// The run is queued again, or waits for an answer.
    Released {
        release: Release,
        /// The top run with this run's questions, if it waits.
        asked: Option<Box<AnsweredRun>>,
    },
    Fenced,
}

/// Another worker holds the run.
#[derive(Debug, Clone, Copy)]
pub struct LeaseLost;

impl Recorder {
    /// Starts with the claim's own event, which is archived already and not yet in the log.
    pub fn start(shared: &Arc<WorkerState>, claim: Arc<Claim>, spans: Spans) -> Self {
        let last = claim.started.id;
        let knows_answer = claim.is_fresh();
        let mut appends = Appends::new(Arc::clone(shared), claim.run_id, claim.attempt, AppendSpans::new(spans));
        appends.push(last.n, &[claim.started.line(), &b"\n"[..]].concat());
        let flushes = Flushes::new(Arc::clone(shared), Arc::clone(&claim), spans);
        Self {
            claim,
            spans,
            last,
            answer: Answer::default(),
            parts: PartsBuilder::default(),
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

    /// Takes over the text and usage of earlier attempts.
    pub fn continue_from(&mut self, earlier: Answer) {
        self.answer = earlier;
        self.knows_answer = true;
    }

    /// Returns the text of the run so far.
    pub fn text(&self) -> &str {
        &self.answer.text
    }

    /// Records an event. It is sent when the executor next awaits `alongside`; the first ones when it has to wait there.
    pub fn emit(&mut self, body: &EventBody<'_>) {
        if let EventBody::MessageDelta(delta) = body {
            self.answer.text.push_str(&delta.text);
        }
        if body.kind().is_delta() && !self.claim.stream {
            return;
        }
        // Order matters: no event overtakes a deferred one.
        if !self.deferred.is_empty() {
            return self.emit_on_release(body);
        }
        self.encode(body);
        self.appends.push(self.last.n, &self.line);
    }

    /// Records a question, which clients see only once the run waits for its answer.
    pub fn emit_on_release(&mut self, body: &EventBody<'_>) {
        self.encode(body);
        if self.deferred.is_empty() {
            self.deferred_first = self.last.n;
        }
        self.deferred.extend_from_slice(&self.line);
    }

    /// Returns whether events wait for their commit.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Encodes the event as the next line of the tail.
    fn encode(&mut self, body: &EventBody<'_>) {
        self.last = self.last.next();
        self.line.clear();
        let at_ms = Utc::now().timestamp_millis();
        Event::encode_into(&mut self.line, self.last, at_ms, body);
        self.parts.record(self.last, at_ms, body);
        self.flushes.push(self.last, &self.line);
    }

    /// Returns the id of the newest event.
    pub fn last(&self) -> EventId {
        self.last
    }

    /// Records progress that becomes durable together with the events so far. The write starts soon; an action that
    /// must come after it awaits `durable`.
    pub fn note(&mut self, progress: Progress) {
        self.answer.usage = progress.usage.unwrap_or(self.answer.usage);
        self.answer.finish_reason = progress.finish_reason.or(self.answer.finish_reason);
        self.flushes.note(progress);
    }

    /// Records progress that becomes durable with the next flush, whenever that is.
    pub fn note_for_next_flush(&mut self, progress: Progress) {
        self.flushes.absorb(progress);
    }

    /// Returns why the run cannot continue, once the database has finally refused its progress.
    pub fn refusal(&self) -> Option<RunError> {
        self.flushes.was_refused().then(ending::progress_not_stored)
    }

    /// Waits until all events and progress are in the database, however long it is away, or until it has refused them.
    /// Cancel-safe.
    pub async fn durable(&mut self) -> Result<(), LeaseLost> {
        while !self.flushes.is_durable() && !self.flushes.was_refused() {
            self.step().await?;
        }
        Ok(())
    }

    /// Awaits `other` while events are appended and flushed. Fails as soon as another worker holds the run.
    pub async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> Result<T, LeaseLost> {
        let mut other = pin!(other);
        // The first append waits for the first step of the executor that has to wait. In a run that opens its conversation,
        // that is the model call, so the first token waits for one append instead of several.
        if !self.appends.has_begun()
            && let Poll::Ready(output) = futures::poll!(other.as_mut())
        {
            return Ok(output);
        }
        tokio::select! {
            biased;
            lost = self.progress() => match lost? {},
            output = other => Ok(output),
        }
    }

    /// Does as `alongside`, but first waits until there is room for the events of `other`: while the database is away,
    /// events accumulate in memory.
    pub async fn alongside_with_room<T>(&mut self, other: impl Future<Output = T>) -> Result<T, LeaseLost> {
        while self.flushes.is_full() {
            self.until_flushed().await?;
        }
        self.alongside(other).await
    }

    /// Appends and flushes for ever. Cancel-safe: an append or flush in flight stays in flight.
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

    /// Executes the next step that is due. Cancel-safe.
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
            self.emit(&EventBody::WarningRaised(WarningRaised {
                code: "checkpoint_not_stored".into(),
                message:
                    "The database refused a checkpoint: the answer continues, and a fork starts at the previous checkpoint."
                        .into(),
            }));
        }
    }

    fn warn_once(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            self.emit(&EventBody::WarningRaised(WarningRaised {
                code: "database_away".into(),
                message:
                    "The database cannot be reached: the answer continues, but may be lost until the database is back."
                        .into(),
            }));
        }
    }
}
