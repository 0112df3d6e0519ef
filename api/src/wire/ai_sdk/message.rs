//! A UI message: the fold of a message's chunks, as the AI SDK's client makes it. The history of a chat has these
//! messages.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    approval::ApprovalStatus,
    event::{ApprovalResolved, Event, EventBody, EventKind},
    message::Version,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Chunk,
    chunk::{UiMetadata, UiTool},
    chunks,
};
use crate::wire::{LogPosition, View};

/// `UIMessage` of the AI SDK.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct UiMessage {
    pub id: String,
    pub role: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    #[schema(value_type = Vec<Object>)]
    pub parts: Vec<Value>,
    /// Whether the message has failed, because a client reads nothing after an error.
    #[serde(skip)]
    has_failed: bool,
    /// When the open reasoning began, in ms since the Unix epoch.
    #[serde(skip)]
    reasoning_since: Option<i64>,
}

impl UiMessage {
    pub fn new(id: String, role: &'static str, parts: Vec<Value>) -> Self {
        Self { id, role, metadata: Map::new(), parts, has_failed: false, reasoning_since: None }
    }

    /// Returns a stored message, without the chunks of its stream.
    pub fn of_stored(created_at: DateTime<Utc>, id: String, role: &'static str, parts: Vec<Value>) -> Self {
        let mut message = Self::new(id, role, parts);
        message.merge(json!(UiMetadata { created_at: Some(created_at), ..UiMetadata::default() }));
        message
    }

    /// Adds the number of this version, if the message has several.
    pub fn with_version(mut self, version: Option<&Version>) -> Self {
        if let Some(version) = version {
            self.merge(json!({"version": version}));
        }
        self
    }

    /// Applies the next event of the message.
    pub fn push(&mut self, view: &View, position: LogPosition, event: &Event) {
        for chunk in chunks(view, position, event) {
            self.time_reasoning(&chunk, event.at_ms);
            self.apply(chunk);
        }
        if let (EventKind::ApprovalResolved, EventBody::ApprovalResolved(resolved)) = (event.kind(), event.body()) {
            self.resolve(resolved);
        }
    }

    /// Keeps the duration of the reasoning, which a client of the history cannot measure.
    fn time_reasoning(&mut self, chunk: &Chunk, at_ms: i64) {
        match chunk {
            Chunk::ReasoningStart { .. } => self.reasoning_since = Some(at_ms),
            Chunk::ReasoningEnd { .. } => {
                if let (Some(since), Some(part)) = (self.reasoning_since.take(), self.newest("reasoning")) {
                    part.insert("providerMetadata".into(), json!({"holdfast": {"durationMs": (at_ms - since).max(0)}}));
                }
            }
            _ => {}
        }
    }

    pub(super) fn apply(&mut self, chunk: Chunk) {
        if self.has_failed {
            return;
        }
        match chunk {
            Chunk::Start { message_id, message_metadata } => {
                self.id = message_id.to_string();
                self.merge(json!(message_metadata));
            }
            Chunk::Finish { message_metadata, .. } => self.merge(json!(message_metadata)),
            Chunk::MessageMetadata { message_metadata } => self.merge(json!(message_metadata)),
            Chunk::StartStep => self.parts.push(json!({"type": "step-start"})),
            Chunk::TextStart { .. } => self.parts.push(json!({"type": "text", "text": "", "state": "streaming"})),
            Chunk::ReasoningStart { id } => {
                self.parts.push(json!({"type": "reasoning", "id": id, "text": "", "state": "streaming"}));
            }
            Chunk::TextDelta { delta, .. } => self.append("text", &delta),
            Chunk::ReasoningDelta { delta, .. } => self.append("reasoning", &delta),
            Chunk::TextEnd { .. } => self.close("text"),
            Chunk::ReasoningEnd { .. } => self.close("reasoning"),
            Chunk::ToolInputStart { tool } => self.tool(&tool, json!({"state": "input-streaming"})),
            Chunk::ToolInputDelta { tool_call_id, input_text_delta } => {
                if let Some(part) = self.call(&tool_call_id) {
                    let raw = part.get("rawInput").and_then(Value::as_str).unwrap_or_default();
                    let raw = format!("{raw}{input_text_delta}");
                    part.insert("rawInput".into(), raw.into());
                }
            }
            Chunk::ToolInputAvailable { tool, input, provider_executed } => {
                let mut state = json!({"state": "input-available", "input": input});
                if provider_executed {
                    state["providerExecuted"] = true.into();
                }
                self.tool(&tool, state);
            }
            Chunk::ToolApprovalRequest { approval_id, tool_call_id } => {
                self.change(&tool_call_id, json!({"state": "approval-requested", "approval": {"id": approval_id}}));
            }
            Chunk::ToolOutputAvailable { tool_call_id, output, .. } => {
                self.change(&tool_call_id, json!({"state": "output-available", "output": output}));
            }
            Chunk::ToolOutputError { tool_call_id, error_text, .. } => {
                self.change(&tool_call_id, json!({"state": "output-error", "errorText": error_text}));
            }
            Chunk::ToolOutputDenied { tool_call_id } => self.change(&tool_call_id, json!({"state": "output-denied"})),
            Chunk::DataContext { .. }
            | Chunk::DataCall { .. }
            | Chunk::DataQuestion { .. }
            | Chunk::DataWarning { .. }
            | Chunk::DataAttempt { .. } => {
                self.data(json!(chunk));
            }
            Chunk::Error { .. } => self.has_failed = true,
            Chunk::DataState { .. } | Chunk::FinishStep | Chunk::Abort => {}
        }
    }

    fn merge(&mut self, metadata: Value) {
        if let Value::Object(fields) = metadata {
            self.metadata.extend(fields);
        }
    }

    /// Returns the newest part of a type.
    fn newest(&mut self, kind: &str) -> Option<&mut Map<String, Value>> {
        self.parts.iter_mut().rev().filter_map(Value::as_object_mut).find(|part| part["type"] == kind)
    }

    fn append(&mut self, kind: &str, delta: &str) {
        if let Some(Value::String(text)) = self.newest(kind).and_then(|part| part.get_mut("text")) {
            text.push_str(delta);
        }
    }

    fn close(&mut self, kind: &str) {
        if let Some(part) = self.newest(kind) {
            part.insert("state".into(), "done".into());
        }
    }

    fn call(&mut self, tool_call_id: &str) -> Option<&mut Map<String, Value>> {
        let parts = self.parts.iter_mut().rev().filter_map(Value::as_object_mut);
        parts.into_iter().find(|part| part.get("toolCallId").is_some_and(|id| id == tool_call_id))
    }

    fn change(&mut self, tool_call_id: &str, change: Value) {
        if let (Some(part), Value::Object(fields)) = (self.call(tool_call_id), change) {
            part.extend(fields);
        }
    }

    /// Sets the state of a call, and adds its part if there is none.
    fn tool(&mut self, tool: &UiTool, state: Value) {
        if self.call(&tool.tool_call_id).is_none() {
            self.parts.push(if tool.dynamic {
                json!({"type": "dynamic-tool", "toolName": tool.tool_name, "toolCallId": tool.tool_call_id})
            } else {
                json!({"type": format!("tool-{}", tool.tool_name), "toolCallId": tool.tool_call_id})
            });
        }
        if let Some(part) = self.call(&tool.tool_call_id) {
            part.remove("rawInput");
        }
        self.change(&tool.tool_call_id, state);
    }

    fn data(&mut self, part: Value) {
        let same = |other: &&mut Value| other["type"] == part["type"] && other["id"] == part["id"];
        match self.parts.iter_mut().find(same).filter(|_| part["id"].is_string()) {
            Some(existing) => *existing = part,
            None => self.parts.push(part),
        }
    }

    /// Adds the decision, which the answering client knows without a chunk.
    fn resolve(&mut self, resolved: ApprovalResolved<'_>) {
        let mut approval =
            json!({"id": resolved.approval_id, "approved": resolved.decision == ApprovalStatus::Approved});
        if let Some(reason) = resolved.reason {
            approval["reason"] = reason.into_owned().into();
        }
        self.change(&resolved.call_id, json!({"approval": approval}));
        if resolved.edited_input.is_some() {
            self.mark_edited(resolved.approval_id);
        }
    }

    /// Marks the `data-question` part, because the SDK's own approval has no field for an edited input.
    fn mark_edited(&mut self, approval_id: Uuid) {
        let id = approval_id.to_string();
        let question = self.parts.iter_mut().find(|part| part["type"] == "data-question" && part["id"] == id.as_str());
        if let Some(question) = question {
            question["data"]["edited"] = true.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_shared::{
        approval::ApprovalKind,
        event::{ApprovalRequested, MessageDelta, ReasoningDelta},
    };

    use super::*;
    use crate::wire::{Detail, Wire};

    /// Returns the message of these events, each with its time in seconds.
    fn message_of(events: &[(i64, EventBody<'_>)]) -> UiMessage {
        let created_at = DateTime::UNIX_EPOCH;
        let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::max(), Uuid::nil());
        let detail = Detail::All;
        let view = View { wire: Wire::AiSdk, detail, run_id, conversation_id, message_id, created_at, context: None };
        let (mut message, mut position) = (UiMessage::new(String::new(), "assistant", Vec::new()), LogPosition::START);
        for (index, (second, body)) in events.iter().enumerate() {
            let at = DateTime::from_timestamp(*second, 0).unwrap();
            let event = Event::new(format!("1-{}", index + 1).parse().unwrap(), at, body);
            message.push(&view, position, &event);
            position = LogPosition::after(&event);
        }
        message
    }

    fn newest<'a>(message: &'a UiMessage, kind: &str) -> &'a Value {
        message.parts.iter().rfind(|part| part["type"] == kind).unwrap()
    }

    #[test]
    fn the_history_has_the_duration_of_the_reasoning() {
        let message_id = Uuid::nil();
        let reasoning =
            |text: &'static str| EventBody::ReasoningDelta(ReasoningDelta { message_id, text: text.into() });
        let text = EventBody::MessageDelta(MessageDelta { message_id, text: "Six.".into() });
        let message = message_of(&[(10, reasoning("The tide")), (11, reasoning(" turns")), (13, text)]);
        assert_eq!(newest(&message, "reasoning")["providerMetadata"], json!({"holdfast": {"durationMs": 3_000}}));
    }

    #[test]
    fn the_history_marks_an_edited_input() {
        let (approval_id, call_id) = (Uuid::max(), "call");
        let requested = EventBody::ApprovalRequested(ApprovalRequested {
            approval_id,
            call_id: call_id.into(),
            kind: ApprovalKind::Policy,
            name: "bank__pay".into(),
            input: json!({"amount": 10}).into(),
            expires_at: DateTime::UNIX_EPOCH,
        });
        let resolved = |edited_input| {
            EventBody::ApprovalResolved(ApprovalResolved {
                base: None,
                approval_id,
                call_id: call_id.into(),
                decision: ApprovalStatus::Approved,
                reason: None,
                edited_input,
            })
        };
        let edited = message_of(&[(1, requested.clone()), (2, resolved(Some(json!({"amount": 1}).into())))]);
        assert_eq!(newest(&edited, "data-question")["data"]["edited"], true);
        let unchanged = message_of(&[(1, requested), (2, resolved(None))]);
        assert_eq!(newest(&unchanged, "data-question")["data"]["edited"], Value::Null);
    }
}
