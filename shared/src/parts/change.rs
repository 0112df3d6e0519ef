//! The changes of parts by events other than deltas.

use serde_json::{Value, json};

use super::{CallApproval, CallProgress, MessagePart, MessageParts, QuestionPart};
use crate::{
    approval::ApprovalStatus,
    event::{ApprovalResolved, EventBody, ExecutedBy},
};

/// The change by an event other than a delta. It has no input and no output, which may be large.
#[derive(Debug, Clone)]
pub enum PartChange {
    None,
    Step,
    Context(Value),
    Warning(Value),
    Source(Value),
    Dropped(Value),
    Questions(Value),
    Started { call_id: String, name: String, by: ExecutedBy },
    Asked { name: String, question: QuestionPart },
    Resolved { call_id: String, approval: CallApproval, is_withdrawn: bool, is_edited: bool },
    Completed { call_id: String, name: String, by: Option<ExecutedBy>, is_refused: bool },
}

impl PartChange {
    pub fn of(body: &EventBody<'_>) -> Self {
        match body {
            EventBody::StepStarted(_) => Self::Step,
            EventBody::ContextUsage(usage) => Self::Context(json!(usage)),
            EventBody::WarningRaised(warning) => Self::Warning(json!(warning)),
            EventBody::CitationAdded(citation) => Self::Source(json!(citation)),
            EventBody::CitationDropped(dropped) => Self::Dropped(json!(dropped)),
            EventBody::QuestionAsked(asked) => Self::Questions(json!(asked)),
            EventBody::ToolCallStarted(started) => {
                Self::Started { call_id: started.call_id.to_string(), name: started.name.to_string(), by: started.by }
            }
            // The runs below have parts of their own.
            EventBody::ApprovalRequested(requested) if requested.child_run_id.is_some() => Self::None,
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
                    by: completed.by,
                    is_refused: completed.input.is_some() && !matches!(code, Some("denied" | "approval_expired")),
                }
            }
            EventBody::RunQueued(_)
            | EventBody::AttemptStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::MessageDelta(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::AgentState(_)
            | EventBody::PlanCreated(_)
            | EventBody::PlanUpdated(_)
            | EventBody::PlanReviewed(_)
            | EventBody::PlanStepStarted(_)
            | EventBody::PlanStepCompleted(_)
            | EventBody::ContextShifted(_)
            | EventBody::FocusChanged(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::TemplateRequested(_)
            | EventBody::TemplateSuggested(_)
            | EventBody::MemoryTold(_)
            | EventBody::SubagentStarted(_)
            | EventBody::MessageSteered(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_)
            | EventBody::Unknown => Self::None,
        }
    }

    fn resolved(resolved: &ApprovalResolved<'_>) -> Self {
        if resolved.child_run_id.is_some() {
            return Self::None;
        }
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

impl MessageParts {
    /// Applies the answer to a question.
    pub fn resolve(&mut self, resolved: &ApprovalResolved<'_>) {
        self.apply(PartChange::resolved(resolved));
    }

    pub(super) fn apply(&mut self, change: PartChange) {
        match change {
            PartChange::None => {}
            PartChange::Step => self.parts.push(MessagePart::Step),
            PartChange::Warning(payload) => self.parts.push(MessagePart::Warning { payload }),
            PartChange::Source(payload) => self.parts.push(MessagePart::Source { payload }),
            PartChange::Dropped(payload) => self.parts.push(MessagePart::Dropped { payload }),
            PartChange::Questions(payload) => self.parts.push(MessagePart::Questions { payload }),
            PartChange::Context(payload) => {
                let known = self.parts.iter_mut().find(|part| matches!(part, MessagePart::Context { .. }));
                match known {
                    Some(known) => *known = MessagePart::Context { payload },
                    None => self.parts.push(MessagePart::Context { payload }),
                }
            }
            PartChange::Started { call_id, name, by } => {
                let call = self.call_named(&call_id, &name);
                call.state = CallProgress::Started;
                call.by = Some(by);
                call.by_worker |= by == ExecutedBy::Worker;
            }
            PartChange::Asked { name, question } => {
                let call = self.call_named(&question.call_id, &name);
                call.state = CallProgress::Asked;
                // Workers alone ask before a call.
                call.by = Some(ExecutedBy::Worker);
                call.approval = Some(CallApproval { id: question.approval_id, approved: None, reason: None });
                self.parts.push(MessagePart::Question(question));
            }
            PartChange::Resolved { call_id, approval, is_withdrawn, is_edited } => {
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
            PartChange::Completed { call_id, name, by, is_refused } => {
                // No earlier event has announced a call that was refused.
                if is_refused {
                    self.call_named(&call_id, &name).by_worker = true;
                }
                if let Some(call) = self.call(&call_id) {
                    call.state = CallProgress::Ended;
                    call.by = by.or(call.by);
                }
                self.parts.push(MessagePart::CallEnd { call_id });
            }
        }
    }
}
