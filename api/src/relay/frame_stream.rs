//! A stream of frames: what one client receives of a run, with heartbeats, up to the run's end or a reconnection.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::storage;
use tokio::time::Instant;

use super::{
    batch::Slice,
    log_reader::{Next, ReadError},
    subscriber::{Subscriber, WakeReason},
};
use crate::wire::{self, LogPosition, View};

/// The server truncates the stream on purpose, so that the client reconnects. A clean end would mean that the run has
/// ended.
#[derive(Debug, thiserror::Error)]
#[error("the server truncated the stream; resume it with the last event id")]
pub struct TruncatedStream;

/// Encodes the events of one client's stream.
pub trait Encode: Send + Sync + 'static {
    /// Returns the first bytes of a stream.
    fn first_bytes(&self) -> &'static [u8] {
        wire::RETRY
    }

    /// Returns whether the usual clients reconnect by themselves to a truncated stream.
    fn reconnects(&self) -> bool;

    /// Returns the longest pause between two frames, if the usual clients do not wait as long as `configured`.
    fn heartbeat(&self, configured: Duration) -> Duration {
        configured
    }

    /// Returns the frames of the next events, which may be empty, and whether the stream ends with them. Fails if the stream
    /// cannot continue.
    fn encode(&mut self, slice: &Slice) -> impl Future<Output = Result<(Bytes, bool), TruncatedStream>> + Send;

    /// Returns the last frames of a stream that ends at a position where the run may wait, because the client answers with a new
    /// request. `None` if the stream continues there.
    fn end_at_wait(&self, position: LogPosition) -> Option<Bytes>;
}

/// A view shows all events, with the frames that all its clients share.
impl Encode for View {
    fn reconnects(&self) -> bool {
        self.wire.reconnects()
    }

    async fn encode(&mut self, slice: &Slice) -> Result<(Bytes, bool), TruncatedStream> {
        Ok((slice.frames(self), slice.last().is_terminal()))
    }

    fn end_at_wait(&self, position: LogPosition) -> Option<Bytes> {
        Self::end_at_wait(self, position)
    }
}

struct FrameStream<E> {
    subscriber: Subscriber,
    encoder: E,
    phase: StreamPhase,
    /// When the server truncates the stream, if ever.
    ends_at: Option<Instant>,
    /// When the next heartbeat is due, if no frame is sent before.
    heartbeat_at: Instant,
    _gauge: StreamGauge,
}

enum StreamPhase {
    Open,
    /// The client has received the hint to reconnect, so the stream ends next.
    Truncating,
    Finished,
}

impl Subscriber {
    /// Returns the frames of the events after the position, after a prefix that stands for all events before it. The
    /// stream ends cleanly only after the terminal event, or where the encoder ends it.
    pub fn into_frames(
        self,
        prefix: Vec<u8>,
        encoder: impl Encode,
    ) -> impl Stream<Item = Result<Bytes, TruncatedStream>> + Send {
        let prefix = Bytes::from([encoder.first_bytes(), &prefix].concat());
        let (ends_at, heartbeat_at) = (self.permit.ends_at(encoder.reconnects()), self.heartbeat_of(&encoder));
        let (phase, _gauge) = (StreamPhase::Open, StreamGauge::new());
        let frames = FrameStream { subscriber: self, encoder, phase, ends_at, heartbeat_at, _gauge };
        let rest = stream::unfold(frames, |mut frames| async { Some((frames.next().await?, frames)) });
        futures::StreamExt::chain(stream::iter([Ok(prefix)]), rest)
    }

    /// Returns when a heartbeat is due after a frame.
    pub fn next_heartbeat(&self) -> Instant {
        Instant::now() + self.context.heartbeat
    }

    fn heartbeat_of(&self, encoder: &impl Encode) -> Instant {
        Instant::now() + encoder.heartbeat(self.context.heartbeat)
    }
}

impl<E: Encode> FrameStream<E> {
    /// Waits for the next events that have frames, and returns the frames.
    async fn next(&mut self) -> Option<Result<Bytes, TruncatedStream>> {
        loop {
            match self.phase {
                StreamPhase::Open => {}
                StreamPhase::Truncating => return Some(self.truncate().await),
                StreamPhase::Finished => return None,
            }
            if self.ends_at.is_some_and(|end| Instant::now() >= end) {
                self.phase = StreamPhase::Truncating;
                return Some(Ok(self.subscriber.permit.last_words()));
            }
            match self.subscriber.next().await {
                Ok(Next::Events(slice)) => match self.encode(&slice).await {
                    Ok(frames) if frames.is_empty() => continue,
                    Ok(frames) => return Some(Ok(frames)),
                    Err(TruncatedStream) => return Some(self.truncate().await),
                },
                Ok(Next::CaughtUp) => {
                    if let Some(frames) = self.end_at_wait().await {
                        self.phase = StreamPhase::Finished;
                        return Some(Ok(frames));
                    }
                }
                Ok(Next::Ended) => return None,
                Err(ReadError::Storage(error)) => self.log(&error),
                // The run or its events were deleted during the stream.
                Err(ReadError::ForeignCursor | ReadError::EventsGone | ReadError::NoSuchRun) => {
                    return Some(self.truncate().await);
                }
            }
            let until = self.ends_at.map_or(self.heartbeat_at, |end| self.heartbeat_at.min(end));
            match self.subscriber.wait(until).await {
                WakeReason::Changed => {}
                WakeReason::TimedOut if Instant::now() < self.heartbeat_at => {}
                WakeReason::TimedOut => {
                    self.heartbeat_at = self.subscriber.heartbeat_of(&self.encoder);
                    return Some(Ok(Bytes::from_static(wire::HEARTBEAT)));
                }
                WakeReason::Draining => {
                    self.phase = StreamPhase::Truncating;
                    return Some(Ok(wire::reconnect_hint()));
                }
            }
        }
    }

    async fn encode(&mut self, slice: &Slice) -> Result<Bytes, TruncatedStream> {
        let (frames, is_last) = self.encoder.encode(slice).await?;
        self.subscriber.note_sent(slice.events().count());
        if is_last {
            self.phase = StreamPhase::Finished;
        }
        if !frames.is_empty() {
            self.heartbeat_at = self.subscriber.heartbeat_of(&self.encoder);
        }
        Ok(frames)
    }

    /// Returns the last frames if the view's streams end at a wait and the run waits for the client's answer. The
    /// subscriber must have the run's newest event.
    async fn end_at_wait(&self) -> Option<Bytes> {
        let position = self.subscriber.position();
        let frames = self.encoder.end_at_wait(position)?;
        match self.subscriber.context.reader.is_waiting_after(self.subscriber.topic.run_id, position.id).await {
            Ok(is_waiting) => is_waiting.then_some(frames),
            Err(error) => {
                self.log(&error);
                None
            }
        }
    }

    fn log(&self, error: &storage::Error) {
        tracing::debug!(run.id = %self.subscriber.topic.run_id, error = error as &dyn Error, "failed to read a run for its stream; trying again");
    }

    async fn truncate(&mut self) -> Result<Bytes, TruncatedStream> {
        self.phase = StreamPhase::Finished;
        // The server discards frames of the poll that returns an error, so this one lets it send them first.
        tokio::task::yield_now().await;
        Err(TruncatedStream)
    }
}

/// Counts a stream as open until it is dropped.
pub struct StreamGauge;

impl StreamGauge {
    pub fn new() -> Self {
        metrics::gauge!("holdfast_streams_open").increment(1);
        Self
    }
}

impl Drop for StreamGauge {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_streams_open").decrement(1);
    }
}
