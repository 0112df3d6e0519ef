//! The JSON of an event, as the native wire, JSON pages and Durable Streams have it.

use std::io::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use holdfast_shared::{event::Event, event_id::EventId};
use uuid::Uuid;

/// Appends the event as one JSON object, on one line.
pub fn write(buffer: &mut Vec<u8>, run_id: Uuid, event: &Event) {
    write_object(buffer, run_id, event.id, event.kind_name(), event.at_ms, event.payload());
}

/// Appends an object with the payload and the fields of each event.
pub fn write_object(buffer: &mut Vec<u8>, run_id: Uuid, id: EventId, kind: &str, at_ms: i64, payload: &[u8]) {
    let at = DateTime::<Utc>::from_timestamp_millis(at_ms).unwrap_or_default();
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    write!(buffer, r#"{{"id":"{id}","run_id":"{run_id}","type":"{kind}","at":"{at}""#)
        .expect("a Vec takes every write");
    // The payload is an object, so its fields continue the object without its opening brace.
    let fields = &payload[1..];
    if fields.first() != Some(&b'}') {
        buffer.push(b',');
    }
    buffer.extend_from_slice(fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_payload_adds_no_comma() {
        let event = Event::parse("1-2 0 dream.dreamt {}".into()).unwrap();
        let mut buffer = Vec::new();
        write(&mut buffer, Uuid::nil(), &event);
        serde_json::from_slice::<serde_json::Value>(&buffer).unwrap();
    }
}
