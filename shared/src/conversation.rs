//! Conversations: durable lists of messages.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// A conversation, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Conversation {
    pub id: Uuid,
    pub title: Option<String>,
    pub agent_id: Option<Uuid>,
    /// The run that is at work in it, or next in its queue.
    pub live_run_id: Option<Uuid>,
    /// The checkpoint that it was forked from.
    pub forked_from: Option<Uuid>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub last_message_at: Option<DateTime<Utc>>,
}
