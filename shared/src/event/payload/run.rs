//! Payloads of a run as a whole: its attempts, its state, its end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    event_id::EventId,
    finish_reason::FinishReason,
    lenient::{self, Growing},
    run::RunError,
    usage::Usage,
};

/// A run is committed and waits for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunQueued {
    /// Always `0-0`.
    pub base: EventId,
    /// The conversation of the run.
    pub conversation_id: Uuid,
    /// The message that the run answers.
    pub input_message_id: Uuid,
    /// The id that the answer will have.
    pub message_id: Uuid,
    /// The agent that answers; null for the deployment's plain model.
    pub agent_id: Option<Uuid>,
}

/// A worker has begun an attempt at the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AttemptStarted {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// This event supersedes all events after its base.
    pub base: EventId,
    /// Why the attempt began.
    #[serde(deserialize_with = "lenient::word")]
    pub reason: AttemptReason,
    /// Workers that were lost with this run since its last completed step.
    #[serde(default)]
    pub crashes: u32,
    /// The number of crashes that fails the run.
    #[serde(default)]
    pub max_crashes: u32,
}

/// The agent is in a state that no other event shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentStateChanged<'a> {
    /// The state.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub state: AgentState<'a>,
    /// The tokens of the step that waits. Its `step.completed` has them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Something went wrong, and the run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WarningRaised<'a> {
    /// A stable code in lower case.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// A sentence for the reader.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// A run has completed. The last event of its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunCompleted {
    /// The answer.
    #[serde(default)]
    pub message_id: Uuid,
    /// The tokens of all steps.
    #[serde(default)]
    pub usage: Usage,
    /// Why the model ended the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
}

/// A run has failed. The last event of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunFailed {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// Why the run has failed.
    pub error: RunError,
    /// The tokens of all steps.
    #[serde(default)]
    pub usage: Usage,
}

impl Default for RunFailed {
    fn default() -> Self {
        Self { base: None, error: RunError::new("unknown", "the run has failed"), usage: Usage::default() }
    }
}

/// A run was cancelled. The last event of its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunCancelled {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The answer, if the database has kept a part of it.
    pub message_id: Option<Uuid>,
    /// The tokens of all steps.
    #[serde(default)]
    pub usage: Usage,
}

/// The state of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState<'a> {
    /// The run waits for a human, or for the client that executes a tool.
    WaitingOnUser,
    /// A state that this version does not know.
    #[serde(untagged, borrow)]
    Other(Cow<'a, str>),
}

impl<'a> AgentState<'a> {
    /// Returns the state's name.
    pub fn into_name(self) -> Cow<'a, str> {
        match self {
            Self::WaitingOnUser => "waiting_on_user".into(),
            Self::Other(name) => name,
        }
    }
}

/// Why a worker began an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    /// The first attempt.
    Claimed,
    /// A human has answered.
    Resumed,
    /// The previous worker shut down and handed the run over.
    Drain,
    /// The previous worker stopped renewing its lease.
    LeaseExpired,
}

impl Growing for AttemptReason {
    /// The most careful one: the attempt before may have shown what it had not archived.
    const UNKNOWN: Self = Self::LeaseExpired;
}
