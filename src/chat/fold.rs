//! The fold: what there is to show for an event, given what was shown before it.
//!
//! It does not know where things are shown: `screen` leaves out what its output is not made for.

use std::borrow::Cow;

use holdfast_shared::{
    approval::ApprovalKind,
    event::{AttemptReason, EventBody, ExecutedBy, RawJson},
    event_id::EventId,
    finish_reason::FinishReason,
    hidden::visible,
    run::RunError,
};
use uuid::Uuid;

use super::{
    call,
    client::RunResult,
    frames::ClientEvent,
    question::{self, QuestionKind, RunQuestion},
};

/// Something to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// The conversation that was made for the message.
    Conversation(Uuid),
    /// More of the answer.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// A line about the text that was shown: of use only where text is shown as it comes.
    Aside(String),
    /// The whole answer, as it is stored: of use only where text is not shown as it comes.
    Answer(String),
    /// A line that is not part of the answer.
    Notice(String),
    /// Why there is no answer, or only a part of it.
    Error(String),
}

/// How the run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    Completed,
    Failed,
    Cancelled,
}

/// One run, as far as it was shown.
#[derive(Debug, Default)]
pub struct Fold {
    /// The answer so far, without what is superseded.
    pieces: Vec<(EventId, String)>,
    /// The last event that text or reasoning was shown for.
    shown: EventId,
    /// Whether a part of the answer is stored.
    kept: bool,
    /// What the run has asked, and nobody has answered yet.
    questions: Vec<RunQuestion>,
    outcome: Option<RunOutcome>,
}

impl Fold {
    /// Takes the run's next event.
    pub fn apply(&mut self, event: ClientEvent) -> Vec<Show> {
        let superseded = event.base.is_some_and(|base| self.drop_after(base));
        match event.body() {
            EventBody::RunQueued(queued) => vec![Show::Conversation(queued.conversation_id)],
            EventBody::AttemptStarted(started) if superseded => {
                let what = if started.reason == AttemptReason::Drain { "shut down" } else { "lost" };
                vec![Show::Aside(format!("the worker was {what}; starting again"))]
            }
            EventBody::MessageDelta(delta) => {
                let text = delta.text.into_owned();
                self.shown = event.id;
                self.pieces.push((event.id, text.clone()));
                vec![Show::Text(text)]
            }
            EventBody::ReasoningDelta(delta) => {
                self.shown = event.id;
                vec![Show::Reasoning(delta.text.into_owned())]
            }
            EventBody::ToolCallStarted(call) if call.by == ExecutedBy::Client => {
                self.ask(event.id, call.call_id, call.name, &call.input, QuestionKind::Result)
            }
            EventBody::ToolCallStarted(call) => vec![Show::Notice(call::started(&call.name, &call.input.to_value()))],
            EventBody::ToolCallCompleted(call) => {
                self.questions.retain(|question| question.call_id != call.call_id);
                let result = match &call.error {
                    Some(error) => Err(error),
                    None => Ok(call.output.as_deref().unwrap_or_default()),
                };
                vec![Show::Notice(call::completed(&call.name, call.duration_ms, result))]
            }
            EventBody::ApprovalRequested(request) => {
                let asked = match request.kind {
                    ApprovalKind::UnknownOutcome => QuestionKind::Repetition(request.approval_id),
                    ApprovalKind::Policy => QuestionKind::Approval(request.approval_id),
                };
                self.ask(event.id, request.call_id, request.name, &request.input, asked)
            }
            EventBody::ApprovalResolved(resolved) => {
                let asks = |question: &mut RunQuestion| question.asked.approval() == Some(resolved.approval_id);
                let tool = self.questions.extract_if(.., asks).next().map_or("the call".to_owned(), |asked| asked.name);
                let edited = resolved.edited_input.map(|input| input.to_value());
                let reason = resolved.reason.as_deref();
                vec![Show::Notice(question::resolved(&tool, resolved.decision, reason, edited.as_ref()))]
            }
            EventBody::MessageCompleted(completed) => {
                self.complete(completed.message.content.into_stored(), superseded)
            }
            EventBody::WarningRaised(warning) => vec![Show::Notice(visible(&warning.message).into_owned())],
            EventBody::RunCompleted(end) => {
                let ended = self.end(RunOutcome::Completed, None);
                ended.into_iter().chain(cut_off(end.finish_reason)).collect()
            }
            EventBody::RunFailed(end) => self.end(RunOutcome::Failed, Some(end.error)),
            EventBody::RunCancelled(_) => self.end(RunOutcome::Cancelled, None),
            EventBody::AttemptStarted(_)
            | EventBody::StepStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::ToolCallDelta(_)
            | EventBody::AgentState(_)
            | EventBody::ContextUsage(_)
            | EventBody::Unknown => vec![],
        }
    }

    /// Takes the result of a run whose last events are not to be had.
    pub fn finish(&mut self, run: RunResult) -> Vec<Show> {
        let mut shows = match run.output_message {
            Some(message) if !self.kept => self.complete(message.content, false),
            _ => vec![],
        };
        let outcome = match run.status.as_str() {
            "completed" => RunOutcome::Completed,
            "cancelled" => RunOutcome::Cancelled,
            _ => RunOutcome::Failed,
        };
        shows.extend(self.end(outcome, run.error));
        shows.extend(cut_off(run.finish_reason));
        shows
    }

    pub fn outcome(&self) -> Option<RunOutcome> {
        self.outcome
    }

    /// What is open, as far as the events tell: an answer may be on its way.
    pub fn questions(&self) -> &[RunQuestion] {
        &self.questions
    }

    /// Shows nothing yet: only what is still open when the events have caught up is worth asking.
    fn ask(
        &mut self,
        id: EventId,
        call_id: Cow<'_, str>,
        name: Cow<'_, str>,
        input: &RawJson<'_>,
        asked: QuestionKind,
    ) -> Vec<Show> {
        let (call_id, name) = (call_id.into_owned(), name.into_owned());
        self.questions.retain(|open| open.call_id != call_id);
        self.questions.push(RunQuestion { id, call_id, name, input: input.to_value(), asked });
        vec![]
    }

    /// Whether something that was shown is superseded.
    fn drop_after(&mut self, base: EventId) -> bool {
        self.pieces.retain(|(id, _)| *id <= base);
        self.questions.retain(|question| question.id <= base);
        let superseded = self.shown > base;
        self.shown = self.shown.min(base);
        superseded
    }

    /// The answer is stored: makes what was shown equal to it.
    fn complete(&mut self, content: String, superseded: bool) -> Vec<Show> {
        self.kept = !content.is_empty();
        let so_far: String = self.pieces.drain(..).map(|(_, piece)| piece).collect();
        let streamed = match content.strip_prefix(&so_far) {
            Some(rest) if !superseded => vec![Show::Text(rest.to_owned())],
            _ => vec![Show::Aside("only this was kept:".to_owned()), Show::Text(content.clone())],
        };
        streamed.into_iter().chain([Show::Answer(content)]).collect()
    }

    fn end(&mut self, outcome: RunOutcome, error: Option<RunError>) -> Vec<Show> {
        self.outcome = Some(outcome);
        self.questions.clear();
        match (outcome, error) {
            (RunOutcome::Completed, _) => vec![],
            (RunOutcome::Failed, Some(RunError { code, message })) => {
                vec![Show::Error(format!("run failed: {message} ({code})"))]
            }
            (RunOutcome::Failed, None) => vec![Show::Error("run failed".to_owned())],
            (RunOutcome::Cancelled, _) if self.kept => {
                vec![Show::Notice("cancelled; what was said is kept".to_owned())]
            }
            (RunOutcome::Cancelled, _) => vec![Show::Notice("cancelled; nothing was said".to_owned())],
        }
    }
}

/// Says that an answer which looks whole is not.
fn cut_off(reason: Option<FinishReason>) -> Option<Show> {
    let text = match reason? {
        FinishReason::Length => "the answer was cut off at its longest; say \"continue\" for the rest",
        FinishReason::ContentFilter => "the provider withheld the answer, or the rest of it",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => return None,
    };
    Some(Show::Notice(text.to_owned()))
}

#[cfg(test)]
mod tests;
