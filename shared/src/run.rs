//! Runs: one execution of an agent, started by a message.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{event_id::EventId, finish_reason::FinishReason, message::Message, storable::storable, usage::Usage};

/// A run, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Run {
    /// UUIDv7, chosen by the API before the run exists.
    pub id: Uuid,
    /// The conversation in whose queue the run stands.
    pub conversation_id: Uuid,
    /// The agent that answers; null for a plain conversation.
    pub agent_id: Option<Uuid>,
    /// Terminal statuses are `completed`, `failed` and `cancelled`.
    pub status: RunStatus,
    /// Number of the newest attempt; 0 before the first claim. Each attempt is one worker's try, or an API's write.
    pub attempt: u32,
    /// The model that answers, as `provider/name`; null until the run's first flush, at most 2 s after its start.
    pub model: Option<String>,
    /// The message that the run answers.
    pub input_message_id: Uuid,
    /// Id of the answer's message, reserved at submission. The message exists once the run has ended.
    pub output_message_id: Uuid,
    /// The answer, once the run has ended.
    pub output_message: Option<Message>,
    /// Tokens of all steps so far; null before the first report.
    pub usage: Option<Usage>,
    /// `usage` and the tokens of all runs below that have ended; absent without such runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_usage: Option<Usage>,
    /// The model's reason for ending the answer, once the run is completed.
    pub finish_reason: Option<FinishReason>,
    /// The run that has started this one for a part of its work; null for a run that a message has started.
    pub parent_run_id: Option<Uuid>,
    /// Set for a failed run only.
    pub error: Option<RunError>,
    /// The cause of `error` in its own words, such as those of the model's provider. Only operators see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details: Option<String>,
    /// The newest event in the database. A live stream may be ahead of it.
    pub last_event_id: EventId,
    /// The client's own JSON, sent with the message.
    pub metadata: Option<Value>,
    /// The run's OpenTelemetry trace, as 32 hexadecimal digits, if the trace is recorded.
    pub trace_id: Option<String>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at the first claim.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub started_at: Option<DateTime<Utc>>,
    /// Time of the database at the terminal status.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub finished_at: Option<DateTime<Utc>>,
}

/// The state of a run in its life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// No worker holds the run: it is new, was handed over by a draining worker, or received its last answer.
    Queued,
    /// A worker holds the run. Only a hand-over returns it to `queued`; another worker claims an expired lease
    /// directly.
    Running,
    /// No worker holds the run until a human or a client answers.
    Waiting,
    /// The answer is stored.
    Completed,
    /// The run broke off with an error.
    Failed,
    /// The run was stopped.
    Cancelled,
}

crate::text_enum!(RunStatus);

impl RunStatus {
    /// Returns whether the status is final. No write changes a final status.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The error of a failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunError {
    /// Stable and lower-case, for programs.
    pub code: String,
    /// One sentence for the reader.
    pub message: String,
    /// The cause in its own words, for operators. The run's row alone keeps it; no event, answer or stored message has it.
    #[serde(skip)]
    pub details: Option<String>,
    /// Seconds after which the model's provider takes requests again, if it has said so. The event of the end alone has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl RunError {
    /// Returns an error whose message any database can store.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: storable(message.into()), details: None, retry_after: None }
    }

    /// Returns the error with the cause's own words.
    pub fn with_details(self, details: impl Into<String>) -> Self {
        Self { details: Some(storable(details.into())), ..self }
    }

    /// Returns the error for a run that took down as many workers as it may.
    pub fn max_attempts(crashes: u32) -> Self {
        Self::new("max_attempts", format!("the run failed after {crashes} workers died during its execution"))
    }
}

/// How a new message affects the unfinished runs of its conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SubmitMode {
    /// The message waits for its turn.
    #[default]
    Enqueue,
    /// The API refuses the message with 409.
    Reject,
    /// The message cancels all unfinished runs and is next.
    Interrupt,
    /// As `Interrupt`; the cancelled turns are also superseded.
    Rollback,
    /// The message joins the live run before its next model call. If that run ends first, or waits for a human, the
    /// message waits for its turn.
    Steer,
}

crate::text_enum!(SubmitMode);
