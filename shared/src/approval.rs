//! Approvals: the question of a run to a human about one tool call, and the answer.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::lenient::Growing;

/// A question about one call, as the API shows it. The answer counts for this exact input only.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Approval {
    /// UUIDv7, chosen by the worker that asks.
    pub id: Uuid,
    /// The run that asks and waits.
    pub run_id: Uuid,
    /// The call of that run: `call_` and a UUIDv7 in hexadecimal digits.
    pub call_id: String,
    /// Tells the approver whether the agent's policy or a crash raised the question.
    pub kind: ApprovalKind,
    /// Name of the tool, as `<server>__<tool>`.
    pub name: String,
    /// Arguments of the call, as the model wrote them.
    pub input: Value,
    /// `pending` until an answer, the expiry or the end of the run settles the question.
    pub status: ApprovalStatus,
    /// Free text that the approver sent with the decision.
    pub reason: Option<String>,
    /// Arguments that replace `input`, if the approver changed them.
    pub edited_input: Option<Value>,
    /// Time of the database at which the run began to wait.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub requested_at: DateTime<Utc>,
    /// Time of the database after which the sweeper denies the call.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub expires_at: DateTime<Utc>,
    /// Time of the database at which the question was settled; null while it is pending.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub decided_at: Option<DateTime<Utc>>,
    /// Owner id of the approver; null if no approver decided.
    pub decided_by: Option<String>,
}

/// A question that the caller may decide now, as the list of open approvals shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PendingApproval {
    /// The question itself; its fields stand beside the two below.
    #[serde(flatten)]
    pub approval: Approval,
    /// The agent of the run; null for a plain conversation.
    pub agent_id: Option<Uuid>,
    /// The conversation of a run that the caller owns, or of the top run above it; null for another owner's.
    pub conversation_id: Option<Uuid>,
}

/// The reason why the run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalKind {
    /// The approval policy of the agent or of the tool requires an answer.
    Policy,
    /// The worker died during the call, which may have taken effect. An approval calls the tool again; a denial
    /// continues without its result.
    UnknownOutcome,
    /// A plan is executed only after an approval, which may change its steps.
    Plan,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalStatus {
    /// The run waits for an answer.
    Pending,
    /// An approver allowed the call.
    Approved,
    /// An approver forbade the call.
    Denied,
    /// No approver answered before `expires_at`. The run treats this as a denial.
    Expired,
    /// A new message ended the wait.
    Superseded,
    /// The run was cancelled or failed.
    Cancelled,
}

crate::text_enum!(ApprovalKind, ApprovalStatus);

impl Growing for ApprovalKind {
    /// A reader asks the human in either case.
    const UNKNOWN: Self = Self::Policy;
}

impl Growing for ApprovalStatus {
    /// The question is closed, and no worker called the tool.
    const UNKNOWN: Self = Self::Denied;
}

/// The answer of an approver.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Calls the tool, with `edited_input` instead of the model's arguments if there is one.
    Approve {
        /// Arguments that replace those of the model.
        edited_input: Option<Value>,
        /// Free text for the record and for the model.
        reason: Option<String>,
    },
    /// Does not call the tool.
    Deny {
        /// Free text for the record and for the model.
        reason: Option<String>,
    },
}
