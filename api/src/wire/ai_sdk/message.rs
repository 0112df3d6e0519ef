//! A UI message: what the AI SDK's client has made of a message's chunks, so that a page can be given what it would have seen.

use chrono::{DateTime, Utc};
use holdfast_shared::event::{APPROVAL_RESOLVED, Event};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Chunk,
    chunk::{Metadata, Tool},
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
}

impl UiMessage {
    pub fn new(id: String, role: &'static str, parts: Vec<Value>) -> Self {
        Self { id, role, metadata: Map::new(), parts, has_failed: false }
    }

    /// One whose stream is not at hand.
    pub fn said_at(created_at: DateTime<Utc>, id: String, role: &'static str, parts: Vec<Value>) -> Self {
        let mut message = Self::new(id, role, parts);
        message.merge(json!(Metadata { created_at: Some(created_at), ..Metadata::default() }));
        message
    }

    /// Applies the next event that is part of the message.
    pub fn push(&mut self, view: &View, before: Before, event: &Event) {
        chunks(view, before, event).into_iter().for_each(|chunk| self.apply(chunk));
        if event.kind() == APPROVAL_RESOLVED {
            self.resolve(event);
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
    fn tool(&mut self, tool: &Tool, state: Value) {
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
    fn resolve(&mut self, event: &Event) {
        #[derive(Deserialize)]
        struct Resolved {
            call_id: String,
            approval_id: Uuid,
            decision: String,
            reason: Option<String>,
        }
        let Ok(resolved) = serde_json::from_slice::<Resolved>(event.payload()) else { return };
        let mut approval = json!({"id": resolved.approval_id, "approved": resolved.decision == "approved"});
        if let Some(reason) = resolved.reason {
            approval["reason"] = reason.into();
        }
        self.change(&resolved.call_id, json!({"approval": approval}));
    }
}
