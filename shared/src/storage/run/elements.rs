//! The elements of a run's progress, as the writes of their rows take them: JSON, with times and ids as texts.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use crate::storage::sql::{id_text, optional_id_text};
use crate::{
    approval::ApprovalKind,
    event::ExecutedBy,
    event_id::EventId,
    file::ToolFile,
    tool::{Effect, ToolCallStatus, ToolError},
    trace::{Node, RequestedCall, TraceRole},
    usage::Usage,
};

/// A new message of the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewTraceMessage {
    /// Its number in the run, from 1.
    pub position: u32,
    /// Its step, from 1; 0 for the messages before the first step.
    pub step: u32,
    /// The author of the message.
    pub role: TraceRole,
    /// Plain text; the output of a tool for the role `tool`.
    pub content: String,
    /// Calls that a message of the assistant requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<RequestedCall>,
    /// The call whose result a message of a tool is, or whose plan gives the model a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// True if a tool's message reports a failure.
    pub is_error: bool,
    /// Tokens of the model call that wrote this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that wrote this message, as `<provider>/<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The step of a plan that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_step: Option<u32>,
}

impl NewTraceMessage {
    /// Returns whether a plan has given the model this message as a task.
    pub fn is_task(&self) -> bool {
        self.role == TraceRole::User && self.call_id.is_some()
    }
}

/// A tool call with its current state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallState {
    /// `call_` and a UUIDv7 in hexadecimal digits.
    pub call_id: String,
    /// The step that requested it, from 1.
    pub step: u32,
    /// Its index among the calls of the step, from 0.
    pub position: usize,
    /// Name of the tool, as the model knows it.
    pub name: String,
    /// The party that executes the call; `None` for an unknown tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ExecutedBy>,
    /// Arguments of the call; an approver may have edited them.
    pub input: Value,
    /// Effect of the tool when the call was planned.
    pub effect: Effect,
    /// Tells how far the call has got.
    pub status: ToolCallStatus,
    /// JSON schema of the arguments, for a tool that the client executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Time by which the client must answer, for a tool that it executes.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_time")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The child run that answers the call.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_id_text")]
    pub child_run_id: Option<Uuid>,
    /// Output of the tool, up to 256 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Set where the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Files that the tool has returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToolFile>,
    /// Time from the call to its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A new question to a human.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewApproval {
    /// UUIDv7.
    #[serde(serialize_with = "id_text")]
    pub id: Uuid,
    /// The call in question.
    pub call_id: String,
    /// The reason for the question.
    pub kind: ApprovalKind,
    /// Name of the tool, as `<server>__<tool>`.
    pub name: String,
    /// Arguments of the call, as the model wrote them.
    pub input: Value,
    /// JSON schema that edited arguments must fit.
    pub schema: Value,
    /// Time by which a human must answer, by the database's clock.
    #[serde(serialize_with = "time")]
    pub expires_at: DateTime<Utc>,
}

/// A passage of a document that the model has before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToldPassage {
    /// The number by which the run cites it, from 1.
    pub number: u32,
    /// The document.
    #[serde(serialize_with = "id_text")]
    pub document_id: Uuid,
    /// The number of the passage in the document.
    pub passage: u64,
    /// How well it fits, within one search.
    pub score: f64,
    /// The call that has found it first; `None` for a passage with the run's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

/// A completed node of the executor's graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewCheckpoint {
    /// UUIDv7.
    #[serde(serialize_with = "id_text")]
    pub id: Uuid,
    /// The completed node.
    pub node: Node,
    /// Steps begun so far.
    pub step: u32,
    /// The newest event of the run at this point.
    #[serde(serialize_with = "packed")]
    pub event_id: EventId,
    /// Messages of the trace at this point.
    pub messages: usize,
    /// JSON that later runs of the conversation inherit.
    pub metadata: Value,
}

fn packed<S: Serializer>(id: &EventId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(id.packed())
}

fn time<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, false))
}

fn optional_time<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => time(at, serializer),
        None => serializer.serialize_none(),
    }
}
