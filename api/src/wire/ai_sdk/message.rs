//! A UI message: what the AI SDK's client has made of a message's chunks, so that a page can be given what it would have seen.

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
    chunk::{Metadata, UiTool},
    chunks,
};
use crate::wire::{Before, View};

/// `UIMessage`, as the AI SDK has it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct UiMessage {
    pub id: String,
    pub role: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    #[schema(value_type = Vec<Object>)]
    pub parts: Vec<Value>,
    /// Whether it has failed: a client reads nothing behind an error.
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

    /// One whose stream is not at hand.
    pub fn said_at(created_at: DateTime<Utc>, id: String, role: &'static str, parts: Vec<Value>) -> Self {
        let mut message = Self::new(id, role, parts);
        message.merge(json!(Metadata { created_at: Some(created_at), ..Metadata::default() }));
        message
    }

    /// Says which of several versions it is.
    pub fn with_version(mut self, version: Option<&Version>) -> Self {
        if let Some(version) = version {
            self.merge(json!({"version": version}));
        }
        self
    }

    /// Applies the next event that is part of the message.
    pub fn push(&mut self, view: &View, before: Before, event: &Event) {
        for chunk in chunks(view, before, event) {
            self.time_reasoning(&chunk, event.at_ms);
            self.apply(chunk);
        }
        if let (EventKind::ApprovalResolved, EventBody::ApprovalResolved(resolved)) = (event.kind(), event.body()) {
            self.resolve(resolved);
        }
    }

    /// Keeps how long the model reasoned, which a client that comes later cannot measure.
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

    /// The newest part of a type.
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

    /// What is known of a call, in place of what was known before.
    fn tool(&mut self, tool: &UiTool, state: Value) {
        if self.call(&tool.tool_call_id).is_none() {
            self.parts.push(match tool.dynamic {
                true => {
                    json!({"type": "dynamic-tool", "toolName": tool.tool_name, "toolCallId": tool.tool_call_id})
                }
                false => json!({"type": format!("tool-{}", tool.tool_name), "toolCallId": tool.tool_call_id}),
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
            Some(known) => *known = part,
            None => self.parts.push(part),
        }
    }

    /// What the client knows that has answered.
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

    /// The SDK's own approval has no field for this, so the part beside it says it.
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
    use crate::wire::{Shows, Wire};

    /// The message of these events, each at its second.
    fn folded(events: &[(i64, EventBody<'_>)]) -> UiMessage {
        let created_at = DateTime::UNIX_EPOCH;
        let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::max(), Uuid::nil());
        let shows = Shows::Everything;
        let view = View { wire: Wire::AiSdk, shows, run_id, conversation_id, message_id, created_at, context: None };
        let (mut message, mut before) = (UiMessage::new(String::new(), "assistant", Vec::new()), Before::START);
        for (index, (second, body)) in events.iter().enumerate() {
            let at = DateTime::from_timestamp(*second, 0).unwrap();
            let event = Event::new(format!("1-{}", index + 1).parse().unwrap(), at, body);
            message.push(&view, before, &event);
            before = Before::behind(&event);
        }
        message
    }

    fn newest<'a>(message: &'a UiMessage, kind: &str) -> &'a Value {
        message.parts.iter().rfind(|part| part["type"] == kind).unwrap()
    }

    #[test]
    fn a_history_tells_how_long_the_model_reasoned() {
        let message_id = Uuid::nil();
        let thought = |text: &'static str| EventBody::ReasoningDelta(ReasoningDelta { message_id, text: text.into() });
        let said = EventBody::MessageDelta(MessageDelta { message_id, text: "Six.".into() });
        let message = folded(&[(10, thought("The tide")), (11, thought(" turns")), (13, said)]);
        assert_eq!(newest(&message, "reasoning")["providerMetadata"], json!({"holdfast": {"durationMs": 3_000}}));
    }

    #[test]
    fn a_history_tells_that_a_human_changed_the_input() {
        let (approval_id, call_id) = (Uuid::max(), "call");
        let asked = EventBody::ApprovalRequested(ApprovalRequested {
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
        let edited = folded(&[(1, asked.clone()), (2, resolved(Some(json!({"amount": 1}).into())))]);
        assert_eq!(newest(&edited, "data-question")["data"]["edited"], true);
        let unchanged = folded(&[(1, asked), (2, resolved(None))]);
        assert_eq!(newest(&unchanged, "data-question")["data"]["edited"], Value::Null);
    }
}
