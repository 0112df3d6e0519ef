//! The fold of a run's log into the updates of a task.

use std::{borrow::Cow, sync::Arc};

use holdfast_shared::{
    approval::ApprovalKind,
    event::{AgentState, ApprovalRequested, Event, EventBody, EventKind, ExecutedBy, ToolCallStarted},
    event_id::EventId,
    timestamp,
};
use serde_json::{Value, json};

use super::{
    A2aView,
    task::{A2aPart, A2aState, A2aStatus, A2aTask, A2aUpdate},
};
use crate::wire::{Detail, answer_text::AnswerText, is_taken_over};

/// The state of a task after some events of its run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aFold {
    /// The last event.
    pub last: EventId,
    /// The number of its frames.
    pub frames: u32,
    at_ms: i64,
    state: A2aState,
    text: AnswerText,
    /// Whether a stream has an artifact that a text can follow.
    has_artifact: bool,
    questions: Arc<Vec<A2aQuestion>>,
    /// Whether the run waits for an answer to its questions.
    is_waiting: bool,
    /// Why the run has failed.
    failure: Option<Arc<str>>,
}

/// A question that the client can answer.
#[derive(Debug, Clone, PartialEq)]
struct A2aQuestion {
    /// The id of an approval, or of a call that a client executes.
    id: String,
    since: EventId,
    words: String,
    data: Value,
}

impl Default for A2aFold {
    fn default() -> Self {
        Self {
            last: EventId::ORIGIN,
            frames: 0,
            at_ms: 0,
            state: A2aState::Submitted,
            text: AnswerText::default(),
            has_artifact: false,
            questions: Arc::default(),
            is_waiting: false,
            failure: None,
        }
    }
}

impl A2aFold {
    /// Returns the task as of the last event.
    pub fn task(&self) -> A2aTask {
        let is_asking = self.is_waiting && !self.questions.is_empty();
        let status = if is_asking { self.question() } else { self.status(self.state) };
        A2aTask { status, text: Some(self.text.to_text()), history: Vec::new() }
    }

    /// Returns the task for a client that has answered.
    pub fn task_after_answer(&self) -> A2aTask {
        A2aTask { status: self.status(A2aState::Working), ..self.task() }
    }

    /// Returns the status of a run that waits for the client.
    pub fn question(&self) -> A2aStatus {
        let part =
            |question: &A2aQuestion| [A2aPart::Text(question.words.clone()), A2aPart::Data(question.data.clone())];
        let parts = self.questions.iter().flat_map(part).collect();
        A2aStatus { parts, ..self.status(A2aState::InputRequired) }
    }

    fn status(&self, state: A2aState) -> A2aStatus {
        let parts = self.failure.iter().map(|failure| A2aPart::Text(failure.to_string())).collect();
        A2aStatus { state, parts, name: self.last.to_string(), at_ms: self.at_ms }
    }

    /// Applies the next event, and returns what a client gets for it.
    pub fn push<'a>(&mut self, view: &A2aView, event: &'a Event) -> Vec<A2aUpdate<'a>> {
        (self.last, self.at_ms) = (event.id, event.at_ms);
        let mut updates = Vec::new();
        if let Some(base) = event.base {
            self.text.supersede_after(base);
            if self.questions.iter().any(|question| question.since > base) {
                Arc::make_mut(&mut self.questions).retain(|question| question.since <= base);
            }
            // Invariant: the number of frames does not depend on events that the log has lost.
            if is_taken_over(event) && event.id.attempt > 1 && view.detail == Detail::All {
                updates.push(self.replaced());
            }
        }
        updates.extend(self.update(view, event));
        self.frames = updates.len() as u32;
        updates
    }

    /// Returns the whole text, for clients that may have superseded text.
    fn replaced(&mut self) -> A2aUpdate<'static> {
        self.has_artifact = true;
        A2aUpdate::Text { text: self.text.to_text().into(), appends: false }
    }

    fn update<'a>(&mut self, view: &A2aView, event: &'a Event) -> Option<A2aUpdate<'a>> {
        match event.body() {
            EventBody::RunQueued(_) => Some(A2aUpdate::Task(self.task())),
            EventBody::AttemptStarted(_) => {
                (self.state, self.is_waiting) = (A2aState::Working, false);
                Some(self.changed(None))
            }
            EventBody::MessageDelta(delta) => self.delta(view, delta.text),
            EventBody::MessageCompleted(completed) => self.complete(completed.message.content.into_stored()),
            EventBody::RunCompleted(_) => Some(self.end(A2aState::Completed, event)),
            EventBody::RunCancelled(_) => Some(self.end(A2aState::Canceled, event)),
            EventBody::RunFailed(end) => {
                self.failure = Some(end.error.message.into());
                Some(self.end(A2aState::Failed, event))
            }
            body => {
                self.note(body);
                view.shows(event.kind()).then(|| self.changed(Some(shown(event))))
            }
        }
    }

    fn end(&mut self, state: A2aState, event: &Event) -> A2aUpdate<'static> {
        (self.state, self.is_waiting) = (state, false);
        self.changed(Some(shown(event)))
    }

    fn changed(&self, event: Option<Value>) -> A2aUpdate<'static> {
        A2aUpdate::Status { status: self.status(self.state), event }
    }

    fn delta<'a>(&mut self, view: &A2aView, text: Cow<'a, str>) -> Option<A2aUpdate<'a>> {
        if text.is_empty() || view.detail != Detail::All {
            return None;
        }
        self.text.push(self.last, &text);
        let appends = std::mem::replace(&mut self.has_artifact, true);
        Some(A2aUpdate::Text { text, appends })
    }

    /// Returns the whole text if a client lacks some of it.
    fn complete(&mut self, text: String) -> Option<A2aUpdate<'static>> {
        if self.text.is(&text) {
            return None;
        }
        self.text.replace(self.last, &text);
        Some(self.replaced())
    }

    /// Keeps what an event tells about questions.
    fn note(&mut self, body: EventBody<'_>) {
        match body {
            EventBody::ApprovalRequested(request) => self.ask(A2aQuestion::of_approval(self.last, &request)),
            EventBody::ApprovalResolved(resolved) => self.answered(&resolved.approval_id.to_string()),
            EventBody::ToolCallStarted(call) if call.by == ExecutedBy::Client => {
                self.ask(A2aQuestion::of_call(self.last, &call));
            }
            EventBody::ToolCallCompleted(call) => self.answered(&call.call_id),
            EventBody::AgentState(changed) => self.is_waiting = changed.state == AgentState::WaitingOnUser,
            EventBody::RunQueued(_)
            | EventBody::AttemptStarted(_)
            | EventBody::StepStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::MessageDelta(_)
            | EventBody::MessageCompleted(_)
            | EventBody::ReasoningDelta(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::ToolCallStarted(_)
            | EventBody::ContextUsage(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationAdded(_)
            | EventBody::CitationDropped(_)
            | EventBody::WarningRaised(_)
            | EventBody::MessageSteered(_)
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
            | EventBody::SubagentStarted(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_)
            | EventBody::Unknown => {}
        }
    }

    fn ask(&mut self, question: A2aQuestion) {
        Arc::make_mut(&mut self.questions).push(question);
    }

    fn answered(&mut self, id: &str) {
        if self.questions.iter().any(|question| question.id == id) {
            Arc::make_mut(&mut self.questions).retain(|question| question.id != id);
        }
    }
}

impl A2aQuestion {
    fn of_approval(since: EventId, request: &ApprovalRequested<'_>) -> Self {
        let words = match request.kind {
            ApprovalKind::Policy => format!("May {} be called?", request.name),
            ApprovalKind::UnknownOutcome => {
                format!("The outcome of {} is unknown. May it be called again?", request.name)
            }
            ApprovalKind::Plan => "May this plan be executed?".to_owned(),
        };
        let kind: &str = request.kind.into();
        let data = json!({
            "type": "approval", "approvalId": request.approval_id, "kind": kind, "callId": request.call_id,
            "name": request.name, "input": request.input.to_value(), "expiresAt": timestamp::text(request.expires_at),
        });
        Self { id: request.approval_id.to_string(), since, words, data }
    }

    fn of_call(since: EventId, call: &ToolCallStarted<'_>) -> Self {
        let words = format!("The result of {} is missing.", call.name);
        let input = call.input.to_value();
        let data = json!({"type": "client_tool", "callId": call.call_id, "name": call.name, "input": input});
        Self { id: call.call_id.to_string(), since, words, data }
    }
}

/// Returns an event as the metadata of an update.
fn shown(event: &Event) -> Value {
    let payload: Value = serde_json::from_slice(event.payload()).unwrap_or_default();
    json!({"event": event.kind_name(), "payload": payload})
}

impl A2aView {
    /// Returns whether the view shows events of a kind, beside the answer and the states.
    fn shows(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::ReasoningDelta | EventKind::ToolCallDelta => self.detail == Detail::All,
            EventKind::ApprovalRequested | EventKind::ApprovalResolved => true,
            EventKind::Unknown => false,
            _ => self.detail != Detail::Messages,
        }
    }
}
