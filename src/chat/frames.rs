//! The native wire, read: bytes to frames to events. Nothing here waits or asks.

use std::borrow::Cow;

use holdfast_shared::{
    event::{EventBody, EventKind},
    event_id::EventId,
};
use serde::Deserialize;

/// Cuts a stream of server-sent events into the data of its frames, wherever the network has cut it.
#[derive(Debug, Default)]
pub struct Frames {
    /// The begin of a line whose end has not come.
    rest: Vec<u8>,
    data: Option<String>,
}

impl Frames {
    /// Takes the next bytes; gives the data of the frames that end in them.
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
        // The event repeats what the fields `id` and `event` say; comments are heartbeats.
        let value = line.strip_prefix("data:")?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => data.extend(["\n", value]),
            none => *none = Some(value.to_owned()),
        }
        None
    }
}

/// One event of a run, as the native wire has it.
#[derive(Debug, Clone)]
pub struct ClientEvent {
    pub id: EventId,
    /// On an attempt's first event: what comes after the base is superseded.
    pub base: Option<EventId>,
    kind: EventKind,
    /// A JSON object with the payload's fields.
    data: String,
}

/// Where an event stands to what a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorOrder {
    /// The client has it.
    Known,
    /// Nothing is missing between.
    Next,
    /// Something is.
    Gap,
}

impl ClientEvent {
    /// Reads a frame's data; `None` if it is no event.
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

    /// What happened; `Unknown` for an event of a newer server, also where only its payload is newer.
    pub fn body(&self) -> EventBody<'_> {
        EventBody::read(self.kind, self.data.as_bytes())
    }

    pub const fn is_terminal(&self) -> bool {
        self.kind.is_terminal()
    }

    /// The rule by which ids alone prove that nothing was missed.
    pub fn place(&self, cursor: EventId) -> CursorOrder {
        if self.id <= cursor {
            return CursorOrder::Known;
        }
        match self.id == cursor.next() || self.base.is_some_and(|base| cursor >= base) {
            true => CursorOrder::Next,
            false => CursorOrder::Gap,
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
    fn frames_are_the_same_wherever_the_stream_is_cut() {
        let expected = ["{\"a\":1}", "{\"ü\":\"…\"}", "two\nlines"];
        for first in 0..STREAM.len() {
            for second in first..STREAM.len() {
                let mut frames = Frames::default();
                let parts =
                    [&STREAM.as_bytes()[..first], &STREAM.as_bytes()[first..second], &STREAM.as_bytes()[second..]];
                let data: Vec<String> = parts.iter().flat_map(|part| frames.push(part)).collect();
                assert_eq!(data, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_event_is_read_as_far_as_it_is_known() {
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
    fn ids_alone_tell_whether_something_is_missing() {
        let check = |cursor: &str, next: (&str, Option<&str>), expected: CursorOrder| {
            let id = |text: &str| text.parse::<EventId>().unwrap();
            let event =
                ClientEvent { id: id(next.0), base: next.1.map(id), kind: EventKind::Unknown, data: "{}".to_owned() };
            assert_eq!(event.place(id(cursor)), expected, "{cursor} then {next:?}");
        };
        check("0-0", ("0-1", Some("0-0")), CursorOrder::Next);
        check("1-2", ("1-3", None), CursorOrder::Next);
        check("1-2", ("1-2", None), CursorOrder::Known);
        check("1-2", ("1-4", None), CursorOrder::Gap);
        check("1-9", ("2-1", Some("1-5")), CursorOrder::Next);
        check("1-4", ("2-1", Some("1-5")), CursorOrder::Gap);
        check("1-9", ("2-2", None), CursorOrder::Gap);
        check("2-1", ("1-10", None), CursorOrder::Known);
    }
}
