//! The text wire: the answer's text in pieces, then `[DONE]`.
//!
//! It shows only text. Tools have no frames. Superseded text and a finish reason other than `stop` are comments. A
//! failure is a frame of the type `error`, which clients that read only messages ignore.

use std::io::Write as _;

use holdfast_shared::{
    event::{Event, EventBody},
    event_id::EventId,
    finish_reason::FinishReason,
};

use crate::wire::{View, reader::visible_body};

/// Appends the frames of an event.
pub fn frames(buffer: &mut Vec<u8>, view: &View, previous: EventId, event: &Event) {
    if let Some(base) = event.base.filter(|_| view.supersedes_shown(event, previous)) {
        // No blank line follows, as after a heartbeat.
        writeln!(buffer, ": superseded after {base}").expect("a Vec takes every write");
    }
    match visible_body(view, event) {
        EventBody::MessageDelta(delta) => text(buffer, event, &delta.text),
        EventBody::MessageCompleted(completed) => text(buffer, event, &completed.message.content.into_stored()),
        EventBody::RunFailed(end) => {
            buffer.extend_from_slice(b"event: error\n");
            data(buffer, &end.error.message);
            done(buffer, event);
        }
        EventBody::RunCompleted(end) => {
            if let Some(reason) = end.finish_reason.filter(|reason| *reason != FinishReason::Stop) {
                writeln!(buffer, ": finish_reason {}", reason.as_str()).expect("a Vec takes every write");
            }
            done(buffer, event);
        }
        EventBody::RunCancelled(_) => done(buffer, event),
        EventBody::RunQueued(_)
        | EventBody::AttemptStarted(_)
        | EventBody::StepStarted(_)
        | EventBody::StepCompleted(_)
        | EventBody::ReasoningDelta(_)
        | EventBody::ToolCallDelta(_)
        | EventBody::ToolCallStarted(_)
        | EventBody::ToolCallCompleted(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ApprovalResolved(_)
        | EventBody::AgentState(_)
        | EventBody::ContextUsage(_)
        | EventBody::DocumentProgress(_)
        | EventBody::ContextRetrieved(_)
        | EventBody::CitationAdded(_)
        | EventBody::CitationDropped(_)
        | EventBody::WarningRaised(_)
        | EventBody::PlanCreated(_)
        | EventBody::PlanUpdated(_)
        | EventBody::PlanReviewed(_)
        | EventBody::PlanStepStarted(_)
        | EventBody::PlanStepCompleted(_)
        | EventBody::QuestionAsked(_)
        | EventBody::ContextShifted(_)
        | EventBody::FocusChanged(_)
        | EventBody::OntologyLoaded(_)
        | EventBody::TemplateRequested(_)
        | EventBody::TemplateSuggested(_)
        | EventBody::MemoryTold(_)
        | EventBody::SubagentStarted(_)
        | EventBody::MessageSteered(_)
        | EventBody::SubagentCompleted(_)
        | EventBody::Unknown => {}
    }
}

fn text(buffer: &mut Vec<u8>, event: &Event, text: &str) {
    if !text.is_empty() {
        id(buffer, event);
        data(buffer, text);
    }
}

fn done(buffer: &mut Vec<u8>, event: &Event) {
    id(buffer, event);
    data(buffer, "[DONE]");
}

fn id(buffer: &mut Vec<u8>, event: &Event) {
    writeln!(buffer, "id: {}", event.id).expect("a Vec takes every write");
}

/// Appends a text and the end of its frame. Each line break of SSE starts another `data:` line, and clients join these
/// lines with `\n`.
fn data(buffer: &mut Vec<u8>, text: &str) {
    buffer.extend_from_slice(b"data: ");
    let mut rest = text.as_bytes();
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        let is_pair = rest[end..].starts_with(b"\r\n");
        buffer.extend_from_slice(&rest[..end]);
        buffer.extend_from_slice(b"\ndata: ");
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
    buffer.extend_from_slice(rest);
    buffer.extend_from_slice(b"\n\n");
}
