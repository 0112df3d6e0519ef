//! Messages of a conversation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// One message, as the API shows it and as `message.completed` carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    pub id: Uuid,
    pub conversation_id: Uuid,
    /// The run that the message started, or that wrote it.
    pub run_id: Uuid,
    pub role: Role,
    /// `text`, until other kinds come.
    pub content_type: String,
    pub content: String,
    pub status: MessageStatus,
    /// Where an answer came from, as `{"agent_run_id": …}`.
    pub retrieval_context: Option<Value>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    System,
}

/// Whether the message is all that was to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    Complete,
    /// The run was cancelled; the content is what it had said by then.
    Cancelled,
    /// The run failed; the content is what it had said by then.
    Failed,
}

crate::text_enum!(Role { User = "user", Assistant = "assistant", System = "system" });
crate::text_enum!(MessageStatus { Complete = "complete", Cancelled = "cancelled", Failed = "failed" });
