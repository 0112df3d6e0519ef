//! The fold of a run's events into its message, for clients: text, reasoning, tool calls and open questions.
//!
//! `transcript` folds the text alone. Both drop what later attempts have superseded, and skip payloads that a newer
//! version wrote and this one cannot read.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    event::{ApprovalRequested, Event, EventBody, ExecutedBy, ToolCallStarted},
    event_id::EventId,
    file::ToolFile,
    finish_reason::FinishReason,
    run::{RunError, RunStatus},
    timestamp,
    tool::{ToolCallStatus, ToolError},
    transcript::Transcript,
    usage::Usage,
};

/// The type of the frame with a snapshot. The log has no event of this type.
pub const RUN_SNAPSHOT: &str = "run.snapshot";

/// A run's message, folded from its events so far.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Snapshot {
    /// The id that the answer has, or will have.
    pub message_id: Option<Uuid>,
    /// The status by the events: a run that its worker handed over is `running` until another worker claims it.
    pub status: RunStatus,
    /// The text of the answer so far.
    pub text: String,
    /// The model's reasoning so far.
    pub reasoning: String,
    /// In the order in which the model asked for them.
    pub tool_calls: Vec<CallSnapshot>,
    /// The approvals that are still pending.
    pub approvals: Vec<OpenApproval>,
    /// The usage of the completed steps; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model ended the answer, after the run has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Why the run has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// The state of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = CallSoFar)]
pub struct CallSnapshot {
    /// The id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The arguments once they are complete; null before.
    pub input: Option<Value>,
    /// The arguments that the model has written so far, while they are incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    /// The status by the events.
    pub status: ToolCallStatus,
    /// The child run that answers the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
    /// The text that the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why there is no output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// The files that the tool has returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToolFile>,
    /// When a call that the client executes expires without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A question that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpenApproval {
    /// The id of the approval.
    pub approval_id: Uuid,
    /// The call that waits for it.
    pub call_id: String,
    /// The run below that asks; absent for a question of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
    /// `policy` or `unknown_outcome`.
    pub kind: String,
    /// The tool.
    pub name: String,
    /// The arguments of the call.
    pub input: Value,
    /// When the approval counts as denied.
    pub expires_at: String,
}

/// Folds events into a snapshot. It takes as much memory as the message, and 16 bytes for each delta.
#[derive(Debug, Default)]
pub struct SnapshotBuilder {
    message_id: Option<Uuid>,
    text: Transcript,
    reasoning: Transcript,
    calls: Vec<CallDraft>,
    /// The events other than deltas, without the superseded ones.
    events: Vec<Event>,
    /// The stored answer, which replaces the deltas.
    stored_text: Option<String>,
}

/// A call as the model has written it so far.
#[derive(Debug)]
struct CallDraft {
    since: EventId,
    call_id: String,
    name: String,
    arguments: Transcript,
}

impl SnapshotBuilder {
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
            EventBody::MessageCompleted(completed) => self.stored_text = Some(completed.message.content.to_stored()),
            EventBody::ToolCallStarted(started) => self.note(event, &started.call_id, &started.name),
            EventBody::ToolCallCompleted(completed) => self.note(event, &completed.call_id, &completed.name),
            EventBody::ApprovalRequested(requested) if requested.child_run_id.is_none() => {
                self.note(event, &requested.call_id, &requested.name);
            }
            EventBody::AttemptStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ApprovalResolved(_)
            | EventBody::SubagentStarted(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_) => self.events.push(event.detached()),
            EventBody::StepStarted(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationAdded(_)
            | EventBody::CitationDropped(_)
            | EventBody::WarningRaised(_)
            | EventBody::PlanCreated(_)
            | EventBody::PlanUpdated(_)
            | EventBody::PlanReviewed(_)
            | EventBody::PlanStepStarted(_)
            | EventBody::PlanStepCompleted(_)
            | EventBody::QuestionAsked(_)
            | EventBody::ContextShifted(_)
            | EventBody::FocusChanged(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::TemplateRequested(_)
            | EventBody::TemplateSuggested(_)
            | EventBody::MemoryTold(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::MessageSteered(_)
            | EventBody::Unknown => {}
        }
    }

    /// Returns the message as of the last event.
    pub fn into_snapshot(self) -> Snapshot {
        let mut snapshot = Snapshot {
            message_id: self.message_id,
            status: RunStatus::Queued,
            text: self.stored_text.unwrap_or_else(|| self.text.into_text()),
            reasoning: self.reasoning.into_text(),
            tool_calls: self.calls.into_iter().map(CallSnapshot::from).collect(),
            approvals: Vec::new(),
            usage: None,
            finish_reason: None,
            error: None,
        };
        // Each event frees its memory once it is applied.
        for event in self.events {
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
        self.events.truncate(self.events.partition_point(|event| event.id <= base));
    }

    /// Keeps an event about a call.
    fn note(&mut self, event: &Event, call_id: &str, name: &str) {
        self.call(event.id, call_id, name);
        self.events.push(event.detached());
    }

    /// Returns the call of that id, and adds it if no event has named it before.
    fn call(&mut self, since: EventId, call_id: &str, name: &str) -> &mut CallDraft {
        let at = self.calls.iter().position(|call| call.call_id == call_id).unwrap_or_else(|| {
            let (call_id, name) = (call_id.to_owned(), name.to_owned());
            self.calls.push(CallDraft { since, call_id, name, arguments: Transcript::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl From<CallDraft> for CallSnapshot {
    fn from(call: CallDraft) -> Self {
        let text = call.arguments.into_text();
        // Arguments are an object, so an incomplete text of them is never valid JSON.
        let input = serde_json::from_str(&text).ok();
        let input_text = if input.is_none() { Some(text) } else { None };
        Self {
            call_id: call.call_id,
            name: call.name,
            input,
            input_text,
            status: ToolCallStatus::Requested,
            child_run_id: None,
            output: None,
            error: None,
            files: Vec::new(),
            expires_at: None,
        }
    }
}

impl CallSnapshot {
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
            child_run_id: requested.child_run_id,
            kind: requested.kind.as_str().to_owned(),
            name: requested.name.into_owned(),
            input: requested.input.to_value(),
            expires_at: timestamp::text(requested.expires_at),
        }
    }
}

impl Snapshot {
    /// Applies an event other than a delta.
    fn apply(&mut self, body: EventBody<'_>) {
        match body {
            EventBody::AttemptStarted(_) => self.status = RunStatus::Running,
            EventBody::ToolCallStarted(started) => self.start_call(started),
            EventBody::SubagentStarted(started) => {
                if let Some(call) = self.call(&started.call_id) {
                    call.child_run_id = Some(started.child_run_id);
                }
            }
            EventBody::ToolCallCompleted(completed) => {
                if let Some(call) = self.call(&completed.call_id) {
                    call.status = ToolCallStatus::Completed;
                    call.output = completed.output.map(|output| output.into_owned());
                    (call.error, call.files, call.expires_at) = (completed.error, completed.files, None);
                    if let Some(input) = completed.input {
                        call.take_input(input.to_value());
                    }
                }
                self.update_wait();
            }
            EventBody::ApprovalRequested(requested) => {
                if requested.child_run_id.is_none()
                    && let Some(call) = self.call(&requested.call_id)
                {
                    call.status = ToolCallStatus::Waiting;
                    call.take_input(requested.input.to_value());
                }
                self.status = RunStatus::Waiting;
                self.approvals.push(requested.into());
            }
            EventBody::ApprovalResolved(resolved) => {
                self.approvals.retain(|approval| approval.approval_id != resolved.approval_id);
                if resolved.child_run_id.is_none()
                    && let (Some(call), Some(input)) = (self.call(&resolved.call_id), resolved.edited_input)
                {
                    call.take_input(input.to_value());
                }
                self.update_wait();
            }
            EventBody::StepCompleted(step) => *self.usage.get_or_insert_default() += step.usage,
            EventBody::RunCompleted(end) => {
                self.end(RunStatus::Completed, end.usage);
                self.finish_reason = end.finish_reason;
            }
            EventBody::RunFailed(end) => {
                self.end(RunStatus::Failed, end.usage);
                self.error = Some(end.error);
            }
            EventBody::RunCancelled(end) => self.end(RunStatus::Cancelled, end.usage),
            // The builder keeps no other event.
            EventBody::RunQueued(_)
            | EventBody::StepStarted(_)
            | EventBody::MessageDelta(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationAdded(_)
            | EventBody::CitationDropped(_)
            | EventBody::WarningRaised(_)
            | EventBody::PlanCreated(_)
            | EventBody::PlanUpdated(_)
            | EventBody::PlanReviewed(_)
            | EventBody::PlanStepStarted(_)
            | EventBody::PlanStepCompleted(_)
            | EventBody::QuestionAsked(_)
            | EventBody::ContextShifted(_)
            | EventBody::FocusChanged(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::TemplateRequested(_)
            | EventBody::TemplateSuggested(_)
            | EventBody::MemoryTold(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::MessageSteered(_)
            | EventBody::Unknown => {}
        }
    }

    fn start_call(&mut self, started: ToolCallStarted<'_>) {
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

    /// Ends the wait for a human after the last answer. A run with live children counts as running.
    fn update_wait(&mut self) {
        let is_open = |call: &CallSnapshot| call.status == ToolCallStatus::Client;
        if self.status == RunStatus::Waiting && self.approvals.is_empty() && !self.tool_calls.iter().any(is_open) {
            let is_delegated =
                |call: &CallSnapshot| call.child_run_id.is_some() && call.status == ToolCallStatus::Called;
            let delegates = self.tool_calls.iter().any(is_delegated);
            self.status = if delegates { RunStatus::Running } else { RunStatus::Queued };
        }
    }

    fn end(&mut self, status: RunStatus, usage: Usage) {
        (self.status, self.usage) = (status, Some(usage));
        self.approvals.clear();
        for call in &mut self.tool_calls {
            if call.status != ToolCallStatus::Completed {
                call.status = ToolCallStatus::Abandoned;
            }
        }
    }

    fn call(&mut self, call_id: &str) -> Option<&mut CallSnapshot> {
        self.tool_calls.iter_mut().find(|call| call.call_id == call_id)
    }
}

#[cfg(test)]
mod tests;
