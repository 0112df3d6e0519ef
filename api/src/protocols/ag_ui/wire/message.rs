//! The messages of a thread, as a client has them that has followed all its runs.

use holdfast_shared::{
    file::{ContentPart, parts_of_message},
    message::{Content, Message, Role},
    parts::{CallProgress, MessagePart, MessageParts},
    storage::{StoredAnswer, StoredCall},
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::event::AgUiEvent;

const ASSISTANT: &str = "assistant";
const REASONING: &str = "reasoning";
const TOOL: &str = "tool";

/// A message of the protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiMessage {
    id: String,
    /// `user`, `system`, `assistant`, `reasoning` or `tool`.
    role: &'static str,
    content: AgUiContent,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<AgUiToolCall>,
    /// The call whose result a message of a tool has.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum AgUiContent {
    Text(String),
    /// The texts and files of a user's message.
    Parts(Vec<Value>),
}

impl AgUiMessage {
    fn new(role: &'static str, id: impl Into<String>, text: impl Into<String>) -> Self {
        let content = AgUiContent::Text(text.into());
        Self { id: id.into(), role, content, tool_calls: Vec::new(), tool_call_id: None }
    }

    /// Returns a reasoning without a text.
    pub fn reasoning(id: String) -> Self {
        Self::new(REASONING, id, "")
    }

    pub fn is_reasoning(&self) -> bool {
        self.role == REASONING
    }

    /// Returns about how many bytes the message takes.
    pub fn bytes(&self) -> usize {
        let content = match &self.content {
            AgUiContent::Text(text) => text.len(),
            AgUiContent::Parts(parts) => parts.iter().map(|part| part.to_string().len()).sum(),
        };
        content + self.tool_calls.iter().map(|call| call.function.arguments.len()).sum::<usize>()
    }

    fn of_tool(call_id: &str, result: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.to_owned()), ..Self::new(TOOL, result_id(call_id), result) }
    }

    fn push_text(&mut self, more: &str) {
        if let AgUiContent::Text(text) = &mut self.content {
            text.push_str(more);
        }
    }
}

/// A call in a message of the assistant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgUiToolCall {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: AgUiFunction,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct AgUiFunction {
    name: String,
    arguments: String,
}

/// The ids of an answer's messages. A text after a call begins a new message, so the client shows both in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageIds {
    answer: Uuid,
    texts: u32,
    reasonings: u32,
    has_calls: bool,
}

impl MessageIds {
    pub const fn of_answer(answer: Uuid) -> Self {
        Self { answer, texts: 1, reasonings: 0, has_calls: false }
    }

    /// Returns the id of the message that the next call belongs to.
    pub fn for_call(&mut self) -> String {
        self.has_calls = true;
        self.current()
    }

    /// Returns the id of the message that the next text belongs to.
    pub fn for_text(&mut self) -> String {
        self.texts += u32::from(std::mem::take(&mut self.has_calls));
        self.current()
    }

    /// Returns the id of the newest message with a text or a call.
    pub fn current(&self) -> String {
        match self.texts {
            1 => self.answer.to_string(),
            texts => format!("{}.{texts}", self.answer),
        }
    }

    /// Returns the id of the next reasoning.
    pub fn for_reasoning(&mut self) -> String {
        self.reasonings += 1;
        self.current_reasoning()
    }

    /// Returns whether the answer has a reasoning.
    pub const fn has_reasoning(&self) -> bool {
        self.reasonings > 0
    }

    /// Returns the id of the newest reasoning.
    pub fn current_reasoning(&self) -> String {
        format!("{}.r{}", self.answer, self.reasonings)
    }
}

/// Returns the id of the message with a call's result.
pub fn result_id(call_id: &str) -> String {
    format!("{call_id}.result")
}

/// Applies an event as a client does.
pub fn apply(messages: &mut Vec<AgUiMessage>, event: &AgUiEvent<'_>) {
    match event {
        AgUiEvent::TextMessageStart { message_id, .. } => drop(message_of(messages, message_id, ASSISTANT)),
        AgUiEvent::TextMessageContent { message_id, delta } => {
            message_of(messages, message_id, ASSISTANT).push_text(delta);
        }
        AgUiEvent::ReasoningMessageStart { message_id, .. } => drop(message_of(messages, message_id, REASONING)),
        AgUiEvent::ReasoningMessageContent { message_id, delta } => {
            message_of(messages, message_id, REASONING).push_text(delta);
        }
        AgUiEvent::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
            let call = tool_call(tool_call_id, tool_call_name, String::new());
            message_of(messages, parent_message_id, ASSISTANT).tool_calls.push(call);
        }
        AgUiEvent::ToolCallArgs { tool_call_id, delta } => {
            let calls = messages.iter_mut().rev().flat_map(|message| &mut message.tool_calls);
            for call in calls.filter(|call| call.id == *tool_call_id) {
                call.function.arguments.push_str(delta);
            }
        }
        AgUiEvent::ToolCallResult { tool_call_id, content, .. } => insert_result(messages, tool_call_id, content),
        AgUiEvent::MessagesSnapshot { messages: all } => messages.clone_from(all),
        AgUiEvent::RunStarted { .. }
        | AgUiEvent::RunFinished { .. }
        | AgUiEvent::RunError { .. }
        | AgUiEvent::StepStarted { .. }
        | AgUiEvent::StepFinished { .. }
        | AgUiEvent::TextMessageEnd { .. }
        | AgUiEvent::ReasoningStart { .. }
        | AgUiEvent::ReasoningMessageEnd { .. }
        | AgUiEvent::ReasoningEnd { .. }
        | AgUiEvent::ToolCallEnd { .. }
        | AgUiEvent::StateDelta { .. }
        | AgUiEvent::SubagentStarted { .. }
        | AgUiEvent::SubagentFinished { .. }
        | AgUiEvent::SubagentError { .. }
        | AgUiEvent::Custom { .. } => {}
    }
}

/// Returns the message with an id, which is a new one at the end if there is none.
fn message_of<'a>(messages: &'a mut Vec<AgUiMessage>, id: &str, role: &'static str) -> &'a mut AgUiMessage {
    let place = messages.iter().rposition(|message| message.id == id).unwrap_or_else(|| {
        messages.push(AgUiMessage::new(role, id, ""));
        messages.len() - 1
    });
    &mut messages[place]
}

/// Inserts a result after the message of its call and the results that are there.
fn insert_result(messages: &mut Vec<AgUiMessage>, call_id: &str, result: &str) {
    let has_call = |message: &AgUiMessage| message.tool_calls.iter().any(|call| call.id == call_id);
    let place = messages.iter().rposition(has_call).map_or(messages.len(), |owner| {
        owner + 1 + messages[owner + 1..].iter().take_while(|message| message.role == TOOL).count()
    });
    messages.insert(place, AgUiMessage::of_tool(call_id, result));
}

fn tool_call(id: &str, name: &str, arguments: String) -> AgUiToolCall {
    AgUiToolCall { id: id.into(), kind: "function", function: AgUiFunction { name: name.into(), arguments } }
}

/// Returns the messages of an ended run's answer.
pub fn of_answer(answer: &StoredAnswer, parts: &MessageParts, text: &str) -> Vec<AgUiMessage> {
    let mut messages = Vec::new();
    let (mut ids, mut rest) = (MessageIds::of_answer(answer.message_id), text.chars());
    let call_of = |id: &str| answer.calls.iter().find(|call| call.call_id == id);
    for part in &parts.parts {
        match part {
            MessagePart::Text { chars } => {
                let text: String = rest.by_ref().take(*chars).collect();
                message_of(&mut messages, &ids.for_text(), ASSISTANT).push_text(&text);
            }
            MessagePart::Reasoning { text, .. } => {
                message_of(&mut messages, &ids.for_reasoning(), REASONING).push_text(text);
            }
            MessagePart::Call(call) => {
                let arguments = match &call.state {
                    CallProgress::Incomplete(written) => written.clone(),
                    _ => call_of(&call.call_id).map(|call| call.input().to_string()).unwrap_or_default(),
                };
                let call = tool_call(&call.call_id, &call.name, arguments);
                message_of(&mut messages, &ids.for_call(), ASSISTANT).tool_calls.push(call);
            }
            MessagePart::CallEnd { call_id } => {
                insert_result(&mut messages, call_id, &call_of(call_id).map(result_of).unwrap_or_default());
            }
            MessagePart::Step
            | MessagePart::Question(_)
            | MessagePart::Context { .. }
            | MessagePart::Warning { .. }
            | MessagePart::Source { .. }
            | MessagePart::Dropped { .. }
            | MessagePart::Questions { .. }
            | MessagePart::Unknown => {}
        }
    }
    messages
}

fn result_of(call: &StoredCall) -> String {
    call.error().map(|error| error.message).or_else(|| call.output.clone()).unwrap_or_default()
}

/// Returns a message that is not the answer of a run with parts. `files` is the address of a file, without its id.
pub fn of_stored(message: &Message, files: &str) -> AgUiMessage {
    let id = message.client_id.clone().unwrap_or_else(|| message.id.to_string());
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => ASSISTANT,
        Role::System => "system",
    };
    let text = match &message.content {
        Content::Text(text) => text.clone(),
        Content::BriefingCard(card) => json!(card).to_string(),
    };
    if message.attachments.is_empty() {
        return AgUiMessage::new(role, id, text);
    }
    let part = |part: ContentPart<'_>| match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::File(file) => {
            let kind = if file.media_type.starts_with("image/") { "image" } else { "document" };
            let address = format!("{files}{}", file.file_id);
            json!({"type": kind, "source": {"type": "url", "value": address, "mimeType": file.media_type}})
        }
    };
    let parts = parts_of_message(&text, &message.attachments).into_iter().map(part).collect();
    AgUiMessage { content: AgUiContent::Parts(parts), ..AgUiMessage::new(role, id, "") }
}
