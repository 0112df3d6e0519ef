//! The fold of a run's events into its message as a page shows it: text, reasoning, tool calls and open questions.
//!
//! `transcript` is the fold of the text alone. Both take back what later attempts have superseded. Payloads that cannot be
//! read, because a newer version wrote them, tell nothing.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    event::{
        APPROVAL_REQUESTED, APPROVAL_RESOLVED, ATTEMPT_STARTED, Event, MESSAGE_COMPLETED, REASONING_DELTA,
        RUN_CANCELLED, RUN_COMPLETED, RUN_FAILED, RUN_QUEUED, STEP_COMPLETED, TOOL_CALL_COMPLETED, TOOL_CALL_DELTA,
        TOOL_CALL_STARTED,
    },
    event_id::EventId,
    finish_reason::FinishReason,
    message::Message,
    run::{RunError, RunStatus},
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
    calls: Vec<Written>,
    facts: Vec<(EventId, Fact)>,
    /// The answer as it is stored, which says the last word.
    stored: Option<String>,
}

/// A call as the model has written it.
#[derive(Debug)]
struct Written {
    since: EventId,
    call_id: String,
    name: String,
    arguments: Transcript,
}

/// What an event says beside text.
#[derive(Debug)]
enum Fact {
    Attempt,
    Started(Started),
    Completed(Completed),
    Asked(OpenApproval),
    Resolved(Resolved),
    Step(Usage),
    Ended(RunStatus, End),
}

#[derive(Debug, Deserialize)]
struct Started {
    call_id: String,
    name: String,
    input: Value,
    by: String,
    expires_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Completed {
    call_id: String,
    name: String,
    /// Of a call that was refused, and so never started.
    input: Option<Value>,
    output: Option<String>,
    error: Option<ToolError>,
}

#[derive(Debug, Deserialize)]
struct Resolved {
    approval_id: Uuid,
    call_id: String,
    edited_input: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    usage: Usage,
    finish_reason: Option<FinishReason>,
    error: Option<RunError>,
}

impl Folding {
    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        self.text.push(event);
        match event.kind() {
            RUN_QUEUED => self.queued(event),
            REASONING_DELTA => self.reasoned(event),
            TOOL_CALL_DELTA => self.wrote(event),
            MESSAGE_COMPLETED => self.stored(event),
            kind => {
                if let Some(fact) = Fact::told_by(kind, event) {
                    self.note(event.id, fact);
                }
            }
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
        for (_, fact) in self.facts {
            snapshot.learn(fact);
        }
        snapshot
    }

    fn supersede_after(&mut self, base: EventId) {
        self.reasoning.supersede_after(base);
        self.calls.retain(|call| call.since <= base);
        for call in &mut self.calls {
            call.arguments.supersede_after(base);
        }
        self.facts.truncate(self.facts.partition_point(|(id, _)| *id <= base));
    }

    fn note(&mut self, id: EventId, fact: Fact) {
        if let Some((call_id, name)) = fact.call() {
            self.call(id, call_id, name);
        }
        self.facts.push((id, fact));
    }

    fn queued(&mut self, event: &Event) {
        #[derive(Deserialize)]
        struct Queued {
            message_id: Uuid,
        }
        self.message_id = payload::<Queued>(event).map(|queued| queued.message_id);
    }

    fn reasoned(&mut self, event: &Event) {
        #[derive(Deserialize)]
        struct Thought {
            text: String,
        }
        if let Some(thought) = payload::<Thought>(event) {
            self.reasoning.push_text(event.id, &thought.text);
        }
    }

    fn wrote(&mut self, event: &Event) {
        #[derive(Deserialize)]
        struct Piece {
            call_id: String,
            #[serde(default)]
            name: String,
            text: String,
        }
        if let Some(piece) = payload::<Piece>(event) {
            self.call(event.id, &piece.call_id, &piece.name).arguments.push_text(event.id, &piece.text);
        }
    }

    fn stored(&mut self, event: &Event) {
        #[derive(Deserialize)]
        struct Stored {
            message: Message,
        }
        self.stored = payload::<Stored>(event).map(|stored| stored.message.content.to_stored());
    }

    /// The call of that id, which may be heard of for the first time.
    fn call(&mut self, since: EventId, call_id: &str, name: &str) -> &mut Written {
        let at = self.calls.iter().position(|call| call.call_id == call_id).unwrap_or_else(|| {
            let (call_id, name) = (call_id.to_owned(), name.to_owned());
            self.calls.push(Written { since, call_id, name, arguments: Transcript::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl Fact {
    fn told_by(kind: &str, event: &Event) -> Option<Self> {
        #[derive(Deserialize)]
        struct Step {
            usage: Usage,
        }
        match kind {
            ATTEMPT_STARTED => Some(Self::Attempt),
            TOOL_CALL_STARTED => payload(event).map(Self::Started),
            TOOL_CALL_COMPLETED => payload(event).map(Self::Completed),
            APPROVAL_REQUESTED => payload(event).map(Self::Asked),
            APPROVAL_RESOLVED => payload(event).map(Self::Resolved),
            STEP_COMPLETED => payload::<Step>(event).map(|step| Self::Step(step.usage)),
            RUN_COMPLETED => Some(Self::Ended(RunStatus::Completed, payload(event).unwrap_or_default())),
            RUN_FAILED => Some(Self::Ended(RunStatus::Failed, payload(event).unwrap_or_default())),
            RUN_CANCELLED => Some(Self::Ended(RunStatus::Cancelled, payload(event).unwrap_or_default())),
            _ => None,
        }
    }

    /// The id and the name of the call that it is about.
    fn call(&self) -> Option<(&str, &str)> {
        match self {
            Self::Started(started) => Some((&started.call_id, &started.name)),
            Self::Completed(completed) => Some((&completed.call_id, &completed.name)),
            Self::Asked(approval) => Some((&approval.call_id, &approval.name)),
            _ => None,
        }
    }
}

impl From<Written> for CallSoFar {
    fn from(call: Written) -> Self {
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
    fn takes(&mut self, input: Value) {
        self.input = Some(input);
        self.input_text = None;
    }
}

impl Snapshot {
    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Attempt => self.status = RunStatus::Running,
            Fact::Started(started) => {
                let by_client = started.by == "client";
                if by_client {
                    self.status = RunStatus::Waiting;
                }
                if let Some(call) = self.call(&started.call_id) {
                    call.status = if by_client { ToolCallStatus::Client } else { ToolCallStatus::Called };
                    call.expires_at = started.expires_at;
                    call.takes(started.input);
                }
            }
            Fact::Completed(completed) => {
                if let Some(call) = self.call(&completed.call_id) {
                    call.status = ToolCallStatus::Completed;
                    (call.output, call.error, call.expires_at) = (completed.output, completed.error, None);
                    if let Some(input) = completed.input {
                        call.takes(input);
                    }
                }
                self.answered();
            }
            Fact::Asked(approval) => {
                if let Some(call) = self.call(&approval.call_id) {
                    call.status = ToolCallStatus::Waiting;
                    call.takes(approval.input.clone());
                }
                self.status = RunStatus::Waiting;
                self.approvals.push(approval);
            }
            Fact::Resolved(resolved) => {
                self.approvals.retain(|approval| approval.approval_id != resolved.approval_id);
                if let (Some(call), Some(input)) = (self.call(&resolved.call_id), resolved.edited_input) {
                    call.takes(input);
                }
                self.answered();
            }
            Fact::Step(usage) => *self.usage.get_or_insert_default() += usage,
            Fact::Ended(status, end) => self.ended(status, end),
        }
    }

    /// With the last answer, a run that waits is queued.
    fn answered(&mut self) {
        let is_open = |call: &CallSoFar| call.status == ToolCallStatus::Client;
        if self.status == RunStatus::Waiting && self.approvals.is_empty() && !self.tool_calls.iter().any(is_open) {
            self.status = RunStatus::Queued;
        }
    }

    fn ended(&mut self, status: RunStatus, end: End) {
        (self.status, self.usage, self.error) = (status, Some(end.usage), end.error);
        self.finish_reason = end.finish_reason;
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

fn payload<T: DeserializeOwned>(event: &Event) -> Option<T> {
    serde_json::from_slice(event.payload()).ok()
}

#[cfg(test)]
mod tests;
