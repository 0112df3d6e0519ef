//! The agent wire: one JSON object a frame, told apart by `type`, and `[DONE]`.
//!
//! `session` comes first. `done`, or `error` where the run has failed, comes last before `[DONE]`. What a run waits for is
//! not told, only that it waits.

use std::{borrow::Cow, io::Write as _};

use holdfast_shared::{event::Event, event_id::EventId, finish_reason::FinishReason};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    View,
    said::{Said, Superseded},
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Frame<'a> {
    Session {
        session: Session<'a>,
        #[serde(flatten)]
        superseded: Option<Superseded>,
    },
    AgentState {
        state: Cow<'a, str>,
        /// As the client has named it; null where another route has started the run.
        #[serde(rename = "contextType")]
        context_type: Option<&'a str>,
    },
    Text {
        content: Cow<'a, str>,
    },
    /// Clients of two generations look for it under two names.
    ToolCall {
        tool_call: Call<'a>,
        #[serde(rename = "toolCall")]
        same: Call<'a>,
    },
    ToolResult {
        result: Outcome<'a>,
    },
    ContextUsage {
        tokens: u64,
        budget: u64,
        compressed: bool,
    },
    Done {
        usage: Total,
        /// Why the model ended the answer; absent where it broke off.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
    Error {
        error: Cow<'a, str>,
    },
}

#[derive(Serialize)]
struct Session<'a> {
    id: Cow<'a, str>,
    conversation_id: Uuid,
    run_id: Uuid,
}

#[derive(Clone, Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    function: Function<'a>,
}

#[derive(Clone, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    /// JSON in a string, as OpenAI has it.
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    tool_name: Cow<'a, str>,
    tool_call_id: Cow<'a, str>,
}

#[derive(Serialize)]
struct Total {
    total_tokens: u64,
}

/// Appends what an event becomes.
pub fn frames(buffer: &mut Vec<u8>, view: &View, before: EventId, event: &Event) {
    let said = Said::by(event, view.shows);
    let is_end = matches!(said, Said::Failed(_) | Said::Ended(..));
    let mark = Superseded::by(event, before, view).map(|superseded| session(view, Some(superseded)));
    let (first, second) = own(view, said);
    let mut frames = [mark, first, second].into_iter().flatten().peekable();
    while let Some(frame) = frames.next() {
        if frames.peek().is_none() && !is_end {
            id(buffer, event);
        }
        buffer.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut *buffer, &frame).expect("a frame is always valid JSON");
        buffer.extend_from_slice(b"\n\n");
    }
    if is_end {
        id(buffer, event);
        buffer.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn id(buffer: &mut Vec<u8>, event: &Event) {
    writeln!(buffer, "id: {}", event.id).expect("a Vec takes every write");
}

/// The frames of the event itself.
fn own<'a>(view: &'a View, said: Said<'a>) -> (Option<Frame<'a>>, Option<Frame<'a>>) {
    let only = match said {
        Said::Begun => session(view, None),
        Said::Thinking => agent_state(view, "thinking".into()),
        Said::State(state) => agent_state(view, state),
        Said::Text(content) if content.is_empty() => return (None, None),
        Said::Text(content) => Frame::Text { content },
        Said::Called { id, tool, input } => tool_call(id, tool, input),
        Said::Answered { id, tool, refused, outcome } => {
            // Each result has its call, also where nobody was called.
            let call = refused.map(|input| tool_call(id.clone(), tool.clone(), input));
            return (call, Some(Frame::ToolResult { result: result(id, tool, outcome) }));
        }
        Said::Context { tokens, budget, compressed } => Frame::ContextUsage { tokens, budget, compressed },
        Said::Failed(error) => Frame::Error { error },
        Said::Ended(usage, finish_reason) => {
            let total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            Frame::Done { usage: Total { total_tokens }, finish_reason }
        }
        Said::Nothing => return (None, None),
    };
    (Some(only), None)
}

fn session(view: &View, superseded: Option<Superseded>) -> Frame<'_> {
    let named = view.context.as_ref().and_then(|context| context.session_id.as_deref());
    let id = named.map_or_else(|| view.conversation_id.to_string().into(), Cow::Borrowed);
    Frame::Session { session: Session { id, conversation_id: view.conversation_id, run_id: view.run_id }, superseded }
}

fn agent_state<'a>(view: &'a View, state: Cow<'a, str>) -> Frame<'a> {
    Frame::AgentState { state, context_type: view.context.as_ref().map(|context| context.context_type.as_str()) }
}

fn tool_call<'a>(id: Cow<'a, str>, name: Cow<'a, str>, arguments: &'a str) -> Frame<'a> {
    let call = Call { id, function: Function { name, arguments } };
    Frame::ToolCall { tool_call: call.clone(), same: call }
}

/// What a tool has answered, which is JSON where its text is.
fn result<'a>(
    tool_call_id: Cow<'a, str>,
    tool_name: Cow<'a, str>,
    outcome: Result<Cow<'a, str>, Cow<'a, str>>,
) -> Outcome<'a> {
    let (data, error) = match outcome {
        Ok(output) => (Some(serde_json::from_str(&output).unwrap_or_else(|_| output.into())), None),
        Err(error) => (None, Some(error)),
    };
    Outcome { success: error.is_none(), data, error, tool_name, tool_call_id }
}
