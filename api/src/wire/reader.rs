//! What the wires share that show a reader text rather than events: which events a view shows, and the mark of what an attempt
//! takes back.

use holdfast_shared::{
    event::{Event, EventBody, EventKind},
    event_id::EventId,
};
use serde::Serialize;

use super::{Shows, View};

/// The body of an event that the view shows; `Unknown` for all others, whose payloads are not read.
pub fn shown<'a>(view: &View, event: &'a Event) -> EventBody<'a> {
    let is_shown = match event.kind() {
        EventKind::MessageDelta => view.shows == Shows::Everything,
        // Without pieces the text is in the whole message.
        EventKind::MessageCompleted => view.shows != Shows::Everything,
        EventKind::StepStarted
        | EventKind::ToolCallStarted
        | EventKind::ToolCallCompleted
        | EventKind::AgentState
        | EventKind::ContextUsage => view.shows != Shows::Messages,
        EventKind::RunQueued | EventKind::RunCompleted | EventKind::RunFailed | EventKind::RunCancelled => true,
        EventKind::AttemptStarted
        | EventKind::StepCompleted
        | EventKind::ReasoningDelta
        | EventKind::ToolCallDelta
        | EventKind::ApprovalRequested
        | EventKind::ApprovalResolved
        | EventKind::WarningRaised
        | EventKind::Unknown => false,
    };
    if is_shown { event.body() } else { EventBody::Unknown }
}

/// The mark of what a reader may have seen and an attempt takes back: all that came after `base`.
#[derive(Debug, Serialize)]
pub struct Superseded {
    superseded: bool,
    base: EventId,
}

impl Superseded {
    /// What an event takes back of the view, if it does.
    pub fn by(event: &Event, before: EventId, view: &View) -> Option<Self> {
        let base = event.base.filter(|_| view.is_taken_back_by(event, before))?;
        Some(Self { superseded: true, base })
    }
}
