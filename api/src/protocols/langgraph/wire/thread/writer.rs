//! Writes the events of a thread's stream. The number of an event does not depend on the channels, so a client knows it again on
//! another stream, and comes back with another filter.

use holdfast_shared::event_id::EventId;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::channels::{Channel, Channels};
use crate::wire::FrameId;

/// The events of a stream, which a client may have in part.
#[derive(Debug, Clone)]
pub struct ThreadWriter {
    channels: Channels,
    run_id: Uuid,
    /// The place of the run in its thread.
    position: u64,
    /// The sequence number of the last event that the client has.
    since: u64,
    /// The id of the next event.
    next: FrameId,
    at_ms: i64,
    buffer: Vec<u8>,
}

#[derive(Serialize)]
struct ThreadEvent<'a, T> {
    r#type: &'static str,
    event_id: &'a str,
    seq: u64,
    method: &'static str,
    params: EventParams<'a, T>,
}

#[derive(Serialize)]
struct EventParams<'a, T> {
    /// Each run is at the root of its graph here.
    namespace: [&'static str; 0],
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    data: &'a T,
}

impl ThreadWriter {
    pub const fn new(channels: Channels, run_id: Uuid, position: u64, since: u64) -> Self {
        Self { channels, run_id, position, since, next: FrameId::START, at_ms: 0, buffer: Vec::new() }
    }

    /// Begins with the events of the log's event.
    pub const fn begin(&mut self, event: EventId, at_ms: i64) {
        self.next = FrameId { event, number: 0 };
        self.at_ms = at_ms;
    }

    /// Returns the written events, which the writer forgets.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Returns the number of the next event.
    pub const fn number(&self) -> u32 {
        self.next.number
    }

    pub const fn set_number(&mut self, number: u32) {
        self.next.number = number;
    }

    /// Appends an event if the client wants its channel. `data` is called only then.
    pub fn event<T: Serialize>(&mut self, channel: Channel, data: impl FnOnce() -> T) {
        let is_wanted = self.channels.has(channel);
        self.append(method_of(channel), node_of(channel), is_wanted, data);
    }

    /// Appends a custom event with this name if the client wants it.
    pub fn custom<T: Serialize>(&mut self, name: &str, payload: impl FnOnce() -> T) {
        let is_wanted = self.channels.has_custom(name);
        self.append("custom", None, is_wanted, || json!({"name": name, "payload": payload()}));
    }

    fn append<T: Serialize>(
        &mut self,
        method: &'static str,
        node: Option<&str>,
        is_wanted: bool,
        data: impl FnOnce() -> T,
    ) {
        let id = self.next;
        self.next.number += 1;
        let seq = sequence_number(self.position, id);
        if !is_wanted || seq <= self.since {
            return;
        }
        let event_id = format!("{}/{id}", self.run_id);
        let params = EventParams { namespace: [], timestamp: self.at_ms, node, data: &data() };
        let event = ThreadEvent { r#type: "event", event_id: &event_id, seq, method, params };
        self.buffer.extend_from_slice(format!("id: {event_id}\nevent: {method}\ndata: ").as_bytes());
        serde_json::to_writer(&mut self.buffer, &event).expect("a value is always valid JSON");
        self.buffer.extend_from_slice(b"\n\n");
    }
}

const fn method_of(channel: Channel) -> &'static str {
    match channel {
        Channel::Lifecycle => "lifecycle",
        Channel::Input => "input.requested",
        Channel::Values => "values",
        Channel::Messages => "messages",
        Channel::Tools => "tools",
        Channel::Checkpoints => "checkpoints",
        Channel::Custom => "custom",
    }
}

const fn node_of(channel: Channel) -> Option<&'static str> {
    match channel {
        Channel::Messages => Some("agent"),
        Channel::Tools => Some("tools"),
        _ => None,
    }
}

/// Bits of a sequence number for the run's place in its thread, for the attempt, for the event in the attempt, and for the number
/// among the event's frames. A number of JavaScript has 53.
const POSITION_BITS: u32 = 18;
const ATTEMPT_BITS: u32 = 8;
const EVENT_BITS: u32 = 22;
const NUMBER_BITS: u32 = 5;

/// Returns the sequence number of an event: it grows from event to event of a thread, and is the same on each stream.
fn sequence_number(position: u64, id: FrameId) -> u64 {
    let within = |value: u64, bits: u32| value.min((1 << bits) - 1);
    let run = within(position, POSITION_BITS) << (ATTEMPT_BITS + EVENT_BITS + NUMBER_BITS);
    let attempt = within(u64::from(id.event.attempt), ATTEMPT_BITS) << (EVENT_BITS + NUMBER_BITS);
    let event = within(u64::from(id.event.n), EVENT_BITS) << NUMBER_BITS;
    run | attempt | event | within(u64::from(id.number), NUMBER_BITS)
}

/// Returns the place of the run that a sequence number belongs to.
pub const fn position_of(sequence_number: u64) -> u64 {
    sequence_number >> (ATTEMPT_BITS + EVENT_BITS + NUMBER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_grow_and_name_their_run() {
        let frame = |attempt, n, number| FrameId { event: EventId::new(attempt, n), number };
        let in_order = [
            (1, frame(0, 1, 0)),
            (1, frame(0, 1, 1)),
            (1, frame(1, 1, 0)),
            (1, frame(1, 4_000_000, 30)),
            (1, frame(2, 1, 0)),
            (1, frame(255, 4_194_303, 31)),
            (2, frame(0, 1, 0)),
            (262_143, frame(255, 4_194_303, 31)),
        ];
        let numbers = in_order.map(|(position, id)| sequence_number(position, id));
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert_eq!(numbers.map(position_of), in_order.map(|(position, _)| position));
        assert!(*numbers.last().unwrap() < 1 << 53, "JavaScript has no greater number");
        assert_eq!(sequence_number(1, frame(1_000, 1, 99)) >> 35, 1, "what is too great for its bits stays in its run");
    }
}
