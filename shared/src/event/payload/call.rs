//! Payloads of tool calls, of the subagents that answer them, and of questions about them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    approval::{ApprovalKind, ApprovalStatus},
    event::{payload::EntityAccessed, raw_json::RawJson},
    event_id::EventId,
    file::ToolFile,
    lenient::{self, Growing},
    run::RunStatus,
    subagent::SubagentRole,
    tool::ToolError,
    usage::Usage,
};

/// A piece of a call's arguments, as the model writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCallDelta<'a> {
    /// The call.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The tool's name; only the first piece of a call has it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// The party that executes the call; in the first piece of a call; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_word")]
    pub by: Option<ExecutedBy>,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// The party that executes the call; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_word")]
    pub by: Option<ExecutedBy>,
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
    /// The entities of the workspace that the call was about.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<EntityAccessed<'a>>,
    /// The files that the tool has returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToolFile>,
    /// How long the call took.
    #[serde(default)]
    pub duration_ms: u64,
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
    /// The plan whose step the child takes, or that it judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<Uuid>,
    /// The step that the child takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
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
    /// The plan whose step the child took, or that it judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<Uuid>,
    /// The step that the child took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
}

/// A run waits for a human's decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalRequested<'a> {
    /// On a question of a run below that comes during this run's wait: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The approval.
    pub approval_id: Uuid,
    /// The call that waits for it.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The run below that asks; absent for a question of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
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
    /// The run below that has asked; absent for a question of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
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

/// The party that executes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ExecutedBy {
    /// A worker.
    Worker,
    /// The client: the run waits for its result.
    Client,
}

impl Growing for ExecutedBy {
    /// A reader shows the call, and does not wait for its own client.
    const UNKNOWN: Self = Self::Worker;
}
