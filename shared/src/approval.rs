//! Approvals: a run's question to a human about one call, and the answer.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A question about one call, bound to its exact input, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Approval {
    pub id: Uuid,
    pub run_id: Uuid,
    pub call_id: String,
    pub kind: ApprovalKind,
    /// The tool.
    pub name: String,
    /// What it would be called with.
    pub input: Value,
    pub status: ApprovalStatus,
    /// What the human said about it.
    pub reason: Option<String>,
    /// What the tool is called with instead of `input`, if the human changed it.
    pub edited_input: Option<Value>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub requested_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub expires_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub decided_at: Option<DateTime<Utc>>,
    /// Who decided.
    pub decided_by: Option<String>,
}

/// A question that the caller may decide now, as the list of all of them shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct OpenApproval {
    #[serde(flatten)]
    pub approval: Approval,
    /// The agent of the run; null for a plain conversation.
    pub agent_id: Option<Uuid>,
    /// The conversation of a run that the caller owns; null for another owner's.
    pub conversation_id: Option<Uuid>,
}

/// Why a human is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// The tool's policy wants it.
    Policy,
    /// The worker died during the call, which may or may not have taken effect: approve to call again, deny to go on
    /// without.
    UnknownOutcome,
}

/// What became of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Denied,
    /// Nobody has answered in time; counts as denied.
    Expired,
    /// A new message has ended the wait.
    Superseded,
    /// The run was cancelled, or has failed.
    Cancelled,
}

crate::text_enum!(ApprovalKind { Policy = "policy", UnknownOutcome = "unknown_outcome" });
crate::text_enum!(ApprovalStatus {
    Pending = "pending",
    Approved = "approved",
    Denied = "denied",
    Expired = "expired",
    Superseded = "superseded",
    Cancelled = "cancelled",
});

/// A human's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Call the tool, with `edited_input` if there is one.
    Approve { edited_input: Option<Value>, reason: Option<String> },
    /// Do not call it.
    Deny { reason: Option<String> },
}
