//! Conversations: durable lists of messages.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// The name under which its owner finds a conversation again. One owner has at most one conversation of each handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    /// What a client calls its session.
    Session(String),
    /// What a client calls its chat.
    Chat(String),
    /// The one standing conversation with an agent.
    Agent(Uuid),
}

impl Handle {
    /// The agent that such a conversation is with.
    pub const fn agent_id(&self) -> Option<Uuid> {
        match self {
            Self::Session(_) | Self::Chat(_) => None,
            Self::Agent(id) => Some(*id),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(name) => write!(f, "session:{name}"),
            Self::Chat(name) => write!(f, "chat:{name}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
        }
    }
}

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
