//! The events of the native wire, as a client reads them. It neither waits nor sends requests.

use std::borrow::Cow;

use holdfast_shared::{
    event::{EventBody, EventKind},
    event_id::EventId,
};
use serde::Deserialize;

/// One event of a run, parsed from the native wire.
#[derive(Debug, Clone)]
pub struct ClientEvent {
    pub id: EventId,
    /// Only on the first event of an attempt: it supersedes all events after its base.
    pub base: Option<EventId>,
    kind: EventKind,
    /// A JSON object with the payload's fields.
    data: String,
}

/// How an event relates to a client's cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorOrder {
    /// The client has the event.
    Duplicate,
    /// The event follows the cursor without a gap.
    Next,
    /// Events between the cursor and this event are missing.
    Gap,
}

impl ClientEvent {
    /// Parses the data of a frame; returns `None` if it is no event.
    pub fn parse(data: String) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            id: EventId,
            base: Option<EventId>,
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
        }
        let Head { id, base, kind } = serde_json::from_str(&data).ok()?;
        let kind = EventKind::of(&kind);
        Some(Self { id, base: base.filter(|_| id.n == 1), kind, data })
    }

    /// Returns the parsed payload; `Unknown` if a newer server wrote the event or its payload.
    pub fn body(&self) -> EventBody<'_> {
        EventBody::read(self.kind, self.data.as_bytes())
    }

    pub const fn is_terminal(&self) -> bool {
        self.kind.is_terminal()
    }

    /// Compares ids, which prove alone whether an event is missing.
    pub fn order_after(&self, cursor: EventId) -> CursorOrder {
        if self.id <= cursor {
            return CursorOrder::Duplicate;
        }
        if self.id == cursor.next() || self.base.is_some_and(|base| cursor >= base) {
            CursorOrder::Next
        } else {
            CursorOrder::Gap
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_newer_servers_are_unknown() {
        let check = |data: &str, expected: &str| {
            let event = ClientEvent::parse(data.to_owned())
                .map(|event| format!("{} {:?} {}", event.id, event.base, event.body().kind().name()));
            assert_eq!(event.unwrap_or("none".to_owned()), expected);
        };
        check(
            r#"{"id":"1-2","type":"message.delta","message_id":"00000000-0000-0000-0000-000000000000","text":"hi"}"#,
            "1-2 None message.delta",
        );
        check(r#"{"id":"1-2","base":"0-1","type":"dream.dreamt"}"#, "1-2 None unknown");
        check(r#"{"id":"2-1","base":"1-7","type":"dream.dreamt"}"#, "2-1 Some(EventId { attempt: 1, n: 7 }) unknown");
        check(r#"{"id":"1-2","type":"message.delta","text":["hi"]}"#, "1-2 None unknown");
        check(r#"{"id":"1-9","type":"run.completed","usage":7}"#, "1-9 None run.completed");
        check(r#"{"type":"message.delta","text":"hi"}"#, "none");
        check("no JSON", "none");
    }

    #[test]
    fn ids_alone_prove_that_no_event_is_missing() {
        let check = |cursor: &str, next: (&str, Option<&str>), expected: CursorOrder| {
            let id = |text: &str| text.parse::<EventId>().unwrap();
            let event =
                ClientEvent { id: id(next.0), base: next.1.map(id), kind: EventKind::Unknown, data: "{}".to_owned() };
            assert_eq!(event.order_after(id(cursor)), expected, "{cursor} then {next:?}");
        };
        check("0-0", ("0-1", Some("0-0")), CursorOrder::Next);
        check("1-2", ("1-3", None), CursorOrder::Next);
        check("1-2", ("1-2", None), CursorOrder::Duplicate);
        check("1-2", ("1-4", None), CursorOrder::Gap);
        check("1-9", ("2-1", Some("1-5")), CursorOrder::Next);
        check("1-4", ("2-1", Some("1-5")), CursorOrder::Gap);
        check("1-9", ("2-2", None), CursorOrder::Gap);
        check("2-1", ("1-10", None), CursorOrder::Duplicate);
    }
}
