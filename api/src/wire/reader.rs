//! Shared by the wires that show text to a reader: which events a view shows, and the mark of superseded events.

use holdfast_shared::{
    event::{Event, EventBody, EventKind},
    event_id::EventId,
};
use serde::Serialize;

use super::{Detail, View};

/// Returns the body of an event that the view shows, and `Unknown` for all others without parsing them.
pub fn visible_body<'a>(view: &View, event: &'a Event) -> EventBody<'a> {
    let is_shown = match event.kind() {
        EventKind::MessageDelta => view.detail == Detail::All,
        // Without deltas the text comes from the complete message.
        EventKind::MessageCompleted => view.detail != Detail::All,
        EventKind::StepStarted
        | EventKind::ToolCallStarted
        | EventKind::ToolCallCompleted
        | EventKind::AgentState
        | EventKind::ContextUsage
        | EventKind::DocumentProgress
        | EventKind::ContextRetrieved
        | EventKind::CitationAdded
        | EventKind::CitationDropped
        | EventKind::MessageSteered
        | EventKind::PlanCreated
        | EventKind::PlanUpdated
        | EventKind::PlanReviewed
        | EventKind::PlanStepStarted
        | EventKind::PlanStepCompleted
        | EventKind::QuestionAsked
        | EventKind::ContextShifted
        | EventKind::FocusChanged
        | EventKind::OntologyLoaded
        | EventKind::TemplateRequested
        | EventKind::TemplateSuggested
        | EventKind::ApprovalRequested
        | EventKind::SubagentStarted
        | EventKind::SubagentCompleted => view.detail != Detail::Messages,
        EventKind::RunQueued | EventKind::RunCompleted | EventKind::RunFailed | EventKind::RunCancelled => true,
        EventKind::AttemptStarted
        | EventKind::StepCompleted
        | EventKind::ReasoningDelta
        | EventKind::ToolCallDelta
        | EventKind::ApprovalResolved
        | EventKind::MemoryTold
        | EventKind::WarningRaised
        | EventKind::Unknown => false,
    };
    if is_shown { event.body() } else { EventBody::Unknown }
}

/// The mark that an attempt supersedes events after `base` which a reader may have seen.
#[derive(Debug, Serialize)]
pub struct SupersededMark {
    superseded: bool,
    base: EventId,
}

impl SupersededMark {
    /// Returns the mark of an event, if it supersedes events of the view.
    pub fn by(event: &Event, previous: EventId, view: &View) -> Option<Self> {
        let base = event.base.filter(|_| view.supersedes_shown(event, previous))?;
        Some(Self { superseded: true, base })
    }
}
