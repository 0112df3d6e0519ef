//! The fold: what there is to show for an event, given what was shown before it.
//!
//! It does not know where things are shown: `screen` leaves out what its output is not made for.

use holdfast_shared::{event_id::EventId, finish_reason::FinishReason, hidden::visible};
use uuid::Uuid;

use super::{
    call,
    client::{RunFailure as RunError, RunResult as Run},
    frames::{Body, Event},
    question::{self, QuestionKind as Asked, RunQuestion as Question},
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
pub enum Outcome {
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
    questions: Vec<Question>,
    outcome: Option<Outcome>,
}

impl Fold {
    /// Takes the run's next event.
    pub fn apply(&mut self, event: Event) -> Vec<Show> {
        let superseded = event.base.is_some_and(|base| self.drop_after(base));
        match event.body {
            Body::Queued { conversation_id } => vec![Show::Conversation(conversation_id)],
            Body::AttemptStarted { reason } if superseded => {
                let what = if reason == "drain" { "shut down" } else { "lost" };
                vec![Show::Aside(format!("the worker was {what}; starting again"))]
            }
            Body::Text { text } => {
                self.shown = event.id;
                self.pieces.push((event.id, text.clone()));
                vec![Show::Text(text)]
            }
            Body::Reasoning { text } => {
                self.shown = event.id;
                vec![Show::Reasoning(text)]
            }
            Body::CallStarted { call_id, name, input, by } if by == "client" => {
                self.ask(Question { id: event.id, call_id, name, input, asked: Asked::Result })
            }
            Body::CallStarted { name, input, .. } => vec![Show::Notice(call::started(&name, &input))],
            Body::CallCompleted { call_id, name, output, error, duration_ms } => {
                self.questions.retain(|question| question.call_id != call_id);
                let result = error.as_ref().map_or_else(|| Ok(output.as_deref().unwrap_or_default()), Err);
                vec![Show::Notice(call::completed(&name, duration_ms, result))]
            }
            Body::ApprovalRequested { approval_id, call_id, kind, name, input } => {
                let asked = match kind.as_str() {
                    "unknown_outcome" => Asked::Repetition(approval_id),
                    _ => Asked::Approval(approval_id),
                };
                self.ask(Question { id: event.id, call_id, name, input, asked })
            }
            Body::ApprovalResolved { approval_id, decision, reason, edited_input } => {
                let asks = |question: &mut Question| question.asked.approval() == Some(approval_id);
                let tool = self.questions.extract_if(.., asks).next().map_or("the call".to_owned(), |asked| asked.name);
                vec![Show::Notice(question::resolved(&tool, &decision, reason.as_deref(), edited_input.as_ref()))]
            }
            Body::Message { message } => self.complete(message.content, superseded),
            Body::Warning { message } => vec![Show::Notice(visible(&message).into_owned())],
            Body::Completed { finish_reason } => {
                let ended = self.end(Outcome::Completed, None);
                ended.into_iter().chain(cut_off(finish_reason)).collect()
            }
            Body::Failed { error } => self.end(Outcome::Failed, Some(error)),
            Body::Cancelled => self.end(Outcome::Cancelled, None),
            Body::AttemptStarted { .. } | Body::Unknown => vec![],
        }
    }

    /// Takes the result of a run whose last events are not to be had.
    pub fn finish(&mut self, run: Run) -> Vec<Show> {
        let mut shows = match run.output_message {
            Some(message) if !self.kept => self.complete(message.content, false),
            _ => vec![],
        };
        let outcome = match run.status.as_str() {
            "completed" => Outcome::Completed,
            "cancelled" => Outcome::Cancelled,
            _ => Outcome::Failed,
        };
        shows.extend(self.end(outcome, run.error));
        shows.extend(cut_off(run.finish_reason));
        shows
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// What is open, as far as the events tell: an answer may be on its way.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Shows nothing yet: only what is still open when the events have caught up is worth asking.
    fn ask(&mut self, question: Question) -> Vec<Show> {
        self.questions.retain(|open| open.call_id != question.call_id);
        self.questions.push(question);
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

    fn end(&mut self, outcome: Outcome, error: Option<RunError>) -> Vec<Show> {
        self.outcome = Some(outcome);
        self.questions.clear();
        match (outcome, error) {
            (Outcome::Completed, _) => vec![],
            (Outcome::Failed, Some(RunError { code, message })) => {
                vec![Show::Error(format!("run failed: {message} ({code})"))]
            }
            (Outcome::Failed, None) => vec![Show::Error("run failed".to_owned())],
            (Outcome::Cancelled, _) if self.kept => vec![Show::Notice("cancelled; what was said is kept".to_owned())],
            (Outcome::Cancelled, _) => vec![Show::Notice("cancelled; nothing was said".to_owned())],
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
