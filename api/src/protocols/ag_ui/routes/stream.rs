//! One client's stream of a run: a fold of the run's log from its start, of which the client gets what it has not got yet.

use std::sync::Arc;

use axum::{
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use holdfast_shared::{
    event::Event,
    event_id::EventId,
    run::{Run, RunStatus},
};

use super::history;
use crate::{
    app::App,
    disconnect::{DisconnectGuard, GuardedFrames},
    event_stream::{event_stream, run_header},
    problem::Problem,
    protocols::ag_ui::wire::{AgUiEvent, AgUiFold, AgUiMessage, AgUiView, write_frames},
    relay::{Encode, Slice, Subscriber, TruncatedStream},
    thread::Outline,
    wire::{Block, FrameId, LogPosition},
};

/// The stream of a client.
pub struct AgUiStream {
    app: Arc<App>,
    owner: String,
    run: Arc<Run>,
    view: Arc<AgUiView>,
    fold: AgUiFold,
    /// The last frame that the client has.
    seen: FrameId,
    /// The pause at which the stream ends, if the run has continued after it.
    until: Option<EventId>,
    /// The pause among whose frames the client's last one is, if the run has continued after it.
    left: Option<EventId>,
    /// The messages of the thread before the run's answer, for a client that has none of them.
    history: Option<Vec<AgUiMessage>>,
}

impl AgUiStream {
    /// Begins the stream of a client that has the frame `seen` and all before it.
    pub fn after(seen: FrameId, app: &Arc<App>, owner: &str, run: &Arc<Run>, view: AgUiView) -> Self {
        let view = Arc::new(view);
        let fold = AgUiFold::of_answer(run.output_message_id);
        Self {
            app: Arc::clone(app),
            owner: owner.to_owned(),
            run: Arc::clone(run),
            view,
            fold,
            seen,
            until: None,
            left: None,
            history: None,
        }
    }

    /// Begins with the messages of the thread before the run's answer.
    pub fn with_history(self, messages: Vec<AgUiMessage>) -> Self {
        Self { history: Some(messages), ..self }
    }

    /// Finds out whether the client was cut off among the last frames before a pause, which another client has ended since.
    pub async fn beyond_pause(self) -> Result<Self, Problem> {
        if self.seen == FrameId::START || self.run.status == RunStatus::Waiting {
            return Ok(self);
        }
        let pauses = Outline::read(&self.app, self.run.id).await?.pauses;
        Ok(Self { left: pauses.contains(&self.seen.event).then_some(self.seen.event), ..self })
    }

    /// Ends the stream at a pause that the run has passed.
    pub fn until(self, pause: Option<EventId>) -> Self {
        Self { until: pause, ..self }
    }

    /// Returns whether the run has ended and the client has its last frame.
    async fn has_all(&self) -> Result<bool, Problem> {
        if !self.run.status.is_terminal() || self.seen.event != self.run.last_event_id {
            return Ok(false);
        }
        // The end has more frames if parts are open there, so only a fold of the log has the number of its last frame.
        let mut fold = AgUiFold::of_answer(self.run.output_message_id);
        let mut log = self.app.relay().pages(self.run.id, EventId::ORIGIN);
        while let Some(events) = log.next().await? {
            events.iter().for_each(|event| drop(fold.push(&self.view, event)));
        }
        Ok(self.seen.number >= fold.next_frame().number.saturating_sub(1))
    }

    /// Returns the response, which is 204 for a client that has the end of the run. The subscriber must be at the log's start.
    pub async fn into_response(self, subscriber: Subscriber) -> Result<Response, Problem> {
        let run_id = self.run.id;
        if self.has_all().await? {
            return Ok((StatusCode::NO_CONTENT, [run_header(run_id)]).into_response());
        }
        let setting = self.app.config().ag_ui_on_disconnect;
        let guard = DisconnectGuard::of_wire(&self.app, &self.owner, run_id, setting);
        let frames = GuardedFrames::new(subscriber.into_frames(Vec::new(), self), guard, ());
        Ok(event_stream(run_id, Body::from_stream(frames)))
    }

    /// Returns whether the client gets the frames that all clients with its view share.
    fn shares(&self, slice: &Slice) -> bool {
        let (first, mut last) = (slice.first().id, self.fold.last());
        let begins = last >= self.seen.event && self.view.after.is_none_or(|pause| first > pause);
        let mut continues = |event: &Event| {
            let before = std::mem::replace(&mut last, event.id);
            event.base.is_none_or(|base| base >= before) && self.until != Some(event.id)
        };
        begins
            && self.history.is_none()
            && self.left.is_none_or(|pause| first > pause)
            && slice.events().all(&mut continues)
    }

    /// Appends the frames of an event that the client has not got yet. Returns whether the stream ends with them.
    async fn push(&mut self, buffer: &mut Vec<u8>, event: &Event) -> Result<bool, Problem> {
        let first = FrameId { event: event.id, number: 0 };
        // The client may have events that the log has lost with their worker.
        let has_lost = event.base.is_some() && self.seen.event > self.fold.last() && self.seen.event < event.id;
        let has_begun = self.view.after.is_none_or(|pause| event.id > pause);
        let frames = if has_lost || self.fold.is_superseded_by(&self.view, event) {
            // The number of its frames depends on what was open, so a client that is among them gets all of them again.
            if self.seen.event == event.id {
                self.seen = FrameId { event: self.fold.last(), number: u32::MAX };
            }
            let is_wanted = has_begun && event.id > self.seen.event;
            // Boxed, so that other streams hold no memory for these reads.
            let base = Box::pin(history::base_of(&self.app, &self.run, &self.view, event));
            let (fold, mut messages) = base.await?;
            if is_wanted {
                let (owner, conversation) = (&self.owner, self.run.conversation_id);
                let stored = Box::pin(history::stored(&self.app, owner, conversation, Some(&self.run)));
                messages.splice(0..0, stored.await?);
            }
            self.fold.restart(&self.view, (fold, messages), event)
        } else {
            self.fold.push(&self.view, event)
        };
        if has_begun {
            self.write(buffer, first, &frames);
        }
        if let Some(messages) = self.history.take() {
            self.write(buffer, self.fold.next_frame(), &[self.view.snapshot(messages)]);
        }
        if self.view.after == Some(event.id) {
            let mut id = self.fold.next_frame();
            id.number += self.fold.end_at_pause(&self.view).len() as u32;
            let events = self.fold.begin_after_pause(&self.view);
            self.write(buffer, id, &events);
        }
        if self.left == Some(event.id) && self.view.after != self.left && self.seen >= self.fold.next_frame() {
            self.leave_pause(buffer);
        }
        // A client whose cursor is beyond the end waits for an end.
        if event.is_terminal() && self.seen > self.fold.next_frame() {
            self.seen = FrameId::START;
            self.write(buffer, first, &frames[frames.len().saturating_sub(1)..]);
        }
        if self.until == Some(event.id) {
            self.write(buffer, self.fold.next_frame(), &self.fold.end_at_pause(&self.view));
        }
        Ok(self.until == Some(event.id))
    }

    /// Appends what leads a client beyond a pause that its stream has begun to end: the rest of what ends there, and what begins
    /// again. The stream has no end there, unless the client has it.
    fn leave_pause(&mut self, buffer: &mut Vec<u8>) {
        let (first, mut ends) = (self.fold.next_frame(), self.fold.end_at_pause(&self.view));
        ends.pop();
        self.write(buffer, first, &ends);
        let finished = FrameId { number: first.number + ends.len() as u32, ..first };
        let (next, begins) =
            (FrameId { number: finished.number + 1, ..first }, self.fold.begin_after_pause(&self.view));
        // The first of them begins a stream.
        let had = usize::from(self.seen < finished);
        self.write(buffer, FrameId { number: next.number + had as u32, ..next }, &begins[had..]);
    }

    /// Appends the frames after the last one that the client has.
    fn write(&self, buffer: &mut Vec<u8>, first: FrameId, events: &[AgUiEvent<'_>]) {
        if first.event < self.seen.event {
            return;
        }
        let is_behind = first.event == self.seen.event && first.number <= self.seen.number;
        let had = if is_behind { self.seen.number - first.number } else { 0 };
        let had = (had as usize + usize::from(is_behind)).min(events.len());
        let first = FrameId { number: first.number + had as u32, ..first };
        write_frames(buffer, first, &events[had..]);
    }
}

impl Encode for AgUiStream {
    /// A block with `retry:` alone is an event for some clients.
    fn first_bytes(&self) -> &'static [u8] {
        b""
    }

    fn reconnects(&self) -> bool {
        false
    }

    async fn encode(&mut self, slice: &Slice) -> Result<(Bytes, bool), TruncatedStream> {
        if self.shares(slice) {
            return Ok((slice.folded(&mut self.view, &mut self.fold), slice.last().is_terminal()));
        }
        let mut buffer = Vec::new();
        for event in slice.events() {
            match self.push(&mut buffer, event).await {
                Ok(false) => {}
                Ok(true) => return Ok((buffer.into(), true)),
                Err(problem) => {
                    tracing::warn!(run.id = %self.run.id, problem.code, problem.detail, "failed to read the messages of a thread; its stream is truncated");
                    return Err(TruncatedStream);
                }
            }
        }
        Ok((buffer.into(), slice.last().is_terminal()))
    }

    fn end_at_wait(&self, position: LogPosition) -> Option<Bytes> {
        if position.block != Block::Waiting {
            return None;
        }
        let mut buffer = Vec::new();
        self.write(&mut buffer, self.fold.next_frame(), &self.fold.end_at_pause(&self.view));
        Some(buffer.into())
    }
}
