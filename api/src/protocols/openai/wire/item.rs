//! The items of a response's output.

use std::sync::Arc;

use holdfast_shared::event_id::EventId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ids::{approval_id, call_id, item_id};
use crate::wire::answer_text::AnswerText;

/// An item that a response has shown.
#[derive(Debug, Clone)]
pub struct OutputItem {
    /// Its place in the output. It stays when earlier items are superseded.
    pub index: u32,
    /// The event that began it.
    pub since: EventId,
    pub id: Arc<str>,
    pub state: ItemState,
    /// The event that ended it.
    pub until: Option<EventId>,
    pub body: ItemBody,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    Open,
    Completed,
    /// Its end is not part of this response.
    Incomplete,
    Failed,
}

/// The content of an item.
#[derive(Debug, Clone)]
pub enum ItemBody {
    Message(AnswerText),
    Reasoning(AnswerText),
    /// A call that the client executes.
    FunctionCall(CallBody),
    /// A call that the server executes.
    McpCall {
        call: CallBody,
        output: Option<String>,
        error: Option<String>,
    },
    /// A question whether the server may execute a call.
    McpApproval {
        approval_id: Uuid,
        call: CallBody,
    },
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct CallBody {
    pub call_id: String,
    pub name: String,
    /// The namespace of a function, as the client has declared it.
    pub namespace: Option<String>,
    pub arguments: AnswerText,
}

impl ItemState {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

impl ItemBody {
    /// Returns the call of an item.
    pub const fn call(&self) -> Option<&CallBody> {
        match self {
            Self::Message(_) | Self::Reasoning(_) => None,
            Self::FunctionCall(call) | Self::McpCall { call, .. } | Self::McpApproval { call, .. } => Some(call),
        }
    }

    /// Returns the text that grows with the item.
    pub const fn text_mut(&mut self) -> &mut AnswerText {
        match self {
            Self::Message(text) | Self::Reasoning(text) => text,
            Self::FunctionCall(call) | Self::McpCall { call, .. } | Self::McpApproval { call, .. } => {
                &mut call.arguments
            }
        }
    }

    /// Returns the id of an item with this body.
    pub fn id(&self, run_id: Uuid, since: EventId) -> String {
        let kind = match self {
            Self::Message(_) => "msg",
            Self::Reasoning(_) => "rs",
            Self::FunctionCall(_) => "fc",
            Self::McpCall { .. } => "mcp",
            Self::McpApproval { approval_id: id, .. } => return approval_id(run_id, *id),
        };
        item_id(kind, run_id, since)
    }
}

impl OutputItem {
    /// Takes back what events after `base` have brought.
    pub fn supersede_after(&mut self, base: EventId) {
        self.body.text_mut().supersede_after(base);
        if let ItemBody::McpCall { output, error, .. } = &mut self.body
            && self.until.is_some_and(|until| until > base)
        {
            (*output, *error, self.state) = (None, None, ItemState::Incomplete);
        }
    }

    /// Returns the item as the protocol has it.
    pub fn json(&self, run_id: Uuid) -> Value {
        let (id, status) = (&*self.id, self.state.name());
        match &self.body {
            ItemBody::Message(text) => {
                let content =
                    if self.state == ItemState::Open { json!([]) } else { json!([output_text(&text.to_text())]) };
                json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
            }
            ItemBody::Reasoning(text) => {
                let summary =
                    if self.state == ItemState::Open { json!([]) } else { json!([summary_text(&text.to_text())]) };
                json!({"id": id, "type": "reasoning", "summary": summary, "content": [], "status": status})
            }
            ItemBody::FunctionCall(call) => {
                let mut item = json!({
                    "id": id, "type": "function_call", "call_id": call_id(run_id, &call.call_id), "name": call.name,
                    "arguments": call.arguments.to_text(), "status": status
                });
                if let Some(namespace) = &call.namespace {
                    item["namespace"] = namespace.as_str().into();
                }
                item
            }
            ItemBody::McpCall { call, output, error } => {
                let (label, name) = label_and_name(&call.name);
                json!({
                    "id": id, "type": "mcp_call", "server_label": label, "name": name,
                    "arguments": call.arguments.to_text(), "output": output, "error": error,
                    "approval_request_id": null, "status": status
                })
            }
            ItemBody::McpApproval { call, .. } => {
                let (label, name) = label_and_name(&call.name);
                json!({
                    "id": id, "type": "mcp_approval_request", "server_label": label, "name": name,
                    "arguments": call.arguments.to_text()
                })
            }
        }
    }
}

/// Returns a part of a message.
pub fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Returns a part of a reasoning item.
pub fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// Returns the server of a tool and the tool's own name. The built-in tools have the server `holdfast`.
fn label_and_name(name: &str) -> (&str, &str) {
    name.split_once("__").unwrap_or(("holdfast", name))
}
