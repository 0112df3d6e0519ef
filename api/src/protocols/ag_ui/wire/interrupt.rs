//! The questions that end a stream, as the protocol has them.

use holdfast_shared::{approval::ApprovalKind, event::ApprovalRequested, timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// A question that a human must answer before the thread continues.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgUiInterrupt {
    /// The approval.
    pub id: Uuid,
    /// `approval`, `unknown_outcome` or another kind of approval.
    pub reason: &'static str,
    pub message: String,
    /// The call in the stream; absent for a call of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The schema of an answer's `payload`.
    pub response_schema: Value,
    pub expires_at: String,
    /// The tool and its arguments.
    pub metadata: Value,
}

impl AgUiInterrupt {
    /// Returns the question of a call.
    pub fn of(request: &ApprovalRequested<'_>) -> Self {
        Self {
            id: request.approval_id,
            reason: reason_of(request.kind),
            message: question_of(request.kind, &request.name),
            tool_call_id: request.child_run_id.is_none().then(|| request.call_id.to_string()),
            response_schema: answer_schema(),
            expires_at: timestamp::text(request.expires_at),
            metadata: json!({"tool": request.name, "input": request.input.to_value()}),
        }
    }
}

const fn reason_of(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Policy => "approval",
        ApprovalKind::UnknownOutcome => "unknown_outcome",
        ApprovalKind::Plan => "plan",
    }
}

fn question_of(kind: ApprovalKind, tool: &str) -> String {
    match kind {
        ApprovalKind::Policy => format!("May {tool} be called?"),
        ApprovalKind::UnknownOutcome => format!("The outcome of {tool} is unknown. May it be called again?"),
        ApprovalKind::Plan => "May this plan be executed?".to_owned(),
    }
}

/// Returns the schema of the answers to a question.
fn answer_schema() -> Value {
    json!({
        "type": "object",
        "required": ["approved"],
        "properties": {
            "approved": {"type": "boolean"},
            "reason": {"type": "string"},
            "input": {"type": "object", "description": "Arguments that replace those of the model."}
        }
    })
}
