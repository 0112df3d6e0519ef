//! AG-UI: the protocol of front ends such as CopilotKit's.
//!
//! It is a fold with a state (`fold`): its clients refuse a text, a call or a step that begins twice or does not end. `calls` has the
//! calls that a stream has shown, `subagents` its subagents, `event` the events of the protocol, `message` its messages, and `interrupt` its questions.

mod calls;
mod event;
mod fold;
mod interrupt;
mod message;
mod subagents;

use std::io::Write as _;

use holdfast_shared::{
    event::{Event, EventKind},
    event_id::EventId,
};

pub use event::{AgUiEvent, AgUiOutcome};
pub use fold::AgUiFold;
pub use message::{AgUiMessage, apply, of_answer, of_stored};

use crate::wire::{Detail, FrameId, WireFold};

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
    pub version: AgUiVersion,
}

/// The version of the protocol that the client declares. Clients refuse what a later version has added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgUiVersion {
    /// Versions before 1.0, which declare none. The eldest of them know no reasoning, and take one call after the other.
    #[default]
    Early,
    /// Versions before 1.0 from 0.0.45 on, which their client must name.
    Reasoning,
    One,
}

/// The version that the first event of a stream declares.
const PROTOCOL: &str = "1.0";

impl AgUiVersion {
    pub fn declared(version: Option<&str>) -> Self {
        let numbers = version.unwrap_or_default().split('.').map_while(|number| number.parse::<u32>().ok());
        match numbers.collect::<Vec<_>>()[..] {
            [major, ..] if major > 0 => Self::One,
            [0, minor, ..] if minor > 0 => Self::Reasoning,
            [0, 0, patch, ..] if patch >= 45 => Self::Reasoning,
            _ => Self::Early,
        }
    }
}

impl AgUiView {
    /// Returns the first event of a stream.
    pub fn started(&self) -> AgUiEvent<'static> {
        AgUiEvent::RunStarted {
            thread_id: self.thread_id.clone().into(),
            run_id: self.run_id.clone().into(),
            protocol_version: (self.version == AgUiVersion::One).then_some(PROTOCOL),
        }
    }

    /// Returns the last event of a stream.
    pub fn finished(&self, outcome: AgUiOutcome) -> AgUiEvent<'static> {
        let outcome = match outcome {
            _ if self.version == AgUiVersion::One => Some(outcome),
            AgUiOutcome::Success { .. } => Some(AgUiOutcome::Success { pending_tool_call_ids: Vec::new() }),
            AgUiOutcome::Interrupt { .. } => Some(outcome),
            AgUiOutcome::Cancelled => None,
        };
        let (thread_id, run_id) = (self.thread_id.clone().into(), self.run_id.clone().into());
        AgUiEvent::RunFinished { thread_id, run_id, outcome }
    }

    /// Returns the messages of a thread, as the client's version knows them.
    pub fn snapshot(&self, mut messages: Vec<AgUiMessage>) -> AgUiEvent<'static> {
        messages.retain(|message| self.version != AgUiVersion::Early || !message.is_reasoning());
        AgUiEvent::MessagesSnapshot { messages }
    }

    /// Returns whether the view shows events of a kind.
    fn shows(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::MessageDelta | EventKind::ReasoningDelta | EventKind::ToolCallDelta => {
                // The calls of early clients are complete at once, because parts of two calls may be mixed.
                let is_call = kind == EventKind::ToolCallDelta;
                self.detail == Detail::All && !(is_call && self.version == AgUiVersion::Early)
            }
            EventKind::MessageCompleted => self.detail != Detail::All,
            EventKind::RunQueued
            | EventKind::ApprovalRequested
            | EventKind::ApprovalResolved
            | EventKind::ToolCallStarted
            | EventKind::ToolCallCompleted
            | EventKind::RunCompleted
            | EventKind::RunFailed
            | EventKind::RunCancelled => true,
            _ => self.detail != Detail::Messages,
        }
    }
}

impl WireFold for AgUiFold {
    type View = AgUiView;

    const RECONNECTS: bool = false;

    fn frame(&mut self, view: &AgUiView, buffer: &mut Vec<u8>, event: &Event) {
        write_frames(buffer, FrameId { event: event.id, number: 0 }, &self.push(view, event));
    }

    fn pause(&self, view: &AgUiView, buffer: &mut Vec<u8>) {
        write_frames(buffer, self.next_frame(), &self.end_at_pause(view));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_version_says_what_its_client_knows() {
        let check =
            |version: Option<&str>, expected| assert_eq!(AgUiVersion::declared(version), expected, "{version:?}");
        check(None, AgUiVersion::Early);
        check(Some("0.0.36"), AgUiVersion::Early);
        check(Some("0.0.45"), AgUiVersion::Reasoning);
        check(Some("0.1"), AgUiVersion::Reasoning);
        check(Some("1.0"), AgUiVersion::One);
        check(Some("2"), AgUiVersion::One);
        check(Some("next"), AgUiVersion::Early);
    }
}
