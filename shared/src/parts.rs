//! The parts of a run's message, in the order in which its reader has seen them.
//!
//! The database stores them when the run ends, so a history needs no log. They are short: a part refers to the message's
//! text by its length, and to a tool call by its id, because the call's row has the input, the output and the duration.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    approval::{ApprovalKind, ApprovalStatus},
    event::{ApprovalResolved, Event, EventBody, ExecutedBy},
    event_id::EventId,
    storable::{storable, storable_json},
    storage::CallOutcome,
    trace::{TraceMessage, TraceRole},
};

/// The parts of one message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageParts {
    /// The time of the run's last event, in ms since the Unix epoch.
    pub ended_ms: i64,
    /// The parts, in order.
    pub parts: Vec<MessagePart>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// A step of the agent begins.
    Step,
    /// The next characters of the message's text.
    Text {
        /// Their number.
        chars: usize,
    },
    /// The model's reasoning.
    Reasoning {
        /// The complete text.
        text: String,
        /// The time from its first to its last event.
        duration_ms: u64,
    },
    /// A call of a tool.
    Call(CallPart),
    /// The end of a call.
    CallEnd {
        /// The call.
        call_id: String,
    },
    /// A question to a human.
    Question(QuestionPart),
    /// How full the model's context window was at last: the payload of the event.
    Context {
        /// The payload.
        payload: Value,
    },
    /// A warning: the payload of the event.
    Warning {
        /// The payload.
        payload: Value,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPart {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What has become of it.
    pub state: CallProgress,
    /// Whether a worker executes it, and not the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_worker: bool,
    /// The newest question about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<CallApproval>,
}

/// What has become of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallProgress {
    /// The model wrote these arguments, and did not complete them.
    Incomplete(String),
    /// It was started, or may be.
    Started,
    /// It waited for a human.
    Asked,
    /// The question about it was withdrawn.
    Withdrawn,
    /// It has an outcome.
    Ended,
}

/// A question about a call, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallApproval {
    /// The approval.
    pub id: Uuid,
    /// Whether the human has approved the call; absent before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// The human's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A question to a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionPart {
    /// The approval.
    pub approval_id: Uuid,
    /// The call that the question is about.
    pub call_id: String,
    /// Why a human must decide.
    pub kind: ApprovalKind,
    /// When the approval counts as denied.
    pub expires_at: DateTime<Utc>,
    /// Whether the human has changed the input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

impl MessageParts {
    /// Returns the parts that a run's trace tells of, without reasoning, questions and warnings.
    pub fn of_trace(ended_ms: i64, trace: &[TraceMessage], calls: &[CallOutcome]) -> Self {
        let mut parts = Vec::new();
        for step in trace.iter().filter(|step| step.role == TraceRole::Assistant) {
            parts.push(MessagePart::Step);
            if !step.content.is_empty() {
                parts.push(MessagePart::Text { chars: step.content.chars().count() });
            }
            for request in &step.tool_calls {
                let Some(call) = calls.iter().find(|call| call.call_id == request.call_id) else { continue };
                let (call_id, name) = (call.call_id.clone(), request.name.clone());
                let has_ended = call.output.is_some() || call.error.is_some();
                let state = if has_ended { CallProgress::Ended } else { CallProgress::Started };
                parts.push(MessagePart::Call(CallPart { call_id, name, state, by_worker: true, approval: None }));
                if has_ended {
                    parts.push(MessagePart::CallEnd { call_id: call.call_id.clone() });
                }
            }
        }
        Self { ended_ms, parts }
    }

    /// Returns the number of characters that the parts have of the message's text.
    pub fn text_chars(&self) -> usize {
        let chars = self.parts.iter().map(|part| if let MessagePart::Text { chars } = part { *chars } else { 0 });
        chars.sum()
    }

    /// Appends the text that no delta has brought, because a run without deltas writes its text at the end.
    pub fn complete_text(&mut self, text: &str) {
        let chars = text.chars().count().saturating_sub(self.text_chars());
        if chars > 0 {
            self.parts.push(MessagePart::Text { chars });
        }
    }

    /// Replaces what no database can store.
    pub fn into_storable(self) -> Self {
        let storable_part = |part| match part {
            MessagePart::Reasoning { text, duration_ms } => {
                MessagePart::Reasoning { text: storable(text), duration_ms }
            }
            MessagePart::Call(mut call) => {
                if let CallProgress::Incomplete(text) = call.state {
                    call.state = CallProgress::Incomplete(storable(text));
                }
                if let Some(approval) = &mut call.approval {
                    approval.reason = approval.reason.take().map(storable);
                }
                MessagePart::Call(CallPart { name: storable(call.name), ..call })
            }
            MessagePart::Context { payload } => MessagePart::Context { payload: storable_json(payload) },
            MessagePart::Warning { payload } => MessagePart::Warning { payload: storable_json(payload) },
            other => other,
        };
        Self { parts: self.parts.into_iter().map(storable_part).collect(), ..self }
    }

    /// Applies the answer to a question.
    pub fn resolve(&mut self, resolved: &ApprovalResolved<'_>) {
        self.apply(Change::resolved(resolved));
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::None => {}
            Change::Step => self.parts.push(MessagePart::Step),
            Change::Warning(payload) => self.parts.push(MessagePart::Warning { payload }),
            Change::Context(payload) => {
                let known = self.parts.iter_mut().find(|part| matches!(part, MessagePart::Context { .. }));
                match known {
                    Some(known) => *known = MessagePart::Context { payload },
                    None => self.parts.push(MessagePart::Context { payload }),
                }
            }
            Change::Started { call_id, name, by_worker } => {
                let call = self.call_named(&call_id, &name);
                call.state = CallProgress::Started;
                call.by_worker |= by_worker;
            }
            Change::Asked { name, question } => {
                let call = self.call_named(&question.call_id, &name);
                call.state = CallProgress::Asked;
                call.approval = Some(CallApproval { id: question.approval_id, approved: None, reason: None });
                self.parts.push(MessagePart::Question(question));
            }
            Change::Resolved { call_id, approval, is_withdrawn, is_edited } => {
                for part in &mut self.parts {
                    if let MessagePart::Question(question) = part
                        && question.approval_id == approval.id
                    {
                        question.edited |= is_edited;
                    }
                }
                if let Some(call) = self.call(&call_id) {
                    call.approval = Some(approval);
                    if is_withdrawn {
                        call.state = CallProgress::Withdrawn;
                    }
                }
            }
            Change::Completed { call_id, name, is_refused } => {
                // No earlier event has announced a call that was refused.
                if is_refused {
                    self.call_named(&call_id, &name).by_worker = true;
                }
                if let Some(call) = self.call(&call_id) {
                    call.state = CallProgress::Ended;
                }
                self.parts.push(MessagePart::CallEnd { call_id });
            }
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut CallPart> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            MessagePart::Call(call) if call.call_id == id => Some(call),
            _ => None,
        })
    }

    /// Returns the call, and adds it if no event has named it before.
    fn call_named(&mut self, id: &str, name: &str) -> &mut CallPart {
        let is_it = |part: &MessagePart| matches!(part, MessagePart::Call(call) if call.call_id == id);
        let index = self.parts.iter().rposition(is_it).unwrap_or_else(|| {
            let (call_id, name, state) = (id.to_owned(), name.to_owned(), CallProgress::Incomplete(String::new()));
            self.parts.push(MessagePart::Call(CallPart { call_id, name, state, by_worker: false, approval: None }));
            self.parts.len() - 1
        });
        let MessagePart::Call(call) = &mut self.parts[index] else { unreachable!("the index is that of a call") };
        call
    }
}

/// Folds events into parts. It takes as much memory as the message without its text, and 16 bytes for each delta.
#[derive(Debug, Clone, Default)]
pub struct PartsBuilder(Vec<Entry>);

/// What the builder keeps of the log, because a later attempt may supersede it.
#[derive(Debug, Clone)]
enum Entry {
    Deltas(DeltaRun),
    Change { id: EventId, at_ms: i64, change: Change },
}

/// What an event other than a delta changes. It has no input and no output, which may be large.
#[derive(Debug, Clone)]
enum Change {
    None,
    Step,
    Context(Value),
    Warning(Value),
    Started { call_id: String, name: String, by_worker: bool },
    Asked { name: String, question: QuestionPart },
    Resolved { call_id: String, approval: CallApproval, is_withdrawn: bool, is_edited: bool },
    Completed { call_id: String, name: String, is_refused: bool },
}

impl Change {
    fn of(body: &EventBody<'_>) -> Self {
        match body {
            EventBody::StepStarted(_) => Self::Step,
            EventBody::ContextUsage(usage) => Self::Context(json!(usage)),
            EventBody::WarningRaised(warning) => Self::Warning(json!(warning)),
            EventBody::ToolCallStarted(started) => Self::Started {
                call_id: started.call_id.to_string(),
                name: started.name.to_string(),
                by_worker: started.by == ExecutedBy::Worker,
            },
            EventBody::ApprovalRequested(requested) => Self::Asked {
                name: requested.name.to_string(),
                question: QuestionPart {
                    approval_id: requested.approval_id,
                    call_id: requested.call_id.to_string(),
                    kind: requested.kind,
                    expires_at: requested.expires_at,
                    edited: false,
                },
            },
            EventBody::ApprovalResolved(resolved) => Self::resolved(resolved),
            EventBody::ToolCallCompleted(completed) => {
                let code = completed.error.as_ref().map(|error| error.code.as_str());
                Self::Completed {
                    call_id: completed.call_id.to_string(),
                    name: completed.name.to_string(),
                    is_refused: completed.input.is_some() && !matches!(code, Some("denied" | "approval_expired")),
                }
            }
            EventBody::RunQueued(_)
            | EventBody::AttemptStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::MessageDelta(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::AgentState(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_)
            | EventBody::Unknown => Self::None,
        }
    }

    fn resolved(resolved: &ApprovalResolved<'_>) -> Self {
        let (id, decision) = (resolved.approval_id, resolved.decision);
        let approved = Some(decision == ApprovalStatus::Approved);
        Self::Resolved {
            call_id: resolved.call_id.to_string(),
            approval: CallApproval { id, approved, reason: resolved.reason.as_deref().map(str::to_owned) },
            is_withdrawn: matches!(decision, ApprovalStatus::Superseded | ApprovalStatus::Cancelled),
            is_edited: resolved.edited_input.is_some(),
        }
    }
}

/// Consecutive deltas of one kind.
#[derive(Debug, Clone)]
struct DeltaRun {
    kind: DeltaKind,
    since_ms: i64,
    text: String,
    /// For each delta, the length of the run at its end: in characters for a text, which is not kept, else in bytes.
    ends: Vec<(EventId, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Reasoning,
    /// The arguments of a call, with the tool's name in the first delta of the call.
    Arguments {
        call_id: String,
        name: Option<String>,
    },
}

impl PartsBuilder {
    /// Applies the next event of the log.
    pub fn push(&mut self, event: &Event) {
        if let Some(base) = event.base {
            self.supersede_after(base);
        }
        self.push_body(event.id, event.at_ms, &event.body());
    }

    /// Applies an event that supersedes no other.
    pub fn push_body(&mut self, id: EventId, at_ms: i64, body: &EventBody<'_>) {
        match body {
            EventBody::MessageDelta(delta) => self.push_delta(DeltaKind::Text, id, at_ms, &delta.text),
            EventBody::ReasoningDelta(delta) => self.push_delta(DeltaKind::Reasoning, id, at_ms, &delta.text),
            EventBody::ToolCallDelta(delta) => {
                let (call_id, name) = (delta.call_id.to_string(), delta.name.as_deref().map(str::to_owned));
                self.push_delta(DeltaKind::Arguments { call_id, name }, id, at_ms, &delta.text);
            }
            body => self.0.push(Entry::Change { id, at_ms, change: Change::of(body) }),
        }
    }

    fn push_delta(&mut self, kind: DeltaKind, id: EventId, at_ms: i64, text: &str) {
        let continues = matches!(self.0.last(), Some(Entry::Deltas(run)) if run.continues_with(&kind));
        if !continues {
            self.0.push(Entry::Deltas(DeltaRun { kind, since_ms: at_ms, text: String::new(), ends: Vec::new() }));
        }
        if let Some(Entry::Deltas(run)) = self.0.last_mut() {
            run.push(id, text);
        }
    }

    /// Continues with the events of an attempt that this event has begun.
    pub fn followed_by(mut self, started: &Event, attempt: Self) -> Self {
        self.push(started);
        self.0.extend(attempt.0);
        self
    }

    fn supersede_after(&mut self, base: EventId) {
        self.0.retain_mut(|entry| match entry {
            Entry::Change { id, .. } => *id <= base,
            Entry::Deltas(run) => run.supersede_after(base),
        });
    }

    /// Returns the parts of a run that ends at this time, in ms since the Unix epoch.
    pub fn into_parts(self, end_ms: i64) -> MessageParts {
        let mut parts = MessageParts { ended_ms: end_ms, parts: Vec::new() };
        let mut entries = self.0.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let next_ms = entries.peek().map_or(end_ms, Entry::at_ms);
            match entry {
                Entry::Change { change, .. } => parts.apply(change),
                Entry::Deltas(run) => run.add_to(&mut parts, next_ms),
            }
        }
        parts
    }
}

impl Entry {
    const fn at_ms(&self) -> i64 {
        match self {
            Self::Change { at_ms, .. } => *at_ms,
            Self::Deltas(run) => run.since_ms,
        }
    }
}

impl DeltaRun {
    fn continues_with(&self, kind: &DeltaKind) -> bool {
        match (&self.kind, kind) {
            (DeltaKind::Arguments { call_id, .. }, DeltaKind::Arguments { call_id: next, name: None }) => {
                call_id == next
            }
            (known, next) => known == next,
        }
    }

    fn push(&mut self, id: EventId, text: &str) {
        let end = if self.kind == DeltaKind::Text {
            self.ends.last().map_or(0, |(_, end)| *end) + text.chars().count()
        } else {
            self.text.push_str(text);
            self.text.len()
        };
        self.ends.push((id, end));
    }

    /// Returns whether a delta is left.
    fn supersede_after(&mut self, base: EventId) -> bool {
        self.ends.truncate(self.ends.partition_point(|(id, _)| *id <= base));
        let end = self.ends.last().map_or(0, |(_, end)| *end);
        self.text.truncate(end);
        !self.ends.is_empty()
    }

    fn add_to(self, parts: &mut MessageParts, next_ms: i64) {
        match self.kind {
            DeltaKind::Text => {
                parts.parts.push(MessagePart::Text { chars: self.ends.last().map_or(0, |(_, end)| *end) });
            }
            DeltaKind::Reasoning => {
                let duration_ms = u64::try_from(next_ms - self.since_ms).unwrap_or_default();
                parts.parts.push(MessagePart::Reasoning { text: self.text, duration_ms });
            }
            DeltaKind::Arguments { call_id, name } => {
                let call = match name {
                    Some(name) => Some(parts.call_named(&call_id, &name)),
                    None => parts.call(&call_id),
                };
                if let Some(CallPart { state: CallProgress::Incomplete(input), .. }) = call {
                    input.push_str(&self.text);
                }
            }
        }
    }
}
