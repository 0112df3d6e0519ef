//! The fold of a run's events into its message as a page shows it: text, reasoning, tool calls and open questions.
//!
//! `transcript` is the fold of the text alone. Both take back what later attempts have superseded. Payloads that cannot be
//! read, because a newer version wrote them, tell nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    event::{ApprovalRequested, Event, EventBody, ExecutedBy, ToolCallStarted},
    event_id::EventId,
    finish_reason::FinishReason,
    run::{RunError, RunStatus},
    timestamp,
    tool::{ToolCallStatus, ToolError},
    transcript::Transcript,
    usage::Usage,
};

/// The type of the frame that carries a snapshot. It is no event of the log.
pub const RUN_SNAPSHOT: &str = "run.snapshot";

/// A run's message as far as its events have told it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Snapshot {
    /// The id that the answer has, or will have.
    pub message_id: Option<Uuid>,
    /// Where the run stands, as the events tell: one that was handed over is `running` until it is claimed again.
    pub status: RunStatus,
    pub text: String,
    pub reasoning: String,
    /// In the order in which the model asked for them.
    pub tool_calls: Vec<CallSoFar>,
    /// What nobody has answered yet.
    pub approvals: Vec<OpenApproval>,
    /// Of the completed steps; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model ended the answer, once the run is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Why the run has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// A tool call, as far as it has come.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CallSoFar {
    pub call_id: String,
    pub name: String,
    /// The arguments, once they are whole; else null.
    pub input: Option<Value>,
    /// What the model has written of them, while they are not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    pub status: ToolCallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Until when the client may answer, for a call that it executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A question that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpenApproval {
    pub approval_id: Uuid,
    pub call_id: String,
    /// `policy` or `unknown_outcome`.
    pub kind: String,
    pub name: String,
    pub input: Value,
    pub expires_at: String,
}

/// A snapshot in the making. Takes memory as the message does, and 16 bytes for each delta.
#[derive(Debug, Default)]
pub struct Folding {
    message_id: Option<Uuid>,
    text: Transcript,
    reasoning: Transcript,
    calls: Vec<CallDraft>,
    /// The events that are more than a piece of text, without those that are superseded.
    facts: Vec<Event>,
    /// The answer as it is stored, which replaces the pieces.
    stored: Option<String>,
}

/// A call as the model has written it so far.
#[derive(Debug)]
struct CallDraft {
    since: EventId,
    call_id: String,
    name: String,
    arguments: Transcript,
}

impl Folding {
    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        match event.body() {
            EventBody::RunQueued(queued) => self.message_id = Some(queued.message_id),
            EventBody::MessageDelta(delta) => self.text.push(event.id, &delta.text),
            EventBody::ReasoningDelta(delta) => self.reasoning.push(event.id, &delta.text),
            EventBody::ToolCallDelta(delta) => {
                let name = delta.name.as_deref().unwrap_or_default();
                self.call(event.id, &delta.call_id, name).arguments.push(event.id, &delta.text);
            }
            EventBody::MessageCompleted(completed) => self.stored = Some(completed.message.content.to_stored()),
            EventBody::ToolCallStarted(started) => self.note(event, &started.call_id, &started.name),
            EventBody::ToolCallCompleted(completed) => self.note(event, &completed.call_id, &completed.name),
            EventBody::ApprovalRequested(requested) => self.note(event, &requested.call_id, &requested.name),
            EventBody::AttemptStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::ApprovalResolved(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_) => self.facts.push(event.detached()),
            EventBody::StepStarted(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::WarningRaised(_)
            | EventBody::Unknown => {}
        }
    }

    /// The message as of the last event.
    pub fn into_snapshot(self) -> Snapshot {
        let mut snapshot = Snapshot {
            message_id: self.message_id,
            status: RunStatus::Queued,
            text: self.stored.unwrap_or_else(|| self.text.into_text()),
            reasoning: self.reasoning.into_text(),
            tool_calls: self.calls.into_iter().map(CallSoFar::from).collect(),
            approvals: Vec::new(),
            usage: None,
            finish_reason: None,
            error: None,
        };
        for event in &self.facts {
            snapshot.apply(event.body());
        }
        snapshot
    }

    fn supersede_after(&mut self, base: EventId) {
        self.text.supersede_after(base);
        self.reasoning.supersede_after(base);
        self.calls.retain(|call| call.since <= base);
        for call in &mut self.calls {
            call.arguments.supersede_after(base);
        }
        self.facts.truncate(self.facts.partition_point(|event| event.id <= base));
    }

    /// Keeps an event about a call.
    fn note(&mut self, event: &Event, call_id: &str, name: &str) {
        self.call(event.id, call_id, name);
        self.facts.push(event.detached());
    }

    /// The call of that id; a new one if no event has named it before.
    fn call(&mut self, since: EventId, call_id: &str, name: &str) -> &mut CallDraft {
        let at = self.calls.iter().position(|call| call.call_id == call_id).unwrap_or_else(|| {
            let (call_id, name) = (call_id.to_owned(), name.to_owned());
            self.calls.push(CallDraft { since, call_id, name, arguments: Transcript::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl From<CallDraft> for CallSoFar {
    fn from(call: CallDraft) -> Self {
        let text = call.arguments.into_text();
        // Arguments are an object, so no beginning of them is JSON by itself.
        let input = serde_json::from_str(&text).ok();
        let input_text = if input.is_none() { Some(text) } else { None };
        let (output, error, expires_at) = (None, None, None);
        let status = ToolCallStatus::Requested;
        Self { call_id: call.call_id, name: call.name, input, input_text, status, output, error, expires_at }
    }
}

impl CallSoFar {
    fn take_input(&mut self, input: Value) {
        self.input = Some(input);
        self.input_text = None;
    }
}

impl From<ApprovalRequested<'_>> for OpenApproval {
    fn from(requested: ApprovalRequested<'_>) -> Self {
        Self {
            approval_id: requested.approval_id,
            call_id: requested.call_id.into_owned(),
            kind: requested.kind.as_str().to_owned(),
            name: requested.name.into_owned(),
            input: requested.input.to_value(),
            expires_at: timestamp::text(requested.expires_at),
        }
    }
}

impl Snapshot {
    /// Applies an event that is more than a piece of text.
    fn apply(&mut self, body: EventBody<'_>) {
        match body {
            EventBody::AttemptStarted(_) => self.status = RunStatus::Running,
            EventBody::ToolCallStarted(started) => self.started(started),
            EventBody::ToolCallCompleted(completed) => {
                if let Some(call) = self.call(&completed.call_id) {
                    call.status = ToolCallStatus::Completed;
                    call.output = completed.output.map(|output| output.into_owned());
                    (call.error, call.expires_at) = (completed.error, None);
                    if let Some(input) = completed.input {
                        call.take_input(input.to_value());
                    }
                }
                self.answered();
            }
            EventBody::ApprovalRequested(requested) => {
                if let Some(call) = self.call(&requested.call_id) {
                    call.status = ToolCallStatus::Waiting;
                    call.take_input(requested.input.to_value());
                }
                self.status = RunStatus::Waiting;
                self.approvals.push(requested.into());
            }
            EventBody::ApprovalResolved(resolved) => {
                self.approvals.retain(|approval| approval.approval_id != resolved.approval_id);
                if let (Some(call), Some(input)) = (self.call(&resolved.call_id), resolved.edited_input) {
                    call.take_input(input.to_value());
                }
                self.answered();
            }
            EventBody::StepCompleted(step) => *self.usage.get_or_insert_default() += step.usage,
            EventBody::RunCompleted(end) => {
                self.ended(RunStatus::Completed, end.usage);
                self.finish_reason = end.finish_reason;
            }
            EventBody::RunFailed(end) => {
                self.ended(RunStatus::Failed, end.usage);
                self.error = Some(end.error);
            }
            EventBody::RunCancelled(end) => self.ended(RunStatus::Cancelled, end.usage),
            // `Folding` keeps no other event.
            EventBody::RunQueued(_)
            | EventBody::StepStarted(_)
            | EventBody::MessageDelta(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::WarningRaised(_)
            | EventBody::Unknown => {}
        }
    }

    fn started(&mut self, started: ToolCallStarted<'_>) {
        let by_client = started.by == ExecutedBy::Client;
        if by_client {
            self.status = RunStatus::Waiting;
        }
        if let Some(call) = self.call(&started.call_id) {
            call.status = if by_client { ToolCallStatus::Client } else { ToolCallStatus::Called };
            call.expires_at = started.expires_at.map(timestamp::text);
            call.take_input(started.input.to_value());
        }
    }

    /// With the last answer, a run that waits is queued.
    fn answered(&mut self) {
        let is_open = |call: &CallSoFar| call.status == ToolCallStatus::Client;
        if self.status == RunStatus::Waiting && self.approvals.is_empty() && !self.tool_calls.iter().any(is_open) {
            self.status = RunStatus::Queued;
        }
    }

    fn ended(&mut self, status: RunStatus, usage: Usage) {
        (self.status, self.usage) = (status, Some(usage));
        self.approvals.clear();
        for call in &mut self.tool_calls {
            if call.status != ToolCallStatus::Completed {
                call.status = ToolCallStatus::Abandoned;
            }
        }
    }

    fn call(&mut self, call_id: &str) -> Option<&mut CallSoFar> {
        self.tool_calls.iter_mut().find(|call| call.call_id == call_id)
    }
}

#[cfg(test)]
mod tests;
