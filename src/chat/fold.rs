//! The fold: which items to show for an event, after the items of earlier events.
//!
//! It does not know the output: `screen` leaves out items that its output does not need.

use std::borrow::Cow;

use holdfast_shared::{
    approval::ApprovalKind,
    event::{AttemptReason, EventBody, ExecutedBy, RawJson},
    event_id::EventId,
    file::ToolFile,
    finish_reason::FinishReason,
    hidden::visible,
    run::RunError,
};
use uuid::Uuid;

use super::{
    call,
    client::RunResult,
    events::ClientEvent,
    plan,
    question::{self, QuestionKind, RunQuestion},
};

/// An item to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisplayItem {
    /// The conversation that the server created for the message.
    Conversation(Uuid),
    /// More text of the answer.
    Text(String),
    /// More text of the model's reasoning.
    Reasoning(String),
    /// A line about the text shown so far, for an output that shows text as it arrives.
    Aside(String),
    /// The complete answer as stored, for an output that does not show text as it arrives.
    Answer(String),
    /// A line that is not part of the answer.
    Notice(String),
    /// Why there is no answer, or only a part of it.
    Error(String),
}

/// The result of an ended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    Completed,
    Failed,
    Cancelled,
}

/// One run, as far as the fold has returned items for it.
#[derive(Debug, Default)]
pub struct Fold {
    /// The server's address, before the path of a file.
    server: String,
    /// The deltas of the answer, without superseded ones.
    deltas: Vec<(EventId, String)>,
    /// The last event with text or reasoning.
    last_shown: EventId,
    /// Whether the server has stored a part of the answer.
    has_stored_answer: bool,
    /// The questions of the run that have no answer.
    questions: Vec<RunQuestion>,
    outcome: Option<RunOutcome>,
    /// Whether another run answers the message.
    has_joined: bool,
}

impl Fold {
    /// Returns a fold of a run on this server.
    pub fn on(server: &str) -> Self {
        Self { server: server.to_owned(), ..Self::default() }
    }

    /// Applies the run's next event, and returns the items to show.
    pub fn apply(&mut self, event: ClientEvent) -> Vec<DisplayItem> {
        let superseded = event.base.is_some_and(|base| self.drop_after(base));
        match event.body() {
            EventBody::RunQueued(queued) => vec![DisplayItem::Conversation(queued.conversation_id)],
            EventBody::AttemptStarted(started) if superseded => {
                let what = if started.reason == AttemptReason::Drain { "shut down" } else { "lost" };
                vec![DisplayItem::Aside(format!("the worker was {what}; starting again"))]
            }
            EventBody::MessageDelta(delta) => {
                let text = delta.text.into_owned();
                self.last_shown = event.id;
                self.deltas.push((event.id, text.clone()));
                vec![DisplayItem::Text(text)]
            }
            EventBody::ReasoningDelta(delta) => {
                self.last_shown = event.id;
                vec![DisplayItem::Reasoning(delta.text.into_owned())]
            }
            EventBody::ToolCallStarted(call) if call.by == ExecutedBy::Client => {
                self.ask(event.id, call.call_id, call.name, &call.input, QuestionKind::Result)
            }
            EventBody::ToolCallStarted(call) => {
                vec![DisplayItem::Notice(call::started(&call.name, &call.input.to_value()))]
            }
            EventBody::SubagentStarted(child) if child.plan_id.is_some() => vec![],
            EventBody::SubagentStarted(child) => {
                let notice = format!("{} works on it, as run {}", visible(&child.agent), child.child_run_id);
                vec![DisplayItem::Notice(notice)]
            }
            EventBody::ContextShifted(shifted) => vec![DisplayItem::Notice(visible(&shifted.message).into_owned())],
            EventBody::TemplateRequested(requested) => {
                vec![DisplayItem::Notice(format!("template requested: {}", visible(&requested.kind)))]
            }
            EventBody::TemplateSuggested(suggested) => {
                vec![DisplayItem::Notice(format!("template suggested: {}", visible(&suggested.name)))]
            }
            EventBody::MemoryTold(told) => vec![DisplayItem::Notice(call::used_memories(told.memories.len()))],
            EventBody::PlanCreated(created) => vec![DisplayItem::Notice(plan::made(&created.plan))],
            EventBody::PlanUpdated(updated) => {
                plan::changed(&updated.plan).map(DisplayItem::Notice).into_iter().collect()
            }
            EventBody::PlanReviewed(review) => vec![DisplayItem::Notice(plan::reviewed(&review))],
            EventBody::PlanStepStarted(started) => vec![DisplayItem::Notice(plan::begun(&started))],
            EventBody::PlanStepCompleted(completed) => vec![DisplayItem::Notice(plan::ended(&completed.step))],
            EventBody::CitationAdded(cited) => vec![DisplayItem::Notice(call::cited(&cited))],
            EventBody::ToolCallCompleted(call) => {
                self.questions.retain(|question| question.call_id != call.call_id);
                let result = match &call.error {
                    Some(error) => Err(error),
                    None => Ok(call.output.as_deref().unwrap_or_default()),
                };
                let notice = DisplayItem::Notice(call::completed(&call.name, call.duration_ms, result));
                let file = |file: &ToolFile| DisplayItem::Notice(call::returned(file, &self.server));
                std::iter::once(notice).chain(call.files.iter().map(file)).collect()
            }
            EventBody::ApprovalRequested(request) => {
                let asked = match request.kind {
                    ApprovalKind::UnknownOutcome => QuestionKind::Repetition(request.approval_id),
                    ApprovalKind::Policy | ApprovalKind::Plan => QuestionKind::Approval(request.approval_id),
                };
                self.ask(event.id, request.call_id, request.name, &request.input, asked)
            }
            EventBody::ApprovalResolved(resolved) => {
                let asks = |question: &mut RunQuestion| question.asked.approval() == Some(resolved.approval_id);
                let tool = self.questions.extract_if(.., asks).next().map_or("the call".to_owned(), |asked| asked.name);
                let edited = resolved.edited_input.map(|input| input.to_value());
                let reason = resolved.reason.as_deref();
                vec![DisplayItem::Notice(question::resolved(&tool, resolved.decision, reason, edited.as_ref()))]
            }
            EventBody::MessageCompleted(completed) => {
                self.complete(completed.message.content.into_stored(), superseded)
            }
            EventBody::MessageSteered(steered) if steered.joined_run_id.is_some() => {
                self.has_joined = true;
                vec![]
            }
            EventBody::MessageSteered(_) => vec![DisplayItem::Notice("your correction is read now".to_owned())],
            EventBody::WarningRaised(warning) => vec![DisplayItem::Notice(visible(&warning.message).into_owned())],
            EventBody::RunCompleted(end) => {
                let ended = self.end(RunOutcome::Completed, None);
                ended.into_iter().chain(truncation_notice(end.finish_reason)).collect()
            }
            EventBody::RunFailed(end) => self.end(RunOutcome::Failed, Some(end.error)),
            EventBody::RunCancelled(_) => self.end(RunOutcome::Cancelled, None),
            EventBody::AttemptStarted(_)
            | EventBody::StepStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::DocumentProgress(_)
            | EventBody::ContextRetrieved(_)
            | EventBody::CitationDropped(_)
            | EventBody::SubagentCompleted(_)
            | EventBody::QuestionAsked(_)
            | EventBody::FocusChanged(_)
            | EventBody::OntologyLoaded(_)
            | EventBody::Unknown => vec![],
        }
    }

    /// Applies the result of an ended run whose last events have expired, and returns the items to show.
    pub fn finish(&mut self, run: RunResult) -> Vec<DisplayItem> {
        let mut items = match run.output_message {
            Some(message) if !self.has_stored_answer => self.complete(message.content, false),
            _ => vec![],
        };
        let outcome = match run.status.as_str() {
            "completed" => RunOutcome::Completed,
            "cancelled" => RunOutcome::Cancelled,
            _ => RunOutcome::Failed,
        };
        items.extend(self.end(outcome, run.error));
        items.extend(truncation_notice(run.finish_reason));
        items
    }

    pub fn outcome(&self) -> Option<RunOutcome> {
        self.outcome
    }

    /// Returns the open questions as far as the events show; an answer may be on its way.
    pub fn questions(&self) -> &[RunQuestion] {
        &self.questions
    }

    /// Adds a question and shows nothing. The exchange asks only questions that are still open after the last event.
    fn ask(
        &mut self,
        id: EventId,
        call_id: Cow<'_, str>,
        name: Cow<'_, str>,
        input: &RawJson<'_>,
        asked: QuestionKind,
    ) -> Vec<DisplayItem> {
        let (call_id, name) = (call_id.into_owned(), name.into_owned());
        self.questions.retain(|open| open.call_id != call_id);
        self.questions.push(RunQuestion { id, call_id, name, input: input.to_value(), asked });
        vec![]
    }

    /// Drops everything after `base`. Returns whether the fold has shown superseded text.
    fn drop_after(&mut self, base: EventId) -> bool {
        self.deltas.retain(|(id, _)| *id <= base);
        self.questions.retain(|question| question.id <= base);
        let superseded = self.last_shown > base;
        self.last_shown = self.last_shown.min(base);
        superseded
    }

    /// Returns the items that make the shown text equal to the stored answer.
    fn complete(&mut self, content: String, superseded: bool) -> Vec<DisplayItem> {
        self.has_stored_answer = !content.is_empty();
        let so_far: String = self.deltas.drain(..).map(|(_, text)| text).collect();
        let streamed = match content.strip_prefix(&so_far) {
            Some(rest) if !superseded => vec![DisplayItem::Text(rest.to_owned())],
            _ => vec![
                DisplayItem::Aside("the server has kept only this:".to_owned()),
                DisplayItem::Text(content.clone()),
            ],
        };
        streamed.into_iter().chain([DisplayItem::Answer(content)]).collect()
    }

    fn end(&mut self, outcome: RunOutcome, error: Option<RunError>) -> Vec<DisplayItem> {
        self.questions.clear();
        if self.has_joined {
            self.outcome = Some(RunOutcome::Completed);
            return vec![];
        }
        self.outcome = Some(outcome);
        match (outcome, error) {
            (RunOutcome::Completed, _) => vec![],
            (RunOutcome::Failed, Some(RunError { code, message, .. })) => {
                vec![DisplayItem::Error(format!("run failed: {message} ({code})"))]
            }
            (RunOutcome::Failed, None) => vec![DisplayItem::Error("run failed".to_owned())],
            (RunOutcome::Cancelled, _) if self.has_stored_answer => {
                vec![DisplayItem::Notice("cancelled; the answer so far is kept".to_owned())]
            }
            (RunOutcome::Cancelled, _) => vec![DisplayItem::Notice("cancelled; there is no answer".to_owned())],
        }
    }
}

/// Returns a notice if the answer looks complete and is not.
fn truncation_notice(reason: Option<FinishReason>) -> Option<DisplayItem> {
    let text = match reason? {
        FinishReason::Length => "the answer ended at its longest; say \"continue\" for the rest",
        FinishReason::ContentFilter => "the provider withheld the answer, or the rest of it",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => return None,
    };
    Some(DisplayItem::Notice(text.to_owned()))
}

#[cfg(test)]
mod tests;
