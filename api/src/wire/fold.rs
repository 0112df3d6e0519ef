//! Wires with a state. Each of their frames has an id, `<event id>.<number>`, so a stream may be cut after any frame.

use std::{fmt, str::FromStr, time::Duration};

use holdfast_shared::{
    event::{AttemptReason, Event, EventBody, EventKind},
    event_id::{EventId, MalformedEventId},
};

/// The state of a stream after some events of a run's log. It starts at the log's start. Two folds of one view are equal after equal
/// events, so the clients of a view share its frames.
pub trait WireFold: Clone + Send + Sync + 'static {
    /// The part of a run that a client sees.
    type View: PartialEq + Send + Sync;

    /// Whether the wire's usual clients reconnect by themselves to a truncated stream.
    const RECONNECTS: bool;

    /// The longest pause between two frames for which the wire's usual clients wait; `None` if they have no time-out.
    const HEARTBEAT: Option<Duration> = None;

    /// Applies the next event of the log, and appends its frames.
    fn frame(&mut self, view: &Self::View, buffer: &mut Vec<u8>, event: &Event);

    /// Returns whether the stream ends where the run waits now.
    fn ends_at_pause(&self) -> bool {
        true
    }

    /// Appends the last frames of a stream that ends after the last event because the run waits for the client's answer.
    fn pause(&self, view: &Self::View, buffer: &mut Vec<u8>);
}

/// The place for the bytes of one client in frames that all clients of a view share. JSON escapes this byte, so no frame has it
/// elsewhere.
pub const CLIENT_PLACE: u8 = 0;

/// Returns frames with a client's bytes in each place for them.
pub fn with_client_bytes(frames: &[u8], of_client: &[u8]) -> Vec<u8> {
    let places = memchr::memchr_iter(CLIENT_PLACE, frames);
    let mut filled = Vec::with_capacity(frames.len() + places.clone().count() * of_client.len());
    let mut start = 0;
    for place in places {
        filled.extend_from_slice(&frames[start..place]);
        filled.extend_from_slice(of_client);
        start = place + 1;
    }
    filled.extend_from_slice(&frames[start..]);
    filled
}

/// Returns whether the worker before this event may have shown events that it had not archived. A run that waits, or that its worker
/// handed over, is archived completely.
pub fn is_taken_over(event: &Event) -> bool {
    match event.kind() {
        _ if event.base.is_none() => false,
        EventKind::RunQueued | EventKind::ApprovalResolved | EventKind::ToolCallCompleted => false,
        EventKind::AttemptStarted => match event.body() {
            EventBody::AttemptStarted(started) => started.reason == AttemptReason::LeaseExpired,
            _ => true,
        },
        _ => true,
    }
}

/// A frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId {
    /// The event that the frame belongs to.
    pub event: EventId,
    /// Its number among the frames of the event, from 0.
    pub number: u32,
}

impl FrameId {
    /// The cursor of a client that has no frame.
    pub const START: Self = Self { event: EventId::ORIGIN, number: 0 };
}

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.number)
    }
}

/// The id of an event stands for its last frame.
impl FromStr for FrameId {
    type Err = MalformedEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((event, number)) = text.split_once('.') else {
            return Ok(Self { event: text.parse()?, number: u32::MAX });
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        match number.parse() {
            Ok(number) if is_plain => Ok(Self { event: event.parse()?, number }),
            // The text is no event id either, so its error is the right one.
            _ => Ok(Self { event: text.parse()?, number: 0 }),
        }
    }
}
