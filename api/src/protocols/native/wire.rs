//! The native wire: every event as it is, one SSE frame each.
//!
//! `id: 1-17`, `event: message.delta`, `data: {"id":"1-17","run_id":"…","type":"message.delta","at":"…", …payload}`.

use std::io::Write as _;

use holdfast_shared::{
    event::Event,
    event_id::EventId,
    snapshot::{RUN_SNAPSHOT, Snapshot},
};
use uuid::Uuid;

use crate::wire::event_json;

/// Appends the frame of an event.
pub fn frame(buffer: &mut Vec<u8>, run_id: Uuid, event: &Event) {
    write!(buffer, "id: {}\nevent: {}\ndata: ", event.id, event.kind_name()).expect("a Vec takes every write");
    event_json::write(buffer, run_id, event);
    buffer.extend_from_slice(b"\n\n");
}

/// Appends the frame of a snapshot, with the id of the newest folded event.
pub fn snapshot_frame(buffer: &mut Vec<u8>, run_id: Uuid, last: EventId, at_ms: i64, snapshot: &Snapshot) {
    let payload = serde_json::to_vec(snapshot).expect("a snapshot is always valid JSON");
    write!(buffer, "id: {last}\nevent: {RUN_SNAPSHOT}\ndata: ").expect("a Vec takes every write");
    event_json::write_object(buffer, run_id, last, RUN_SNAPSHOT, at_ms, &payload);
    buffer.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::event::{EventBody, MessageDelta};

    use super::*;

    #[test]
    fn a_frame_is_an_id_a_type_and_one_line_of_json() {
        let body = EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: "two\nlines".into() });
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
}
