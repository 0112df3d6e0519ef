//! Writes the events of a stream as frames, and counts them.

use std::io::Write as _;

use holdfast_shared::event_id::EventId;
use serde::Serialize;

use crate::wire::FrameId;

/// The numbers of the next frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameCounts {
    /// Its id.
    pub next: FrameId,
    /// Its number in the response, from 0.
    pub sequence: u64,
}

/// Writes frames into a buffer.
pub struct FrameSender<'b> {
    buffer: &'b mut Vec<u8>,
    pub counts: FrameCounts,
}

impl FrameCounts {
    pub const START: Self = Self { next: FrameId { event: EventId::ORIGIN, number: 0 }, sequence: 0 };

    /// Returns the numbers of the first frame of an event.
    pub const fn at(self, event: EventId) -> Self {
        Self { next: FrameId { event, number: 0 }, ..self }
    }
}

impl<'b> FrameSender<'b> {
    pub const fn new(buffer: &'b mut Vec<u8>, counts: FrameCounts) -> Self {
        Self { buffer, counts }
    }

    /// Writes an event of the protocol. `fields` is an object with at least one field.
    pub fn send(&mut self, kind: &str, fields: &impl Serialize) {
        let FrameCounts { next, sequence } = self.counts;
        write!(self.buffer, "id: {next}\nevent: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence}")
            .expect("a Vec takes every write");
        let start = self.buffer.len();
        serde_json::to_writer(&mut *self.buffer, fields).expect("an event is always valid JSON");
        // The object has begun with the kind, so its fields follow a comma.
        self.buffer[start] = b',';
        self.finish();
    }

    /// Writes a chunk of a protocol without kinds.
    pub fn send_chunk(&mut self, chunk: &impl Serialize) {
        write!(self.buffer, "id: {}\ndata: ", self.counts.next).expect("a Vec takes every write");
        serde_json::to_writer(&mut *self.buffer, chunk).expect("a chunk is always valid JSON");
        self.finish();
    }

    /// Writes the end of a stream of chunks.
    pub fn send_done(&mut self) {
        write!(self.buffer, "id: {}\ndata: [DONE]", self.counts.next).expect("a Vec takes every write");
        self.finish();
    }

    fn finish(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
        self.counts.next.number += 1;
        self.counts.sequence += 1;
    }
}
