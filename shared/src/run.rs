//! Runs: one execution of an agent, started by a message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{event::EventBody, event_id::EventId, message::Message, message::MessageStatus, usage::Usage};

/// A run, as the API shows it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Run {
    pub id: Uuid,
    pub conversation_id: Uuid,
    pub agent_id: Option<Uuid>,
    pub status: RunStatus,
    /// Attempts begun so far; each is one worker's try.
    pub attempt: u32,
    /// The model that answers, as `provider/name`; known once a worker has begun.
    pub model: Option<String>,
    pub input_message_id: Uuid,
    /// The answer, once the run has ended.
    pub output_message: Option<Message>,
    pub usage: Option<Usage>,
    pub error: Option<RunError>,
    /// The newest event that is in the database; a live stream may be ahead of it.
    pub last_event_id: EventId,
    #[serde(serialize_with = "crate::page::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::page::optional_milliseconds")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "crate::page::optional_milliseconds")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Committed and not claimed: new, handed over by a draining worker, or answered by a human.
    Queued,
    /// Held by a worker. Left for `queued` only by a hand-over; an expired lease is claimed directly.
    Running,
    /// Held by nobody until a human answers.
    Waiting,
    Completed,
    Failed,
    Cancelled,
}

crate::text_enum!(RunStatus {
    Queued = "queued",
    Running = "running",
    Waiting = "waiting",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
});

impl RunStatus {
    /// Nothing leaves a terminal status.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Why a run failed: a stable lower-case code and a sentence for the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunError {
    pub code: String,
    pub message: String,
}

impl RunError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The run has taken down as many workers as one may.
    pub fn max_attempts(crashes: u32) -> Self {
        Self::new("max_attempts", format!("the run was given up after {crashes} workers died while they executed it"))
    }
}

/// What a message does when its conversation is busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmitMode {
    /// Waits its turn.
    #[default]
    Enqueue,
    /// Is refused with 409.
    Reject,
    /// Cancels what is queued, running or waiting, and goes next.
    Interrupt,
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Completed { usage: Usage },
    Failed { error: RunError, usage: Usage },
    Cancelled { usage: Usage },
}

impl Ending {
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Completed { .. } => RunStatus::Completed,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Cancelled { .. } => RunStatus::Cancelled,
        }
    }

    /// The status of the message that the run leaves behind.
    pub const fn message_status(&self) -> MessageStatus {
        match self {
            Self::Completed { .. } => MessageStatus::Complete,
            Self::Failed { .. } => MessageStatus::Failed,
            Self::Cancelled { .. } => MessageStatus::Cancelled,
        }
    }

    pub const fn usage(&self) -> &Usage {
        match self {
            Self::Completed { usage } | Self::Failed { usage, .. } | Self::Cancelled { usage } => usage,
        }
    }

    pub const fn error(&self) -> Option<&RunError> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The last events of the run, in order: `message.completed` if there is a message, then the terminal event.
    /// `base` goes to the first of them where they begin an attempt of their own.
    pub fn closing_bodies(&self, base: Option<EventId>, message: Option<Message>, message_id: Uuid) -> Vec<EventBody> {
        let terminal_base = if message.is_some() { None } else { base };
        let kept = message.is_some().then_some(message_id);
        let terminal = match self {
            Self::Completed { usage } => EventBody::RunCompleted { message_id, usage: *usage },
            Self::Failed { error, .. } => EventBody::RunFailed { base: terminal_base, error: error.clone() },
            Self::Cancelled { .. } => EventBody::RunCancelled { base: terminal_base, message_id: kept },
        };
        let completed = message.map(|message| EventBody::MessageCompleted { base, message });
        completed.into_iter().chain([terminal]).collect()
    }
}

/// Gives an enum its one spelling in SQL, JSON and text.
#[macro_export]
macro_rules! text_enum {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// The spelling in SQL and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                match text.as_str() {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("expected one of {}, not {text:?}", [$($text),+].join(", "))),
                }
            }
        }
    };
}
