//! A follower: one client's cursor in a run, and the stream of frames that it is sent.

use std::{error::Error, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::{event::Event, event_id::EventId, run::RunStatus, storage};
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until},
};

use super::{Relay, SLICE_BYTES, Watch, outline::is_left_out, reading::Reading, replay::Replayed, window::Next};
use crate::{
    streams::OpenStream,
    wire::{self, Before, Block, Projector, View},
};

/// The stream is broken off on purpose, so that the client comes back: a clean end would mean that the run has ended.
#[derive(Debug, thiserror::Error)]
#[error("the stream is broken off; resume it with the last event id")]
pub struct Aborted;

/// A client that follows a run.
pub struct Follower {
    pub(super) relay: Arc<Relay>,
    pub(super) watch: Watch,
    pub(super) changes: watch::Receiver<u64>,
    pub(super) cursor: EventId,
    /// Where what comes next begins for the view: behind the last event that was shown.
    before: Before,
    excerpt: Excerpt,
    /// What was read and is to be sent first.
    pub(super) reading: Option<Arc<Reading>>,
    finished: bool,
    /// Whether the client was told to come back.
    leaving: bool,
    /// What lets the client hold its connection open.
    stream: OpenStream,
    /// When the stream is cut, if it is.
    ends_at: Option<Instant>,
    /// What the client is sent before any event.
    lead: Vec<u8>,
    /// When a heartbeat is due, unless something else is sent before.
    heartbeat_at: Instant,
    /// Goes off when that was due at some time, or earlier.
    alarm: Pin<Box<Sleep>>,
}

/// What of a log is shown.
#[derive(Debug, Default)]
pub struct Excerpt {
    /// What is passed over: the events after the first and before the second of each pair.
    pub left_out: Vec<(EventId, EventId)>,
    /// The pause that it ends at, where the run has gone on since.
    pub until: Option<EventId>,
}

impl Excerpt {
    /// Up to where the log is read by oneself: a feed has all of it.
    fn reaches(&self) -> EventId {
        let left_out = self.left_out.iter().map(|(_, until)| *until).max();
        left_out.max(self.until).unwrap_or(EventId::ORIGIN)
    }
}

/// Why a wait is over.
pub(super) enum Woken {
    /// The feed has changed, or it is time to look by oneself.
    ToLook,
    HeartbeatDue,
    Draining,
}

impl Follower {
    pub(super) fn new(
        relay: Arc<Relay>,
        watch: Watch,
        cursor: EventId,
        reading: Option<Arc<Reading>>,
        stream: OpenStream,
    ) -> Self {
        let changes = watch.feed.changes();
        let heartbeat_at = Instant::now() + relay.heartbeat;
        let before = Before::cursor(cursor);
        let (excerpt, lead) = (Excerpt::default(), wire::RETRY.to_vec());
        Self {
            relay,
            watch,
            changes,
            cursor,
            before,
            excerpt,
            reading,
            finished: false,
            leaving: false,
            stream,
            ends_at: None,
            lead,
            heartbeat_at,
            alarm: Box::pin(sleep_until(heartbeat_at)),
        }
    }

    /// Sends a frame first that stands for everything up to the cursor.
    pub fn led_by(&mut self, frame: &[u8]) {
        self.lead.extend_from_slice(frame);
    }

    /// The same, from a place of which more is known than its id.
    pub fn behind(self, before: Before) -> Self {
        Self { before, ..self }
    }

    /// The same, but shows only this excerpt, from a place where nothing is open: the start, or a pause.
    pub fn showing(self, excerpt: Excerpt) -> Self {
        let before = Before { id: self.cursor, block: Some(Block::Waiting) };
        let reading = self.reading.filter(|_| self.cursor >= excerpt.reaches());
        Self { before, excerpt, reading, ..self }
    }

    /// The frames of a view, from the cursor on. Ends cleanly only after the terminal event.
    pub fn into_frames(mut self, view: View) -> impl Stream<Item = Result<Bytes, Aborted>> + Send {
        self.ends_at = self.stream.ends_at(view.wire);
        let counted = Counted::new();
        let first = stream::iter([Ok(Bytes::from(std::mem::take(&mut self.lead)))]);
        let rest = stream::unfold((self, view, counted), |(mut follower, view, counted)| async move {
            let mut frames = follower.next_frames(&view).await?;
            // What the view does not show is passed over.
            while frames.as_ref().is_ok_and(Bytes::is_empty) {
                frames = follower.next_frames(&view).await?;
            }
            follower.beaten();
            Some((frames, (follower, view, counted)))
        });
        futures::StreamExt::chain(first, rest)
    }

    /// What the next events become, which may be nothing.
    async fn next_frames(&mut self, view: &View) -> Option<Result<Bytes, Aborted>> {
        loop {
            if self.finished {
                return None;
            }
            if self.leaving {
                return Some(self.abort().await);
            }
            if self.ends_at.is_some_and(|end| Instant::now() >= end) {
                self.leaving = true;
                return Some(Ok(self.stream.last_words()));
            }
            if let Some(frames) = self.frames_read(view) {
                return Some(Ok(frames));
            }
            // Order matters: what changes from here on wakes the wait below.
            let version = *self.changes.borrow_and_update();
            let next = match self.cursor < self.excerpt.reaches() {
                true => Next::Elsewhere,
                false => self.watch.feed.after(self.cursor, view),
            };
            match next {
                Next::Frames { frames, behind, events, ended } => {
                    self.sent(behind, events, ended);
                    return Some(Ok(frames));
                }
                Next::Ended => return None,
                Next::CaughtUp => {}
                Next::Elsewhere => match self.read().await {
                    Ok(Replayed::Events(reading)) => {
                        self.reading = Some(reading);
                        continue;
                    }
                    Ok(Replayed::Nothing) => self.watch.feed.anchor(self.place(), version),
                    Ok(Replayed::Finished) => return None,
                    // The run, or its events, were removed under the client.
                    Ok(Replayed::NeverIssued | Replayed::Removed | Replayed::NoSuchRun) => {
                        return Some(self.abort().await);
                    }
                    Err(error) => {
                        tracing::debug!(run.id = %self.watch.feed.run_id, error = &error as &dyn Error, "a stream waits for the database");
                    }
                },
            }
            if self.is_at_wait(view).await {
                self.finished = true;
                return Some(Ok(wire::ai_sdk::end_of_segment()));
            }
            match self.wait(self.cursor).await {
                Woken::ToLook => {}
                Woken::HeartbeatDue => return Some(Ok(Bytes::from_static(wire::HEARTBEAT))),
                Woken::Draining => {
                    self.leaving = true;
                    return Some(Ok(wire::come_back()));
                }
            }
        }
    }

    /// Whether the run waits for the client's answer, and nothing has happened since what was shown last.
    async fn is_at_wait(&self, view: &View) -> bool {
        if !view.ends_at_waits() || self.before.block != Some(Block::Waiting) {
            return false;
        }
        let run_id = self.watch.feed.run_id;
        match self.relay.storage.positions(vec![run_id]).await {
            Ok(positions) => {
                positions.iter().any(|(_, at)| at.status == RunStatus::Waiting && at.archived_to == self.cursor)
            }
            Err(error) => {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "a stream waits for the database");
                false
            }
        }
    }

    /// Waits until there may be something behind `at`.
    pub(super) async fn wait(&mut self, at: EventId) -> Woken {
        // Order matters: whoever looks before the drain begins is woken by it.
        if self.relay.is_draining() {
            return Woken::Draining;
        }
        // A follower that the feed does not serve must look by itself.
        let look = match self.watch.feed.tail() == Some(at) {
            true => self.heartbeat_at,
            false => self.heartbeat_at.min(Instant::now() + self.relay.look),
        };
        let look = self.ends_at.map_or(look, |end| look.min(end));
        // One that goes off too early is set again; to set it with every event would cost more.
        if look < self.alarm.deadline() || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(look);
        }
        // Order matters: a run that says what this client is not shown keeps no heartbeat back.
        tokio::select! {
            biased;
            () = &mut self.alarm => match Instant::now() >= self.heartbeat_at {
                true => Woken::HeartbeatDue,
                false => Woken::ToLook,
            },
            _ = self.changes.changed() => Woken::ToLook,
        }
    }

    /// Something was sent: the next heartbeat is due a whole while from now.
    pub(super) fn beaten(&mut self) {
        self.heartbeat_at = Instant::now() + self.relay.heartbeat;
    }

    async fn abort(&mut self) -> Result<Bytes, Aborted> {
        self.finished = true;
        // Frames of the poll that yields an error are discarded, so let them out first.
        tokio::task::yield_now().await;
        Err(Aborted)
    }

    /// Reads on. What an excerpt leaves out was said just now, of the log as it is just now: it is not to be looked for in
    /// what others have read earlier.
    async fn read(&self) -> Result<Replayed<Arc<Reading>>, storage::Error> {
        let (run_id, place) = (self.watch.feed.run_id, self.place());
        match self.cursor < self.excerpt.reaches() {
            true => Ok(self.relay.replay(run_id, self.cursor).await?.map(|events| Reading::of(place, events))),
            false => self.relay.read(&self.watch.feed, place).await,
        }
    }

    /// What was read and not yet sent.
    pub(super) fn unsent(&self) -> Vec<Event> {
        self.reading.as_ref().map(|reading| reading.events_after(self.cursor)).unwrap_or_default()
    }

    /// What the next of the events become that were read; `None` if there are none.
    fn frames_read(&mut self, view: &View) -> Option<Bytes> {
        let reading = self.reading.as_ref()?;
        if self.cursor >= self.excerpt.reaches()
            && let Next::Frames { frames, behind, events, ended } = reading.after(self.cursor, view)
        {
            self.sent(behind, events, ended);
            return Some(frames);
        }
        let events = self.unsent();
        if events.is_empty() {
            self.reading = None;
            return None;
        }
        Some(self.frames_of(events, view))
    }

    /// The frames of the first of the events, about a slice of them, made for this client alone: it is shown an excerpt, or
    /// nobody else knows what it is in the middle of.
    fn frames_of(&mut self, events: Vec<Event>, view: &View) -> Bytes {
        let mut projector = Projector::after(self.before, view.clone());
        let mut frames = Vec::new();
        let mut count = 0;
        for event in events {
            self.cursor = event.id;
            count += 1;
            if is_left_out(&self.excerpt.left_out, event.id) {
                continue;
            }
            projector.frame(&mut frames, &event);
            self.before = Before::behind(&event);
            self.finished |= event.is_terminal();
            if self.excerpt.until == Some(event.id) {
                frames.extend_from_slice(&wire::ai_sdk::end_of_segment());
                self.finished = true;
            }
            if self.finished || frames.len() >= SLICE_BYTES {
                break;
            }
        }
        self.relay.relayed.increment(count);
        frames.into()
    }

    /// Where the client is, with what it is in the middle of.
    fn place(&self) -> Before {
        Before { id: self.cursor, ..self.before }
    }

    fn sent(&mut self, behind: Before, events: usize, ended: bool) {
        (self.cursor, self.before) = (behind.id, behind);
        self.finished = ended;
        self.relay.relayed.increment(events as u64);
    }
}

/// Counts a stream as open.
pub(super) struct Counted;

impl Counted {
    pub(super) fn new() -> Self {
        metrics::gauge!("holdfast_streams_open").increment(1);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_streams_open").decrement(1);
    }
}
