//! AG-UI: the protocol of front ends such as CopilotKit's.
//!
//! Unlike the other wires, this one is a fold with a state (`fold`): its clients refuse a text, a call or a step that begins
//! twice or does not end. Each frame has an id, `<event id>.<number>`, so a stream may be cut after any frame. `calls` has the
//! calls that a stream has shown, `event` the events of the protocol, `message` its messages, and `interrupt` its questions.

mod calls;
mod event;
mod fold;
mod interrupt;
mod message;

use std::{fmt, io::Write as _, str::FromStr};

use holdfast_shared::{
    event::Event,
    event_id::{EventId, MalformedEventId},
};

pub use event::{AgUiEvent, AgUiOutcome};
pub use fold::AgUiFold;
pub use message::{AgUiMessage, apply, of_answer, of_stored};

use super::Detail;

/// The part of a run that a client sees. Clients with equal views receive equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgUiView {
    pub detail: Detail,
    /// The client's name for its thread.
    pub thread_id: String,
    /// The client's name for its run.
    pub run_id: String,
    /// The pause after which the client has continued the thread by a request with its answers.
    pub after: Option<EventId>,
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

impl AgUiView {
    /// Returns the first event of a stream.
    pub fn started(&self) -> AgUiEvent<'static> {
        AgUiEvent::RunStarted { thread_id: self.thread_id.clone().into(), run_id: self.run_id.clone().into() }
    }

    /// Returns the last event of a stream.
    pub fn finished(&self, outcome: AgUiOutcome) -> AgUiEvent<'static> {
        let (thread_id, run_id) = (self.thread_id.clone().into(), self.run_id.clone().into());
        AgUiEvent::RunFinished { thread_id, run_id, outcome }
    }

    /// Appends the frames of the next event of the log.
    pub fn frame(&self, buffer: &mut Vec<u8>, fold: &mut AgUiFold, event: &Event) {
        write_frames(buffer, FrameId { event: event.id, number: 0 }, &fold.push(self, event));
    }
}

/// Appends the frames of some events, with the ids from `first` on.
pub fn write_frames(buffer: &mut Vec<u8>, first: FrameId, events: &[AgUiEvent<'_>]) {
    for (number, event) in (first.number..).zip(events) {
        write!(buffer, "id: {}\ndata: ", FrameId { number, ..first }).expect("a Vec takes every write");
        serde_json::to_writer(&mut *buffer, event).expect("an event is always valid JSON");
        buffer.extend_from_slice(b"\n\n");
    }
}
