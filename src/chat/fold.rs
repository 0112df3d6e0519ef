//! The fold: what there is to show for an event, given what was shown before it.
//!
//! It does not know where things are shown: `screen` leaves out what its output is not made for.

use holdfast_shared::event_id::EventId;
use uuid::Uuid;

use super::{
    client::{Run, RunError},
    frames::{Body, Event},
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
            Body::Message { message } => self.complete(message.content, superseded),
            Body::Warning { message } => vec![Show::Notice(message)],
            Body::Completed => self.end(Outcome::Completed, None),
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
        shows
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Whether something that was shown is superseded.
    fn drop_after(&mut self, base: EventId) -> bool {
        self.pieces.retain(|(id, _)| *id <= base);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, kind: &str, rest: &str) -> Event {
        Event::parse(&format!(r#"{{"id":"{id}","type":"{kind}"{rest}}}"#)).unwrap()
    }

    fn text(id: &str, text: &str) -> Event {
        event(id, "message.delta", &format!(r#","text":"{text}""#))
    }

    fn started(id: &str, base: &str, reason: &str) -> Event {
        event(id, "attempt.started", &format!(r#","base":"{base}","reason":"{reason}""#))
    }

    fn message(id: &str, base: &str, content: &str) -> Event {
        event(id, "message.completed", &format!(r#","base":"{base}","message":{{"content":"{content}"}}"#))
    }

    fn cancelled(id: &str) -> Event {
        event(id, "run.cancelled", r#","base":"1-2""#)
    }

    /// What is shown for a run that has begun and said "one two".
    fn check(events: Vec<Event>, expected: &[&str]) {
        let mut fold = Fold::default();
        let begin = vec![
            event("0-1", "run.queued", r#","base":"0-0","conversation_id":"01900000-0000-7000-8000-000000000001""#),
            started("1-1", "0-1", "claimed"),
            text("1-2", "one "),
            text("1-3", "two"),
        ];
        begin.into_iter().for_each(|event| drop(fold.apply(event)));
        let shown: Vec<String> = events
            .into_iter()
            .flat_map(|event| fold.apply(event))
            .filter(|show| *show != Show::Text(String::new()))
            .map(|show| match show {
                Show::Conversation(id) => format!("conversation {id}"),
                Show::Text(text) => format!("text {text}"),
                Show::Reasoning(text) => format!("reasoning {text}"),
                Show::Aside(text) => format!("aside {text}"),
                Show::Answer(text) => format!("answer {text}"),
                Show::Notice(text) => format!("notice {text}"),
                Show::Error(text) => format!("error {text}"),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_answer_is_shown_as_it_comes_and_once_as_a_whole() {
        let end = event("1-6", "run.completed", "");
        check(vec![text("1-4", " x"), message("1-5", "0-1", "one two x"), end], &["text  x", "answer one two x"]);
    }

    #[test]
    fn text_after_a_base_is_said_again() {
        check(
            vec![started("2-1", "0-1", "lease_expired"), text("2-2", "uno"), message("2-3", "0-1", "uno")],
            &["aside the worker was lost; starting again", "text uno", "answer uno"],
        );
        check(
            vec![started("2-1", "1-2", "drain"), text("2-2", "due"), message("2-3", "0-1", "one due")],
            &["aside the worker was shut down; starting again", "text due", "answer one due"],
        );
    }

    #[test]
    fn a_base_that_supersedes_nothing_shows_nothing() {
        check(vec![started("2-1", "1-3", "resumed"), text("2-2", "!")], &["text !"]);
        let twice = vec![started("2-1", "0-1", "lease_expired"), started("3-1", "0-1", "lease_expired")];
        check(twice, &["aside the worker was lost; starting again"]);
    }

    #[test]
    fn a_cancelled_run_shows_what_is_kept() {
        check(
            vec![message("1-4", "0-1", "one two"), cancelled("1-5")],
            &["answer one two", "notice cancelled; what was said is kept"],
        );
        check(
            vec![message("2-1", "1-2", "one "), cancelled("2-2")],
            &["aside only this was kept:", "text one ", "answer one ", "notice cancelled; what was said is kept"],
        );
        check(vec![cancelled("2-1")], &["notice cancelled; nothing was said"]);
    }

    #[test]
    fn the_stored_message_has_the_last_word() {
        check(vec![message("1-4", "0-1", "one two, and more")], &["text , and more", "answer one two, and more"]);
        check(vec![message("1-4", "0-1", "else")], &["aside only this was kept:", "text else", "answer else"]);
    }

    #[test]
    fn failures_and_warnings_are_told_and_the_unknown_is_not() {
        check(
            vec![
                event("1-4", "warning.raised", r#","code":"x","message":"The database is away.""#),
                event("1-5", "dream.dreamt", r#","text":"x""#),
                event("1-6", "reasoning.delta", r#","text":"hm""#),
                event("1-7", "run.failed", r#","error":{"code":"model_failed","message":"the model failed"}"#),
            ],
            &["notice The database is away.", "reasoning hm", "error run failed: the model failed (model_failed)"],
        );
    }

    #[test]
    fn the_result_of_an_ended_run_fills_in_what_is_missing() {
        let mut fold = Fold::default();
        fold.apply(text("1-2", "one "));
        let run = r#"{"status":"completed","output_message":{"content":"one two"},"error":null}"#;
        let shows = fold.finish(serde_json::from_str(run).unwrap());
        assert_eq!(shows, [Show::Text("two".to_owned()), Show::Answer("one two".to_owned())]);
        assert_eq!(fold.outcome(), Some(Outcome::Completed));
    }
}
