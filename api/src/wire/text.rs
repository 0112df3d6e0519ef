//! The text wire: the answer's text, piece by piece, then `[DONE]`.
//!
//! Nothing but text can be told here: tools are silent, what is superseded is a comment, so is the reason of an answer that
//! the model did not end by itself, and a failure is a frame of the
//! type `error`, which clients that read only messages do not show.

use std::io::Write as _;

use holdfast_shared::{
    event::{Event, EventBody},
    event_id::EventId,
    finish_reason::FinishReason,
};

use super::{View, reader::shown};

/// Appends what an event becomes.
pub fn frames(buffer: &mut Vec<u8>, view: &View, before: EventId, event: &Event) {
    if let Some(base) = event.base.filter(|_| view.is_taken_back_by(event, before)) {
        // There is no blank line after it, for the same reason as after a heartbeat.
        writeln!(buffer, ": superseded after {base}").expect("a Vec takes every write");
    }
    match shown(view, event) {
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
        | EventBody::WarningRaised(_)
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

/// Appends a text and the end of its frame. Whatever SSE takes for the end of a line begins another `data:` line, which
/// clients join with `\n`.
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
