//! The questions that end a stream, as the protocol has them.

use std::borrow::Cow;

use holdfast_shared::{
    approval::ApprovalKind,
    event::{ApprovalRequested, ToolCallStarted},
    timestamp,
};
use serde::Serialize;
use serde_json::{Value, json};

/// A question that the client answers before the thread continues.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LangInterrupt {
    /// The approval, or the call whose result the client owes.
    pub id: String,
    pub value: Value,
}

impl LangInterrupt {
    /// Returns the question of an approval. Its value is also a request of LangChain's middleware for humans in the
    /// loop, and one of Agent Inbox.
    pub fn of_approval(request: &ApprovalRequested<'_>) -> Self {
        let kind = match request.kind {
            ApprovalKind::Policy => "approval",
            ApprovalKind::UnknownOutcome => "unknown_outcome",
            ApprovalKind::Plan => "plan",
        };
        let question: Cow<'_, str> = match request.kind {
            ApprovalKind::Policy => format!("May {} be called?", request.name).into(),
            ApprovalKind::UnknownOutcome => {
                format!("The outcome of {} is unknown. May it be called again?", request.name).into()
            }
            ApprovalKind::Plan => "May this plan be executed?".into(),
        };
        let (tool, input) = (&request.name, request.input.to_value());
        let value = json!({
            "type": kind, "message": question, "tool": tool, "input": input, "tool_call_id": request.call_id,
            "expires_at": timestamp::text(request.expires_at),
            "action_requests": [{"name": tool, "args": input, "description": question}],
            "review_configs": [{"action_name": tool, "allowed_decisions": ["approve", "edit", "reject"]}],
            "action_request": {"action": tool, "args": input}, "description": question,
            "config": {"allow_accept": true, "allow_edit": true, "allow_respond": true, "allow_ignore": true},
        });
        Self { id: request.approval_id.to_string(), value }
    }

    /// Returns the question for the result of a call that the client executes. The SDK's headless tools answer such a value.
    pub fn of_call(call: &ToolCallStarted<'_>) -> Self {
        let tool_call = json!({"id": call.call_id, "name": call.name, "args": call.input.to_value()});
        Self { id: call.call_id.to_string(), value: json!({"type": "tool", "tool_call": tool_call}) }
    }
}
