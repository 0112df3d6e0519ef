//! The payloads of events: a struct for each kind. In the log and on the native wire, a payload is a JSON object.
//!
//! A field that a later version added has a default, so that the later version reads the events of earlier ones.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::raw_json::RawJson;
use crate::{
    approval::{ApprovalKind, ApprovalStatus},
    event_id::EventId,
    finish_reason::FinishReason,
    lenient::{self, Growing},
    message::Message,
    run::{RunError, RunStatus},
    subagent::SubagentRole,
    tool::ToolError,
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

/// A model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepStarted {
    /// The number of the step, from 1.
    pub step: u32,
}

/// A model call and its tool calls are complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepCompleted {
    /// The number of the step, from 1.
    pub step: u32,
    /// How many tool calls the model asked for.
    pub tool_calls: usize,
    /// The tokens of the model call.
    pub usage: Usage,
    /// Why the model ended the step.
    #[serde(default)]
    pub finish_reason: FinishReason,
}

/// A piece of the answer's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageDelta<'a> {
    /// The answer.
    pub message_id: Uuid,
    /// The text that follows the answer's text so far.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A piece of the model's reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReasoningDelta<'a> {
    /// The answer that it belongs to.
    pub message_id: Uuid,
    /// The text that follows the reasoning so far.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A piece of a call's arguments, as the model writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCallDelta<'a> {
    /// The call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The tool's name; only the first piece of a call has it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// JSON text that follows the arguments so far.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// A tool call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCallStarted<'a> {
    /// The call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The step whose model call asked for it, from 1.
    pub step: u32,
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments of the call.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    pub input: RawJson<'a>,
    /// The party that executes the call.
    #[serde(deserialize_with = "lenient::word")]
    pub by: ExecutedBy,
    /// When a call that the client executes expires without a result.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::timestamp::optional_milliseconds"
    )]
    pub expires_at: Option<DateTime<Utc>>,
}

/// A tool call has an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCallCompleted<'a> {
    /// On a result that the client has returned: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments of a call that was refused and so never started.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<RawJson<'a>>,
    /// The text that the tool returned.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Cow<'a, str>>,
    /// Why there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// How long the call took.
    #[serde(default)]
    pub duration_ms: u64,
}

/// A message has joined a live run. In the log of that run, the next step answers it too. In the log of the run that the
/// message had before, the end of that run follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageSteered {
    /// In the log of the message's own run: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The message.
    pub message_id: Uuid,
    /// In the log of the message's own run: the run that it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_run_id: Option<Uuid>,
}

/// A child run was started for a call. It has a log of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SubagentStarted<'a> {
    /// The call that the child answers.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The child.
    pub child_run_id: Uuid,
    /// The name of the child's agent.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// The child's part in the work of its parent.
    #[serde(deserialize_with = "lenient::word")]
    pub role: SubagentRole,
    /// The child's input.
    #[serde(borrow)]
    pub task: Cow<'a, str>,
}

/// A child run has ended. The outcome of its call follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SubagentCompleted<'a> {
    /// On an end during the parent's wait: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The call that the child answers.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The child.
    pub child_run_id: Uuid,
    /// The child's part in the work of its parent.
    #[serde(deserialize_with = "lenient::word")]
    pub role: SubagentRole,
    /// `completed`, `failed` or `cancelled`.
    pub status: RunStatus,
    /// The child's answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Cow<'a, str>>,
    /// Why there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Tokens of the child and of its own children.
    #[serde(default)]
    pub usage: Usage,
}

/// A run waits for a human's decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalRequested<'a> {
    /// The approval.
    pub approval_id: Uuid,
    /// The call that waits for it.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// Why a human must decide.
    #[serde(deserialize_with = "lenient::word")]
    pub kind: ApprovalKind,
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The arguments of the call.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    pub input: RawJson<'a>,
    /// When the approval counts as denied.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub expires_at: DateTime<Utc>,
}

/// An approval is no longer pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalResolved<'a> {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The approval.
    pub approval_id: Uuid,
    /// The call that the approval is about.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The decision.
    #[serde(deserialize_with = "lenient::word")]
    pub decision: ApprovalStatus,
    /// The human's reason.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The arguments that replace those of the model.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub edited_input: Option<RawJson<'a>>,
}

/// The database has stored the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageCompleted {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The answer.
    pub message: Box<Message>,
}

/// The agent is in a state that no other event shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentStateChanged<'a> {
    /// The state.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub state: AgentState<'a>,
}

/// The size of the conversation and its budget, in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextUsage {
    /// Estimated tokens of the conversation.
    pub tokens: u64,
    /// Tokens that the conversation may take.
    pub budget: u64,
    /// Whether older messages were summarised for this run.
    pub compressed: bool,
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

/// The party that executes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutedBy {
    /// A worker.
    Worker,
    /// The client: the run waits for its result.
    Client,
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

impl Growing for ExecutedBy {
    /// A reader shows the call, and does not wait for its own client.
    const UNKNOWN: Self = Self::Worker;
}
