//! What a run has come to, written in the same transaction as the events that tell of it.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{database::args, fenced::Statement};
use crate::{
    approval::ApprovalKind,
    event_id::EventId,
    finish_reason::FinishReason,
    tool::{Effect, ToolCallStatus, ToolError},
    trace::{Node, RequestedCall, TraceRole},
    usage::Usage,
};

/// Rows that belong to a chunk of events. Later progress is absorbed by earlier, in order.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub messages: Vec<NewTraceMessage>,
    /// Calls as they are now; an earlier state of the same call is replaced.
    pub calls: Vec<CallState>,
    pub approvals: Vec<NewApproval>,
    pub checkpoints: Vec<NewCheckpoint>,
    /// The event from which a later attempt may go on.
    pub resume_at: Option<EventId>,
    /// A step has come to its end: earlier deaths of workers are forgiven.
    pub step_completed: bool,
    /// Of all steps so far.
    pub usage: Option<Usage>,
    /// Why the model ended the newest step.
    pub finish_reason: Option<FinishReason>,
}

/// A message for the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewTraceMessage {
    pub position: u32,
    pub step: u32,
    pub role: TraceRole,
    pub content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<RequestedCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    pub is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A tool call as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallState {
    pub call_id: String,
    pub step: u32,
    /// Its place among the calls of the step.
    pub position: usize,
    pub name: String,
    pub input: Value,
    pub effect: Effect,
    pub status: ToolCallStatus,
    /// Of a tool that the client executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_time")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A question to a human.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewApproval {
    #[serde(serialize_with = "simple")]
    pub id: Uuid,
    pub call_id: String,
    pub kind: ApprovalKind,
    pub name: String,
    pub input: Value,
    pub schema: Value,
    #[serde(serialize_with = "time")]
    pub expires_at: DateTime<Utc>,
}

/// A completed node of the executor's graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewCheckpoint {
    #[serde(serialize_with = "simple")]
    pub id: Uuid,
    pub node: Node,
    pub step: u32,
    #[serde(serialize_with = "packed")]
    pub event_id: EventId,
    /// Messages of the trace by then.
    pub messages: usize,
    pub metadata: Value,
}

impl Progress {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.calls.is_empty()
            && self.approvals.is_empty()
            && self.checkpoints.is_empty()
            && self.resume_at.is_none()
            && !self.step_completed
            && self.usage.is_none()
            && self.finish_reason.is_none()
    }

    /// The usage, as the database keeps it.
    pub(super) fn usage_json(&self) -> Option<Value> {
        self.usage.map(|usage| json!(usage))
    }

    /// Why the newest step ended, as the database keeps it.
    pub(super) fn finish_text(&self) -> Option<String> {
        self.finish_reason.map(|reason| reason.as_str().to_owned())
    }

    /// Adds what came later.
    pub fn absorb(&mut self, later: Self) {
        self.messages.extend(later.messages);
        for call in later.calls {
            self.calls.retain(|earlier| earlier.call_id != call.call_id);
            self.calls.push(call);
        }
        self.approvals.extend(later.approvals);
        self.checkpoints.extend(later.checkpoints);
        self.resume_at = later.resume_at.or(self.resume_at);
        self.step_completed |= later.step_completed;
        self.usage = later.usage.or(self.usage);
        self.finish_reason = later.finish_reason.or(self.finish_reason);
    }
}

/// The rows. A checkpoint is spare: a run goes on from its trace, so what a refused one costs is a place to fork from.
/// What changes in the run's own row is for the statement that updates it: a second update of one row in a
/// transaction would make PostgreSQL check its foreign keys, and so lock the conversation after the run.
pub(super) fn rows_of(run_id: Uuid, progress: &Progress) -> Vec<Statement> {
    let mut rows = Vec::new();
    if !progress.messages.is_empty() {
        rows.push(Statement::new(
            "insert into agent_run_messages (run_id, position, step, role, content, tool_calls, call_id, is_error, usage, created_at) \
             select $1, cast(value->>'position' as bigint), cast(value->>'step' as bigint), value->>'role', value->>'content', \
             value->'tool_calls', value->>'call_id', cast(value->>'is_error' as boolean), value->'usage', {now} from {each:$2} where {fenced}",
            args![run_id, json!(progress.messages)],
        ));
    }
    if !progress.calls.is_empty() {
        rows.push(Statement::new(
            "insert into agent_run_tool_calls (run_id, call_id, step, position, name, input, effect, status, schema, expires_at, \
             output, error, duration_ms, created_at, completed_at) \
             select $1, value->>'call_id', cast(value->>'step' as bigint), cast(value->>'position' as bigint), value->>'name', \
             value->'input', value->>'effect', value->>'status', value->'schema', {time:value->>'expires_at'}, value->>'output', \
             value->'error', cast(value->>'duration_ms' as bigint), {now}, \
             case when value->>'status' = 'completed' then {now} end from {each:$2} where {fenced} \
             on conflict (run_id, call_id) do update set input = excluded.input, effect = excluded.effect, status = excluded.status, schema = excluded.schema, \
             expires_at = excluded.expires_at, output = excluded.output, error = excluded.error, duration_ms = excluded.duration_ms, \
             completed_at = excluded.completed_at",
            args![run_id, json!(progress.calls)],
        ));
    }
    if !progress.approvals.is_empty() {
        rows.push(Statement::new(
            "insert into agent_run_approvals (id, run_id, call_id, kind, name, input, schema, status, requested_at, expires_at) \
             select {uuid:value->>'id'}, $1, value->>'call_id', value->>'kind', value->>'name', value->'input', value->'schema', \
             'pending', {now}, {time:value->>'expires_at'} from {each:$2} where {fenced}",
            args![run_id, json!(progress.approvals)],
        ));
    }
    if !progress.checkpoints.is_empty() {
        rows.push(Statement::new(
            "insert into agent_run_checkpoints (id, conversation_id, run_id, event_id, node, step, messages, metadata, created_at) \
             select {uuid:value->>'id'}, (select conversation_id from agent_runs where id = $1), $1, \
             cast(value->>'event_id' as bigint), value->>'node', cast(value->>'step' as bigint), \
             cast(value->>'messages' as bigint), value->'metadata', {now} from {each:$2} where {fenced}",
            args![run_id, json!(progress.checkpoints)],
        ).spare());
    }
    rows
}

fn simple<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&id.simple())
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
