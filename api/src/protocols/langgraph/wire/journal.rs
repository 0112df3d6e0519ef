//! The changes of a run's messages, by the events that made them. A later attempt may supersede a part of them.

use std::sync::Arc;

use holdfast_shared::event_id::EventId;
use uuid::Uuid;

use super::{interrupt::LangInterrupt, message::AnswerMessages};

/// Changes in the order of their events. A clone costs nothing, because it shares all of them.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    newest: Option<Arc<JournalEntry>>,
}

#[derive(Debug)]
struct JournalEntry {
    event: EventId,
    change: MessageChange,
    before: Option<Arc<JournalEntry>>,
}

/// The drop of a long chain by recursion would overflow the stack.
impl Drop for JournalEntry {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut entry) = next.and_then(Arc::into_inner) {
            next = entry.before.take();
        }
    }
}

/// A change of the messages, or of the questions that wait for the client.
#[derive(Debug)]
pub enum MessageChange {
    Step,
    Text(String),
    Reasoning(String),
    Arguments { call_id: String, name: Option<String>, text: String },
    Call { call_id: String, name: String, input: String },
    Result { call_id: String, name: String, content: String, is_error: bool },
    Asked(Box<LangInterrupt>),
    Answered(String),
}

impl Journal {
    pub fn push(&mut self, event: EventId, change: MessageChange) {
        let before = self.newest.take();
        self.newest = Some(Arc::new(JournalEntry { event, change, before }));
    }

    /// Drops all changes after an event.
    pub fn supersede_after(&mut self, base: EventId) {
        while let Some(entry) = self.newest.take_if(|entry| entry.event > base) {
            self.newest = entry.before.clone();
        }
    }

    /// Returns the changes, oldest first.
    fn changes(&self) -> impl Iterator<Item = &MessageChange> {
        let newest_first = std::iter::successors(self.newest.as_deref(), |entry| entry.before.as_deref());
        let changes: Vec<&MessageChange> = newest_first.map(|entry| &entry.change).collect();
        changes.into_iter().rev()
    }

    /// Returns the messages of the answer with this id so far.
    pub fn messages(&self, answer: Uuid) -> AnswerMessages {
        let mut messages = AnswerMessages::of_answer(answer);
        self.changes().for_each(|change| change.apply(&mut messages));
        messages
    }

    /// Returns the questions that wait for the client.
    pub fn interrupts(&self) -> Vec<LangInterrupt> {
        let mut open: Vec<LangInterrupt> = Vec::new();
        for change in self.changes() {
            match change {
                MessageChange::Asked(interrupt) => open.push((**interrupt).clone()),
                MessageChange::Answered(id) => open.retain(|interrupt| interrupt.id != *id),
                _ => {}
            }
        }
        open
    }
}

impl MessageChange {
    /// Applies the change to the messages.
    pub fn apply(&self, messages: &mut AnswerMessages) {
        match self {
            Self::Step => messages.begin_step(),
            Self::Text(text) => messages.push_text(text),
            Self::Reasoning(text) => messages.push_reasoning(text),
            Self::Arguments { call_id, name, text } => messages.push_arguments(call_id, name.as_deref(), text),
            Self::Call { call_id, name, input } => messages.set_call(call_id, name, input.clone()),
            Self::Result { call_id, name, content, is_error } => {
                messages.push_result(call_id, name, content.clone(), *is_error);
            }
            Self::Asked(_) | Self::Answered(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewind_drops_what_later_events_wrote() {
        let mut journal = Journal::default();
        for n in 1..=400 {
            journal.push(EventId::new(1, n), MessageChange::Text("x".to_owned()));
        }
        let shared = journal.clone();
        let text = |journal: &Journal| {
            let messages = journal.messages(Uuid::nil()).into_messages();
            messages.first().map_or(0, |message| message.to_value()["content"].as_str().unwrap().len())
        };
        for base in [399, 257, 256, 128, 1, 0] {
            journal.supersede_after(EventId::new(1, base));
            assert_eq!(text(&journal), base as usize);
        }
        journal.push(EventId::new(2, 1), MessageChange::Text("x".to_owned()));
        assert_eq!((text(&journal), text(&shared)), (1, 400), "a clone keeps its own changes");
    }

    #[test]
    fn a_long_journal_is_dropped() {
        let mut journal = Journal::default();
        (1..=1_000_000).for_each(|n| journal.push(EventId::new(1, n), MessageChange::Step));
        drop(journal.clone());
        assert_eq!(journal.changes().count(), 1_000_000);
    }
}
