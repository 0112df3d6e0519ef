//! Events with their ids, and a client that follows them. `shared/src/event_id.rs` has the same rules.

use std::collections::BTreeSet;

/// `<attempt>-<n>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The attempt that wrote the event.
    pub attempt: u8,
    /// Its number within the attempt, from 1.
    pub n: u8,
}

/// Shorthand for an id.
pub const fn id(attempt: u8, n: u8) -> EventId {
    EventId { attempt, n }
}

/// The kinds that the protocol distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `run.queued`.
    Queued,
    /// `attempt.started`.
    Started,
    /// A piece of the answer.
    Delta,
    /// A tool call is about to be made.
    Intent,
    /// A tool call has been made.
    Outcome,
    /// A human must decide whether the call is repeated.
    Question,
    /// The human's decision.
    Answer,
    /// A terminal event of the worker.
    Finished,
    /// A terminal event of a writer without a claim.
    Ended,
}

impl Kind {
    /// Returns whether a client shows the event with the answer.
    pub const fn is_shown(self) -> bool {
        matches!(self, Self::Delta | Self::Outcome | Self::Question | Self::Answer)
    }

    /// Returns whether the event ends its run.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Ended)
    }
}

/// An event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Its kind.
    pub kind: Kind,
    /// For the first event of an attempt: the newest event that stays valid.
    pub base: EventId,
}

/// The shown events of an answer.
pub type Text = BTreeSet<EventId>;

/// Returns whether nothing is missing between the cursor and the event.
pub fn follows(cursor: EventId, event: &Event) -> bool {
    let is_next = event.id.attempt == cursor.attempt && event.id.n == cursor.n + 1;
    event.id > cursor && (is_next || event.id.n == 1 && cursor >= event.base)
}

/// Returns whether a client without bases would believe that nothing is missing.
pub fn follows_without_base(cursor: EventId, event: &Event) -> bool {
    follows(cursor, event) || event.id > cursor && event.id.n == 1
}

/// Applies the event to a text.
pub fn apply(text: &mut Text, event: &Event) {
    if event.id.n == 1 {
        text.retain(|shown| *shown <= event.base);
    }
    if event.kind.is_shown() {
        text.insert(event.id);
    }
}

/// Returns the text of consecutive events.
pub fn fold(events: &[Event]) -> Text {
    let mut text = Text::new();
    for event in events {
        apply(&mut text, event);
    }
    text
}

/// Returns the cursor and the text of each client that can exist. A visible event can arrive late, twice or never.
pub fn clients(visible: &[Event], follows: fn(EventId, &Event) -> bool) -> BTreeSet<(EventId, Text)> {
    let start = (id(0, 0), Text::new());
    let (mut clients, mut unvisited) = (BTreeSet::from([start.clone()]), vec![start]);
    while let Some((cursor, text)) = unvisited.pop() {
        for event in visible.iter().filter(|event| follows(cursor, event)) {
            let mut text = text.clone();
            apply(&mut text, event);
            let client = (event.id, text);
            if clients.insert(client.clone()) {
                unvisited.push(client);
            }
        }
    }
    clients
}
