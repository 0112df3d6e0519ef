//! A subscriber: one client's cursor in a run, and the stream of frames that the client receives.

use std::{error::Error, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::{event::Event, event_id::EventId, run::RunStatus, storage};
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until},
};

use super::{
    Relay, SLICE_BYTES, TopicHandle, outline::is_left_out, replay::ReplayResult, replay_buffer::BufferRead,
    shared_read::SharedRead,
};
use crate::{
    streams::OpenStream,
    wire::{self, Block, LogPosition, Projector, View},
};

/// The server truncates the stream on purpose, so that the client reconnects. A clean end would mean that the run has
/// ended.
#[derive(Debug, thiserror::Error)]
#[error("the server truncated the stream; resume it with the last event id")]
pub struct TruncatedStream;

/// A client that follows a run.
pub struct Subscriber {
    pub(super) relay: Arc<Relay>,
    pub(super) handle: TopicHandle,
    pub(super) changes: watch::Receiver<u64>,
    pub(super) cursor: EventId,
    /// The position after the last event that the view has shown, where the next frames start.
    last_shown: LogPosition,
    filter: LogFilter,
    /// Events that the subscriber has read, and sends before it reads the topic.
    pub(super) shared_read: Option<Arc<SharedRead>>,
    is_finished: bool,
    /// Whether the client has received the hint to reconnect, so that the stream ends next.
    hint_sent: bool,
    /// The permit for this stream.
    stream: OpenStream,
    /// When the server truncates the stream, if ever.
    ends_at: Option<Instant>,
    /// Bytes that the client receives before any event.
    prefix: Vec<u8>,
    /// When the next heartbeat is due, if no frame is sent before.
    heartbeat_at: Instant,
    /// Goes off at that time or earlier.
    alarm: Pin<Box<Sleep>>,
}

/// The part of a log that a stream shows.
#[derive(Debug, Default)]
pub struct LogFilter {
    /// Events to skip: those after the first and before the second of each pair.
    pub left_out: Vec<(EventId, EventId)>,
    /// The pause at which the stream ends, if the run has continued after it.
    pub until: Option<EventId>,
}

impl LogFilter {
    /// Returns the event up to which this subscriber must read the log by itself, because a topic has all events.
    fn end(&self) -> EventId {
        let left_out = self.left_out.iter().map(|(_, until)| *until).max();
        left_out.max(self.until).unwrap_or(EventId::ORIGIN)
    }
}

/// Why a wait is over.
pub(super) enum WakeReason {
    /// The topic has changed, or the subscriber must poll by itself.
    Changed,
    HeartbeatDue,
    Draining,
}

impl Subscriber {
    pub(super) fn new(
        relay: Arc<Relay>,
        handle: TopicHandle,
        cursor: EventId,
        shared_read: Option<Arc<SharedRead>>,
        stream: OpenStream,
    ) -> Self {
        let changes = handle.topic.changes();
        let heartbeat_at = Instant::now() + relay.heartbeat;
        let last_shown = LogPosition::of_cursor(cursor);
        let (filter, prefix) = (LogFilter::default(), wire::RETRY.to_vec());
        Self {
            relay,
            handle,
            changes,
            cursor,
            last_shown,
            filter,
            shared_read,
            is_finished: false,
            hint_sent: false,
            stream,
            ends_at: None,
            prefix,
            heartbeat_at,
            alarm: Box::pin(sleep_until(heartbeat_at)),
        }
    }

    /// Sends a frame before all others. It stands for all events up to the cursor.
    pub fn prepend_frame(&mut self, frame: &[u8]) {
        self.prefix.extend_from_slice(frame);
    }

    /// Continues from a position with a known block.
    pub fn at_position(self, position: LogPosition) -> Self {
        Self { last_shown: position, ..self }
    }

    /// Shows only the events that the filter passes. The cursor must be the start or a pause, where no block is open.
    pub fn with_filter(self, filter: LogFilter) -> Self {
        let last_shown = LogPosition { id: self.cursor, block: Some(Block::Waiting) };
        let shared_read = self.shared_read.filter(|_| self.cursor >= filter.end());
        Self { last_shown, filter, shared_read, ..self }
    }

    /// Returns the frames of a view after the cursor. The stream ends cleanly only after the terminal event, or where
    /// the view ends at a pause.
    pub fn into_frames(mut self, view: View) -> impl Stream<Item = Result<Bytes, TruncatedStream>> + Send {
        self.ends_at = self.stream.ends_at(view.wire);
        let gauge = StreamGauge::new();
        let first = stream::iter([Ok(Bytes::from(std::mem::take(&mut self.prefix)))]);
        let rest = stream::unfold((self, view, gauge), |(mut subscriber, view, gauge)| async move {
            let mut frames = subscriber.next_frames(&view).await?;
            // Skip events that have no frames in this view.
            while frames.as_ref().is_ok_and(Bytes::is_empty) {
                frames = subscriber.next_frames(&view).await?;
            }
            subscriber.reset_heartbeat();
            Some((frames, (subscriber, view, gauge)))
        });
        futures::StreamExt::chain(first, rest)
    }

    /// Waits for the next events and returns their frames, which may be empty.
    async fn next_frames(&mut self, view: &View) -> Option<Result<Bytes, TruncatedStream>> {
        loop {
            if self.is_finished {
                return None;
            }
            if self.hint_sent {
                return Some(self.truncate().await);
            }
            if self.ends_at.is_some_and(|end| Instant::now() >= end) {
                self.hint_sent = true;
                return Some(Ok(self.stream.last_words()));
            }
            if let Some(frames) = self.frames_of_read(view) {
                return Some(Ok(frames));
            }
            // Order matters: a change after this line wakes the wait below.
            let version = *self.changes.borrow_and_update();
            let next = if self.cursor < self.filter.end() {
                BufferRead::NotBuffered
            } else {
                self.handle.topic.after(self.cursor, view)
            };
            match next {
                BufferRead::Frames { frames, end, events, has_ended } => {
                    self.advance(end, events, has_ended);
                    return Some(Ok(frames));
                }
                BufferRead::Finished => return None,
                BufferRead::CaughtUp => {}
                BufferRead::NotBuffered => match self.read_next().await {
                    Ok(ReplayResult::Events(shared_read)) => {
                        self.shared_read = Some(shared_read);
                        continue;
                    }
                    Ok(ReplayResult::CaughtUp) => self.handle.topic.anchor(self.position(), version),
                    Ok(ReplayResult::Finished) => return None,
                    // The run or its events were deleted during the stream.
                    Ok(ReplayResult::ForeignCursor | ReplayResult::EventsGone | ReplayResult::NoSuchRun) => {
                        return Some(self.truncate().await);
                    }
                    Err(error) => {
                        tracing::debug!(run.id = %self.handle.topic.run_id, error = &error as &dyn Error, "failed to read a run for its stream; trying again");
                    }
                },
            }
            if self.is_at_wait(view).await {
                self.is_finished = true;
                return Some(Ok(wire::ai_sdk::end_of_segment()));
            }
            match self.wait(self.cursor).await {
                WakeReason::Changed => {}
                WakeReason::HeartbeatDue => return Some(Ok(Bytes::from_static(wire::HEARTBEAT))),
                WakeReason::Draining => {
                    self.hint_sent = true;
                    return Some(Ok(wire::reconnect_hint()));
                }
            }
        }
    }

    /// Returns whether the run waits for the client's answer and has written no event since the last shown one.
    async fn is_at_wait(&self, view: &View) -> bool {
        if !view.ends_at_waits() || self.last_shown.block != Some(Block::Waiting) {
            return false;
        }
        let run_id = self.handle.topic.run_id;
        match self.relay.storage.positions(vec![run_id]).await {
            Ok(positions) => {
                positions.iter().any(|(_, at)| at.status == RunStatus::Waiting && at.archived_to == self.cursor)
            }
            Err(error) => {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to read a run for its stream; trying again");
                false
            }
        }
    }

    /// Waits until there may be an event after `at`.
    pub(super) async fn wait(&mut self, at: EventId) -> WakeReason {
        // Order matters: a subscriber that passes this check before the drain begins is woken by it.
        if self.relay.is_draining() {
            return WakeReason::Draining;
        }
        // A subscriber that the topic does not serve must poll by itself.
        let wake_at = if self.handle.topic.tail() == Some(at) {
            self.heartbeat_at
        } else {
            self.heartbeat_at.min(Instant::now() + self.relay.poll_interval)
        };
        let wake_at = self.ends_at.map_or(wake_at, |end| wake_at.min(end));
        // An alarm that goes off too early is set again, because setting it for every event would cost more.
        if wake_at < self.alarm.deadline() || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(wake_at);
        }
        // Order matters: the alarm comes first, because events that this client's view does not show must not delay its
        // heartbeat.
        tokio::select! {
            biased;
            () = &mut self.alarm => if Instant::now() >= self.heartbeat_at { WakeReason::HeartbeatDue } else { WakeReason::Changed },
            _ = self.changes.changed() => WakeReason::Changed,
        }
    }

    /// Restarts the heartbeat interval, because bytes were sent.
    pub(super) fn reset_heartbeat(&mut self) {
        self.heartbeat_at = Instant::now() + self.relay.heartbeat;
    }

    async fn truncate(&mut self) -> Result<Bytes, TruncatedStream> {
        self.is_finished = true;
        // The server discards frames of the poll that returns an error, so this one lets it send them first.
        tokio::task::yield_now().await;
        Err(TruncatedStream)
    }

    /// Reads the next events. A filter's ranges are valid for the log as it is now. So within them the subscriber does
    /// not use a read of other clients.
    async fn read_next(&self) -> Result<ReplayResult<Arc<SharedRead>>, storage::Error> {
        let (run_id, position) = (self.handle.topic.run_id, self.position());
        if self.cursor < self.filter.end() {
            Ok(self.relay.replay(run_id, self.cursor).await?.map(|events| SharedRead::of(position, events)))
        } else {
            self.relay.read_shared(&self.handle.topic, position).await
        }
    }

    /// Returns the events that were read and not yet sent.
    pub(super) fn unsent_events(&self) -> Vec<Event> {
        self.shared_read.as_ref().map(|shared_read| shared_read.events_after(self.cursor)).unwrap_or_default()
    }

    /// Returns the next frames of the events that were read, or `None` if there are none.
    fn frames_of_read(&mut self, view: &View) -> Option<Bytes> {
        let shared_read = self.shared_read.as_ref()?;
        if self.cursor >= self.filter.end()
            && let BufferRead::Frames { frames, end, events, has_ended } = shared_read.after(self.cursor, view)
        {
            self.advance(end, events, has_ended);
            return Some(frames);
        }
        let events = self.unsent_events();
        if events.is_empty() {
            self.shared_read = None;
            return None;
        }
        Some(self.own_frames(events, view))
    }

    /// Returns the frames of the first events, about a slice of them, for this client alone. Its stream has a filter,
    /// or only this subscriber knows the block that its client is in.
    fn own_frames(&mut self, events: Vec<Event>, view: &View) -> Bytes {
        let mut projector = Projector::after(self.last_shown, view.clone());
        let mut frames = Vec::new();
        let mut count = 0;
        for event in events {
            self.cursor = event.id;
            count += 1;
            if is_left_out(&self.filter.left_out, event.id) {
                continue;
            }
            projector.frame(&mut frames, &event);
            self.last_shown = LogPosition::after(&event);
            self.is_finished |= event.is_terminal();
            if self.filter.until == Some(event.id) {
                frames.extend_from_slice(&wire::ai_sdk::end_of_segment());
                self.is_finished = true;
            }
            if self.is_finished || frames.len() >= SLICE_BYTES {
                break;
            }
        }
        self.relay.relayed.increment(count);
        frames.into()
    }

    /// Returns the subscriber's position, with the block that the client is in.
    fn position(&self) -> LogPosition {
        LogPosition { id: self.cursor, ..self.last_shown }
    }

    fn advance(&mut self, end: LogPosition, events: usize, has_ended: bool) {
        (self.cursor, self.last_shown) = (end.id, end);
        self.is_finished = has_ended;
        self.relay.relayed.increment(events as u64);
    }
}

/// Counts a stream as open until it is dropped.
pub(super) struct StreamGauge;

impl StreamGauge {
    pub(super) fn new() -> Self {
        metrics::gauge!("holdfast_streams_open").increment(1);
        Self
    }
}

impl Drop for StreamGauge {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_streams_open").decrement(1);
    }
}
