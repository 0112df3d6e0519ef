//! One client's stream on a wire with a state: a fold of the run's log from its start, of which the client gets the frames that it
//! has not got yet.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use holdfast_shared::{event::Event, event_id::EventId};

use super::{
    batch::Slice,
    frame_stream::{Encode, TruncatedStream},
};
use crate::wire::{Block, FrameId, LogPosition, WireFold, is_taken_over, with_client_bytes};

/// The stream of a client. Its subscriber starts at the log's start.
pub struct FoldStream<F: WireFold> {
    view: Arc<F::View>,
    fold: F,
    /// The last event of the fold.
    last: EventId,
    seen: SeenFrames,
    /// The pause at which the stream ends, if the run has continued after it.
    until: Option<EventId>,
    /// Whether the fold has superseded events, which the log may have lost. Another client's fold may lack them.
    is_alone: bool,
    /// Whether the stream continues at a pause whose frames the client has.
    is_patient: bool,
    /// The bytes for the places in the frames.
    of_client: Option<Vec<u8>>,
}

/// Frames with a client's bytes. The shared frames keep the read of their events alive.
struct FilledFrames {
    frames: Vec<u8>,
    _shared: Bytes,
}

impl AsRef<[u8]> for FilledFrames {
    fn as_ref(&self) -> &[u8] {
        &self.frames
    }
}

/// The frames that the client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenFrames {
    /// This frame, and all before it.
    UpTo(FrameId),
    /// So many frames from the start.
    First(u64),
    /// So many frames more, after the first ones.
    Next(u64),
}

impl SeenFrames {
    /// A client without any frame.
    pub const NONE: Self = Self::First(0);
}

impl<F: WireFold> FoldStream<F> {
    /// Begins a stream with the state before the log.
    pub fn new(view: F::View, fold: F) -> Self {
        let (last, seen) = (EventId::ORIGIN, SeenFrames::NONE);
        Self {
            view: Arc::new(view),
            fold,
            last,
            seen,
            until: None,
            is_alone: false,
            is_patient: false,
            of_client: None,
        }
    }

    /// Puts a client's bytes in the places that the fold's frames have for them.
    pub fn with_client_bytes(self, of_client: Vec<u8>) -> Self {
        Self { of_client: Some(of_client), ..self }
    }

    /// Leaves out the frames that the client has.
    pub fn after(self, seen: SeenFrames) -> Self {
        Self { seen, ..self }
    }

    /// Ends the stream at a pause that the run has passed. A client whose last frame is after it has seen the run continue there,
    /// so it comes after `after`.
    pub fn until(self, pause: Option<EventId>) -> Self {
        let is_ahead = |pause: &EventId| !matches!(self.seen, SeenFrames::UpTo(seen) if seen.event > *pause);
        Self { until: pause.filter(is_ahead), ..self }
    }

    /// Waits with a client that has the frames of a pause, for what follows an answer there.
    pub fn patient(self) -> Self {
        Self { is_patient: true, ..self }
    }

    /// Returns whether the client gets all frames of these events, and the same as others with its view.
    fn shares(&self, slice: &Slice) -> bool {
        let has_none = match self.seen {
            SeenFrames::UpTo(frame) => self.last >= frame.event,
            SeenFrames::First(frames) | SeenFrames::Next(frames) => frames == 0,
        };
        let mut last = self.last;
        let mut continues = |event: &Event| {
            let before = std::mem::replace(&mut last, event.id);
            event.base.is_none_or(|base| base >= before) && self.until != Some(event.id)
        };
        !self.is_alone && has_none && slice.events().all(&mut continues)
    }

    /// Appends the frames of an event that the client has not got yet. Returns whether the stream ends with them. Fails if the
    /// client may have counted frames that the log has lost.
    fn push(&mut self, buffer: &mut Vec<u8>, event: &Event) -> Result<bool, TruncatedStream> {
        if matches!(self.seen, SeenFrames::Next(1..)) && is_taken_over(event) {
            return Err(TruncatedStream);
        }
        self.is_alone |= event.base.is_some_and(|base| base < self.last);
        let mut frames = Vec::new();
        self.fold.frame(&self.view, &mut frames, event);
        self.last = event.id;
        // A client whose cursor is beyond the end waits for an end.
        if event.is_terminal() && matches!(self.seen, SeenFrames::UpTo(seen) if seen.event > event.id) {
            self.seen = SeenFrames::NONE;
        }
        self.write(buffer, &frames);
        let ends = self.until == Some(event.id);
        if ends {
            self.pause(buffer);
        }
        Ok(ends)
    }

    /// Returns the frames of some events, and whether the stream ends with them.
    fn frames(&mut self, slice: &Slice) -> Result<(Bytes, bool), TruncatedStream> {
        let is_last = slice.last().is_terminal();
        if self.shares(slice) {
            self.last = slice.last().id;
            return Ok((slice.folded(&mut self.view, &mut self.fold), is_last));
        }
        let mut buffer = Vec::new();
        for event in slice.events() {
            if self.push(&mut buffer, event)? {
                return Ok((buffer.into(), true));
            }
        }
        Ok((buffer.into(), is_last))
    }

    fn filled(&self, shared: Bytes) -> Bytes {
        match &self.of_client {
            Some(of_client) if !shared.is_empty() => {
                let frames = with_client_bytes(&shared, of_client);
                Bytes::from_owner(FilledFrames { frames, _shared: shared })
            }
            _ => shared,
        }
    }

    fn pause(&mut self, buffer: &mut Vec<u8>) {
        let mut frames = Vec::new();
        self.fold.pause(&self.view, &mut frames);
        self.write(buffer, &frames);
    }

    /// Appends those of some frames that the client has not got yet.
    fn write(&mut self, buffer: &mut Vec<u8>, mut frames: &[u8]) {
        while let Some(length) = frames.windows(2).position(|bytes| bytes == b"\n\n") {
            let (frame, rest) = frames.split_at(length + 2);
            if !self.has(frame) {
                buffer.extend_from_slice(frame);
            }
            frames = rest;
        }
    }

    fn has(&mut self, frame: &[u8]) -> bool {
        match self.seen {
            SeenFrames::UpTo(seen) => id_of(frame).is_some_and(|id| id <= seen),
            SeenFrames::First(0) | SeenFrames::Next(0) => false,
            SeenFrames::First(frames) | SeenFrames::Next(frames) => {
                self.seen = SeenFrames::Next(frames - 1);
                true
            }
        }
    }
}

/// Returns the id of a frame, which is its first line.
fn id_of(frame: &[u8]) -> Option<FrameId> {
    let line = frame.strip_prefix(b"id: ")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.parse().ok()
}

impl<F: WireFold> Encode for FoldStream<F> {
    /// A block that has only `retry:` is an event for some clients.
    fn first_bytes(&self) -> &'static [u8] {
        b""
    }

    fn reconnects(&self) -> bool {
        F::RECONNECTS
    }

    fn heartbeat(&self, configured: Duration) -> Duration {
        F::HEARTBEAT.map_or(configured, |longest| longest.min(configured))
    }

    async fn encode(&mut self, slice: &Slice) -> Result<(Bytes, bool), TruncatedStream> {
        let (frames, is_last) = self.frames(slice)?;
        Ok((self.filled(frames), is_last))
    }

    fn end_at_wait(&self, position: LogPosition) -> Option<Bytes> {
        if position.block != Block::Waiting || !self.fold.ends_at_pause() {
            return None;
        }
        let mut ended = Self { view: Arc::clone(&self.view), fold: self.fold.clone(), of_client: None, ..*self };
        let mut buffer = Vec::new();
        ended.pause(&mut buffer);
        let waits = self.is_patient && buffer.is_empty();
        (!waits).then(|| self.filled(buffer.into()))
    }
}
