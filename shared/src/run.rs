//! Runs: one execution of an agent, started by a message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{event_id::EventId, finish_reason::FinishReason, message::Message, storable::storable, usage::Usage};

/// A run, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
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
    /// The answer's message, which is there once the run has ended.
    pub output_message_id: Uuid,
    /// The answer, once the run has ended.
    pub output_message: Option<Message>,
    pub usage: Option<Usage>,
    /// Why the model ended the answer, once the run is completed.
    pub finish_reason: Option<FinishReason>,
    pub error: Option<RunError>,
    /// The newest event that is in the database; a live stream may be ahead of it.
    pub last_event_id: EventId,
    /// What the client has sent with the message, for itself.
    pub metadata: Option<Value>,
    /// The run's OpenTelemetry trace, as 32 hexadecimal digits, if one is recorded.
    pub trace_id: Option<String>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
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
        Self { code: code.into(), message: storable(message.into()) }
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
    /// The same, and what was cancelled is no longer part of the conversation.
    Rollback,
}

crate::text_enum!(SubmitMode { Enqueue = "enqueue", Reject = "reject", Interrupt = "interrupt", Rollback = "rollback" });
