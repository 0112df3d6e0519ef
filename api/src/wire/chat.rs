//! The chat wire: one JSON object a frame, told apart by `type`: `meta`, `token`, `mcp_tool`, `error`, `done`.
//!
//! `meta` comes first and `done` last, however the run ends. Strict clients know these five, so there is no sixth: while a
//! run waits for an answer, nothing is shown.

use std::{borrow::Cow, io::Write as _};

use holdfast_shared::{event::Event, event_id::EventId, finish_reason::FinishReason};
use serde::Serialize;
use uuid::Uuid;

use super::{
    View,
    said::{Said, Superseded},
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Frame<'a> {
    Meta {
        conversation_id: Uuid,
        run_id: Uuid,
        #[serde(flatten)]
        superseded: Option<Superseded>,
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
        /// Why the model ended the answer; absent where it broke off.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
}

/// Appends what an event becomes.
pub fn frames(buffer: &mut Vec<u8>, view: &View, before: EventId, event: &Event) {
    let mark = Superseded::by(event, before, view).map(|superseded| meta(view, Some(superseded)));
    let (first, second) = own(view, event);
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

/// The frames of the event itself.
fn own<'a>(view: &View, event: &'a Event) -> (Option<Frame<'a>>, Option<Frame<'a>>) {
    match Said::by(event, view.shows) {
        Said::Begun => (Some(meta(view, None)), None),
        Said::Text(token) if token.is_empty() => (None, None),
        Said::Text(token) => (Some(Frame::Token { token }), None),
        Said::Called { tool, .. } => {
            (Some(Frame::McpTool { tool, status: "started", result: None, error: None }), None)
        }
        Said::Answered { tool, outcome, .. } => {
            let (status, result, error) = match outcome {
                Ok(output) => ("completed", Some(output), None),
                Err(message) => ("error", None, Some(message)),
            };
            (Some(Frame::McpTool { tool, status, result, error }), None)
        }
        Said::Failed(error) => (Some(Frame::Error { error }), Some(Frame::Done { finish_reason: None })),
        Said::Ended(_, finish_reason) => (Some(Frame::Done { finish_reason }), None),
        Said::Thinking | Said::State(_) | Said::Context { .. } | Said::Nothing => (None, None),
    }
}

fn meta<'a>(view: &View, superseded: Option<Superseded>) -> Frame<'a> {
    Frame::Meta { conversation_id: view.conversation_id, run_id: view.run_id, superseded }
}
