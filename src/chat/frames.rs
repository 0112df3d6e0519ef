//! Parses the native wire: bytes to frames to events. It neither waits nor sends requests.

use std::borrow::Cow;

use holdfast_shared::{
    event::{EventBody, EventKind},
    event_id::EventId,
};
use serde::Deserialize;

/// Splits a stream of server-sent events into the data of its frames, wherever the network has split the bytes.
#[derive(Debug, Default)]
pub struct Frames {
    /// A line whose end has not arrived yet.
    rest: Vec<u8>,
    data: Option<String>,
}

impl Frames {
    /// Adds the next bytes, and returns the data of the frames that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for end in lines {
            self.rest.extend_from_slice(end);
            let line = std::mem::take(&mut self.rest);
            complete.extend(self.read_line(&String::from_utf8_lossy(&line)));
        }
        self.rest.extend_from_slice(last);
        complete
    }

    fn read_line(&mut self, line: &str) -> Option<String> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            return self.data.take();
        }
        // The data repeats the fields `id` and `event`; comments are heartbeats.
        let value = line.strip_prefix("data:")?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => data.extend(["\n", value]),
            none => *none = Some(value.to_owned()),
        }
        None
    }
}

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

    const STREAM: &str = concat!(
        "retry: 1000\n\n",
        "id: 0-1\nevent: run.queued\ndata: {\"a\":1}\n\n",
        ": heartbeat\n\n",
        "id: 1-1\r\nevent: x\r\ndata:{\"ü\":\"…\"}\r\n\r\n",
        "data: two\ndata: lines\n\n",
        "data: its end never came"
    );

    #[test]
    fn frames_are_equal_wherever_the_bytes_are_split() {
        let expected = ["{\"a\":1}", "{\"ü\":\"…\"}", "two\nlines"];
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let mut frames = Frames::default();
                let parts =
                    [&STREAM.as_bytes()[..first], &STREAM.as_bytes()[first..second], &STREAM.as_bytes()[second..]];
                let data: Vec<String> = parts.iter().flat_map(|part| frames.push(part)).collect();
                assert_eq!(data, expected, "split at {first} and {second}");
            }
        }
    }

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
