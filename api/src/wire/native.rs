//! The native wire: every event as it is, one SSE frame each.
//!
//! `id: 1-17`, `event: message.delta`, `data: {"id":"1-17","run_id":"…","type":"message.delta","at":"…", …payload}`.

use std::io::Write as _;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use holdfast_shared::event::{Event, MESSAGE_COMPLETED, is_terminal};
use uuid::Uuid;

/// Appends the frame of an event.
pub fn frame(buffer: &mut Vec<u8>, run_id: Uuid, event: &Event) {
    write!(buffer, "id: {}\nevent: {}\ndata: ", event.id, event.kind()).expect("a Vec takes every write");
    json(buffer, run_id, event);
    buffer.extend_from_slice(b"\n\n");
}

/// Appends the event as one JSON object, on one line.
pub fn json(buffer: &mut Vec<u8>, run_id: Uuid, event: &Event) {
    let at = DateTime::<Utc>::from_timestamp_millis(event.at_ms).unwrap_or_default();
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    write!(buffer, r#"{{"id":"{}","run_id":"{run_id}","type":"{}","at":"{at}""#, event.id, event.kind())
        .expect("a Vec takes every write");
    // The payload is an object: its fields go on where these end.
    let fields = &event.payload()[1..];
    if fields.first() != Some(&b'}') {
        buffer.push(b',');
    }
    buffer.extend_from_slice(fields);
}

/// Of frames in a row, those that `messages` streams carry: whole messages and the end of the run.
pub fn only_messages(frames: &[u8]) -> Bytes {
    let mut kept = Vec::new();
    let mut rest = frames;
    while let Some(end) = memchr::memmem::find(rest, b"\n\n") {
        let (frame, after) = rest.split_at(end + 2);
        rest = after;
        if kind(frame).is_some_and(|kind| kind == MESSAGE_COMPLETED || is_terminal(kind)) {
            kept.extend_from_slice(frame);
        }
    }
    kept.into()
}

/// The type of a frame's event; comments and `retry:` have none.
fn kind(frame: &[u8]) -> Option<&str> {
    let line = frame.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"event: "))?;
    std::str::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use holdfast_shared::{event::EventBody, event_id::EventId};

    use super::*;

    #[test]
    fn a_frame_is_an_id_a_type_and_one_line_of_json() {
        let body = EventBody::MessageDelta { message_id: Uuid::nil(), text: "two\nlines".into() };
        let event = Event::new(EventId::new(1, 17), DateTime::from_timestamp_millis(1_790_000_000_123).unwrap(), &body);
        let mut buffer = Vec::new();
        frame(&mut buffer, Uuid::nil(), &event);
        let expected = concat!(
            "id: 1-17\nevent: message.delta\n",
            r#"data: {"id":"1-17","run_id":"00000000-0000-0000-0000-000000000000","type":"message.delta","at":"2026-09-21T14:13:20.123Z","#,
            r#""message_id":"00000000-0000-0000-0000-000000000000","text":"two\nlines"}"#,
            "\n\n"
        );
        assert_eq!(String::from_utf8(buffer).unwrap(), expected);
    }

    #[test]
    fn of_a_run_only_messages_and_its_end_are_kept() {
        let frame = |id: &str, kind: &str| format!("id: {id}\nevent: {kind}\ndata: {{}}\n\n");
        let all = [
            frame("1-1", "attempt.started"),
            frame("1-2", "message.delta"),
            frame("1-3", "message.completed"),
            frame("1-4", "run.completed"),
        ];
        assert_eq!(only_messages(all.concat().as_bytes()), all[2..].concat());
        assert!(only_messages(b": hb\n").is_empty());
    }

    #[test]
    fn an_empty_payload_leaves_no_comma() {
        let event = Event::parse("1-2 0 dream.dreamt {}".into()).unwrap();
        let mut buffer = Vec::new();
        json(&mut buffer, Uuid::nil(), &event);
        serde_json::from_slice::<serde_json::Value>(&buffer).unwrap();
    }
}
