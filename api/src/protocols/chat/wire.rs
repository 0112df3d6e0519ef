//! The chat wire: one JSON object per frame, with the field `type`: `meta`, `token`, `mcp_tool`, `error`, `done`.
//!
//! `meta` comes first and `done` last, however the run ends. Strict clients know only these five, so the wire shows
//! nothing while a run waits for an answer.

use std::{borrow::Cow, io::Write as _};

use holdfast_shared::{
    event::{Event, EventBody},
    event_id::EventId,
    finish_reason::FinishReason,
};
use serde::Serialize;
use uuid::Uuid;

use crate::wire::{
    View,
    reader::{SupersededMark, visible_body},
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum ChatFrame<'a> {
    Meta {
        conversation_id: Uuid,
        run_id: Uuid,
        #[serde(flatten)]
        superseded: Option<SupersededMark>,
    },
    Token {
        token: Cow<'a, str>,
    },
    McpTool {
        tool: Cow<'a, str>,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Cow<'a, str>>,
    },
    Error {
        error: Cow<'a, str>,
    },
    Done {
        /// Why the model ended the answer; absent if the model did not end it.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
}

/// Appends the frames of an event.
pub fn frames(buffer: &mut Vec<u8>, view: &View, previous: EventId, event: &Event) {
    let mark = SupersededMark::by(event, previous, view).map(|superseded| meta(view, Some(superseded)));
    let (first, second) = event_frames(view, event);
    let frames = [mark, first, second];
    let last = frames.iter().rposition(Option::is_some);
    for (index, frame) in frames.iter().enumerate() {
        let Some(frame) = frame else { continue };
        if Some(index) == last {
            writeln!(buffer, "id: {}", event.id).expect("a Vec takes every write");
        }
        buffer.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut *buffer, frame).expect("a frame is always valid JSON");
        buffer.extend_from_slice(b"\n\n");
    }
}

/// Returns the frames of the event without the superseded mark.
fn event_frames<'a>(view: &View, event: &'a Event) -> (Option<ChatFrame<'a>>, Option<ChatFrame<'a>>) {
    let frame = match visible_body(view, event) {
        EventBody::RunQueued(_) => meta(view, None),
        EventBody::MessageDelta(delta) => return (token(delta.text), None),
        EventBody::MessageCompleted(completed) => return (token(completed.message.content.into_stored().into()), None),
        EventBody::ToolCallStarted(call) => {
            ChatFrame::McpTool { tool: call.name, status: "started", result: None, error: None }
        }
        EventBody::ToolCallCompleted(call) => match call.error {
            Some(error) => {
                ChatFrame::McpTool { tool: call.name, status: "error", result: None, error: Some(error.message.into()) }
            }
            None => ChatFrame::McpTool {
                tool: call.name,
                status: "completed",
                result: Some(call.output.unwrap_or_default()),
                error: None,
            },
        },
        EventBody::RunFailed(end) => {
            return (
                Some(ChatFrame::Error { error: end.error.message.into() }),
                Some(ChatFrame::Done { finish_reason: None }),
            );
        }
        EventBody::RunCompleted(end) => ChatFrame::Done { finish_reason: end.finish_reason },
        EventBody::RunCancelled(_) => ChatFrame::Done { finish_reason: None },
        EventBody::AttemptStarted(_)
        | EventBody::StepStarted(_)
        | EventBody::StepCompleted(_)
        | EventBody::ReasoningDelta(_)
        | EventBody::ToolCallDelta(_)
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
        | EventBody::Unknown => return (None, None),
    };
    (Some(frame), None)
}

fn token(text: Cow<'_, str>) -> Option<ChatFrame<'_>> {
    (!text.is_empty()).then_some(ChatFrame::Token { token: text })
}

fn meta<'a>(view: &View, superseded: Option<SupersededMark>) -> ChatFrame<'a> {
    ChatFrame::Meta { conversation_id: view.conversation_id, run_id: view.run_id, superseded }
}
