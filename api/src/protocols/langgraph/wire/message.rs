//! Messages as LangChain serialises them, and the list of a run's messages.

use holdfast_shared::{
    file::{ContentPart, parts_of_message},
    message::{Content, Message, Role},
    parts::{CallProgress, MessagePart, MessageParts},
    storage::{StoredAnswer, StoredCall},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A message of a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum LangMessage {
    /// A message that no model wrote, serialised.
    Stored(Value),
    Ai(AiMessage),
    Tool {
        call_id: String,
        name: String,
        content: String,
        is_error: bool,
    },
}

/// A model's message: its output in one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AiMessage {
    pub id: String,
    content: String,
    reasoning: String,
    calls: Vec<LangCall>,
}

#[derive(Debug, Clone, PartialEq)]
struct LangCall {
    id: String,
    name: String,
    /// JSON text, perhaps incomplete.
    arguments: String,
}

impl LangMessage {
    /// Returns the message as JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Stored(value) => value.clone(),
            Self::Ai(message) => message.to_value(),
            Self::Tool { call_id, name, content, is_error } => json!({
                "type": "tool", "id": result_id(call_id), "tool_call_id": call_id, "name": name, "content": content,
                "status": if *is_error { "error" } else { "success" }, "artifact": null,
                "additional_kwargs": {}, "response_metadata": {},
            }),
        }
    }
}

impl AiMessage {
    fn to_value(&self) -> Value {
        let (mut calls, mut invalid) = (Vec::new(), Vec::new());
        for LangCall { id, name, arguments } in &self.calls {
            match serde_json::from_str::<Map<String, Value>>(arguments) {
                Ok(args) => calls.push(json!({"name": name, "args": args, "id": id, "type": "tool_call"})),
                Err(_) => invalid.push(json!({
                    "name": name, "args": arguments, "id": id, "error": null, "type": "invalid_tool_call"
                })),
            }
        }
        json!({
            "type": "ai", "id": self.id, "content": self.content, "tool_calls": calls, "invalid_tool_calls": invalid,
            "additional_kwargs": with_reasoning(&self.reasoning), "response_metadata": {}, "usage_metadata": null,
        })
    }
}

/// Returns the additional fields of a message with a reasoning.
fn with_reasoning(reasoning: &str) -> Value {
    if reasoning.is_empty() { json!({}) } else { json!({"reasoning_content": reasoning}) }
}

/// Returns the id of a message of the model: the number counts those of the answer, from 1.
pub fn message_id(answer: Uuid, number: u32) -> String {
    if number > 1 { format!("{answer}.{number}") } else { answer.to_string() }
}

/// Returns the id of the message with a call's result.
pub fn result_id(call_id: &str) -> String {
    format!("{call_id}.result")
}

/// The messages of one run's answer. Each step with an output has a message of the model, and the results of its calls follow.
#[derive(Debug, Clone)]
pub struct AnswerMessages {
    answer: Uuid,
    messages: Vec<LangMessage>,
    /// The number of messages of the model.
    of_model: u32,
    /// Whether the next output of the model begins a message.
    is_between: bool,
}

impl AnswerMessages {
    pub const fn of_answer(answer: Uuid) -> Self {
        Self { answer, messages: Vec::new(), of_model: 0, is_between: true }
    }

    /// Returns the messages of an ended run's answer.
    pub fn of_stored(answer: &StoredAnswer, parts: &MessageParts, text: &str) -> Vec<LangMessage> {
        let (mut list, mut rest) = (Self::of_answer(answer.message_id), text.chars());
        let call_of = |id: &str| answer.calls.iter().find(|call| call.call_id == id);
        for part in &parts.parts {
            match part {
                MessagePart::Step => list.begin_step(),
                MessagePart::Text { chars } => {
                    let text: String = rest.by_ref().take(*chars).collect();
                    list.push_text(&text);
                }
                MessagePart::Reasoning { text, .. } => list.push_reasoning(text),
                MessagePart::Call(call) => {
                    let arguments = match &call.state {
                        CallProgress::Incomplete(written) => written.clone(),
                        _ => call_of(&call.call_id).map(|call| call.input().to_string()).unwrap_or_default(),
                    };
                    list.set_call(&call.call_id, &call.name, arguments);
                }
                MessagePart::CallEnd { call_id } => {
                    let (content, is_error) = call_of(call_id).map(result_of).unwrap_or_default();
                    list.push_result(call_id, "", content, is_error);
                }
                MessagePart::Question(_)
                | MessagePart::Context { .. }
                | MessagePart::Warning { .. }
                | MessagePart::Source { .. }
                | MessagePart::Dropped { .. }
                | MessagePart::Questions { .. }
                | MessagePart::Unknown => {}
            }
        }
        list.messages
    }

    pub fn into_messages(self) -> Vec<LangMessage> {
        self.messages
    }

    /// Returns the model's newest message.
    pub fn newest(&self) -> Option<&LangMessage> {
        self.messages.iter().rev().find(|message| matches!(message, LangMessage::Ai(_)))
    }

    pub fn begin_step(&mut self) {
        self.is_between = true;
    }

    pub fn push_text(&mut self, text: &str) {
        self.current().content.push_str(text);
    }

    pub fn push_reasoning(&mut self, text: &str) {
        self.current().reasoning.push_str(text);
    }

    /// Appends to the arguments of a call, and begins it if it is new.
    pub fn push_arguments(&mut self, call_id: &str, name: Option<&str>, text: &str) {
        if let Some(call) = self.call(call_id) {
            call.arguments.push_str(text);
        } else if let Some(name) = name {
            let (id, name) = (call_id.to_owned(), name.to_owned());
            self.current().calls.push(LangCall { id, name, arguments: text.to_owned() });
        }
    }

    /// Sets the complete arguments of a call.
    pub fn set_call(&mut self, call_id: &str, name: &str, arguments: String) {
        match self.call(call_id) {
            Some(call) => call.arguments = arguments,
            None => self.push_arguments(call_id, Some(name), &arguments),
        }
    }

    /// Adds the result of a call after the message of the call and the results that are there.
    pub fn push_result(&mut self, call_id: &str, name: &str, content: String, is_error: bool) {
        let has_call = |message: &LangMessage| matches!(message, LangMessage::Ai(ai) if ai.has(call_id));
        let owner = self.messages.iter().rposition(has_call);
        let name = match owner.map(|owner| &self.messages[owner]) {
            Some(LangMessage::Ai(ai)) => ai.name_of(call_id),
            _ => name.to_owned(),
        };
        let place = owner.map_or(self.messages.len(), |owner| {
            let results = self.messages[owner + 1..].iter();
            owner + 1 + results.take_while(|message| matches!(message, LangMessage::Tool { .. })).count()
        });
        self.messages.insert(place, LangMessage::Tool { call_id: call_id.to_owned(), name, content, is_error });
    }

    /// Returns whether any message has a text.
    pub fn has_text(&self) -> bool {
        self.messages.iter().any(|message| matches!(message, LangMessage::Ai(ai) if !ai.content.is_empty()))
    }

    /// Returns the number of the model's messages.
    pub const fn of_model(&self) -> u32 {
        self.of_model
    }

    /// Returns whether the model's next output begins a message.
    pub const fn is_between(&self) -> bool {
        self.is_between
    }

    /// Returns the message that the model writes.
    fn current(&mut self) -> &mut AiMessage {
        if std::mem::take(&mut self.is_between) || self.newest().is_none() {
            self.of_model += 1;
            let id = message_id(self.answer, self.of_model);
            self.messages.push(LangMessage::Ai(AiMessage { id, ..AiMessage::default() }));
        }
        let newest = self.messages.iter_mut().rev().find_map(|message| match message {
            LangMessage::Ai(message) => Some(message),
            _ => None,
        });
        newest.expect("a message was just added")
    }

    fn call(&mut self, call_id: &str) -> Option<&mut LangCall> {
        let of_model = self.messages.iter_mut().rev().filter_map(|message| match message {
            LangMessage::Ai(message) => Some(message),
            _ => None,
        });
        of_model.flat_map(|message| &mut message.calls).find(|call| call.id == call_id)
    }
}

impl AiMessage {
    fn has(&self, call_id: &str) -> bool {
        self.calls.iter().any(|call| call.id == call_id)
    }

    fn name_of(&self, call_id: &str) -> String {
        self.calls.iter().find(|call| call.id == call_id).map(|call| call.name.clone()).unwrap_or_default()
    }
}

/// Returns the text of a call's outcome, and whether it is an error.
fn result_of(call: &StoredCall) -> (String, bool) {
    match call.error() {
        Some(error) => (error.message, true),
        None => (call.output.clone().unwrap_or_default(), false),
    }
}

/// Returns a message that is not the answer of a run with parts. `files` is the address of a file, without its id.
pub fn of_stored(message: &Message, files: &str) -> LangMessage {
    let id = message.client_id.clone().unwrap_or_else(|| message.id.to_string());
    let text = match &message.content {
        Content::Text(text) => text.clone(),
        Content::BriefingCard(card) => json!(card).to_string(),
    };
    let kind = match message.role {
        Role::User => "human",
        Role::Assistant => return LangMessage::Ai(AiMessage { id, content: text, ..AiMessage::default() }),
        Role::System => "system",
    };
    let content = if message.attachments.is_empty() {
        Value::String(text)
    } else {
        let block = |part: ContentPart<'_>| match part {
            ContentPart::Text(text) => json!({"type": "text", "text": text}),
            ContentPart::File(file) => {
                let kind = if file.media_type.starts_with("image/") { "image" } else { "file" };
                let url = format!("{files}{}", file.file_id);
                json!({"type": kind, "url": url, "mime_type": file.media_type, "metadata": {"filename": file.name}})
            }
        };
        parts_of_message(&text, &message.attachments).into_iter().map(block).collect()
    };
    LangMessage::Stored(
        json!({"type": kind, "id": id, "content": content, "name": null, "additional_kwargs": {}, "response_metadata": {}}),
    )
}
