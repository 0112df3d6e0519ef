//! Durable Streams, read only: the native events as a stream of JSON between offsets.
//!
//! Unlike its neighbours it is no projection. An answer also says whether the client has all events. The answer's
//! cursor depends on the clock, so that caches do not repeat one answer for ever (sections 5 to 8 of the protocol's
//! PROTOCOL.md).

use chrono::{DateTime, Utc};
use holdfast_shared::{event::Event, event_id::EventId};
use serde_json::json;
use uuid::Uuid;

use crate::wire::event_json;

/// Size of a page as JSON; the last slice of events may exceed it.
const PAGE_BYTES: usize = 1024 * 1024;

/// About how many bytes an event as JSON is longer than its line.
const OVERHEAD: usize = 128;

/// Where a client wants to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    After(EventId),
    /// After the newest event.
    Now,
}

impl Offset {
    /// Parses an offset; returns `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "-1" => Some(Self::After(EventId::ORIGIN)),
            "now" => Some(Self::Now),
            _ => {
                let (attempt, n) = text.split_once('_')?;
                Some(Self::After(EventId::new(ten_digits(attempt)?, ten_digits(n)?)))
            }
        }
    }
}

/// The events after an offset, as many as fit.
pub struct DurablePage {
    pub events: Vec<Event>,
    /// The last event of the page; that of the offset if the page is empty.
    pub last: EventId,
    /// Whether the run had no further events at that moment.
    pub up_to_date: bool,
    /// Whether the run will never have further events.
    pub closed: bool,
    /// About how many bytes the events take as JSON.
    pub bytes: usize,
}

impl DurablePage {
    /// Returns an empty page after an event.
    pub const fn empty_after(last: EventId) -> Self {
        Self { events: Vec::new(), last, up_to_date: false, closed: false, bytes: 0 }
    }

    /// Returns the empty page after a run's last event.
    pub fn end_after(last: EventId) -> Self {
        Self { up_to_date: true, closed: true, ..Self::empty_after(last) }
    }

    /// Appends an event.
    pub fn push(&mut self, event: Event) {
        self.bytes += event.line().len() + OVERHEAD;
        self.last = event.id;
        self.closed = event.is_terminal();
        self.up_to_date = self.closed;
        self.events.push(event);
    }

    /// Returns whether the page has no room for another event.
    pub const fn is_full(&self) -> bool {
        self.bytes >= PAGE_BYTES
    }

    /// Returns whether the page tells a client nothing that it does not know.
    pub fn is_unchanged(&self) -> bool {
        self.events.is_empty() && !self.closed
    }
}

/// Returns the offset after an event. Offsets sort as texts like the ids sort.
pub fn offset(id: EventId) -> String {
    format!("{:010}_{:010}", id.attempt, id.n)
}

fn ten_digits(text: &str) -> Option<u32> {
    let is_plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= i32::MAX as u32)
}

/// Returns the events as a JSON array, on one line.
pub fn array(run_id: Uuid, events: &[Event]) -> Vec<u8> {
    let mut json = Vec::with_capacity(2 + events.iter().map(|event| event.line().len() + OVERHEAD).sum::<usize>());
    append_array(&mut json, run_id, events);
    json
}

fn append_array(buffer: &mut Vec<u8>, run_id: Uuid, events: &[Event]) {
    buffer.push(b'[');
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            buffer.push(b',');
        }
        event_json::write(buffer, run_id, event);
    }
    buffer.push(b']');
}

/// Returns a page as SSE: its events, if any, and its control event. One write has both, because a client with the
/// events alone would read them again.
pub fn frames(run_id: Uuid, page: &DurablePage, cursor: u64) -> Vec<u8> {
    let mut frames = Vec::new();
    if !page.events.is_empty() {
        frames.extend_from_slice(b"event: data\ndata:");
        append_array(&mut frames, run_id, &page.events);
        frames.extend_from_slice(b"\n\n");
    }
    let mut control = json!({"streamNextOffset": offset(page.last)});
    if !page.closed {
        control["streamCursor"] = cursor.to_string().into();
    }
    if page.up_to_date {
        control["upToDate"] = true.into();
    }
    if page.closed {
        control["streamClosed"] = true.into();
    }
    frames.extend_from_slice(format!("event: control\ndata:{control}\n\n").as_bytes());
    frames
}

/// Seconds for which the cursor stays equal.
const INTERVAL: i64 = 20;

/// The protocol's epoch, 2024-10-09.
const EPOCH: i64 = 1_728_432_000;

/// Returns the cursor of an answer: the number of the interval, or a greater one if the client's cursor is not smaller.
pub fn cursor(now: DateTime<Utc>, previous: Option<&str>) -> u64 {
    let interval = ((now.timestamp() - EPOCH) / INTERVAL).max(0) as u64;
    let previous = previous.and_then(|text| text.parse::<u32>().ok());
    previous.map_or(interval, |previous| interval.max(u64::from(previous) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_sort_like_ids_and_parse_back() {
        let ids = [(0, 0), (0, 1), (1, 1), (1, 9), (1, 10), (2, 1), (10, 3), (i32::MAX as u32, 7)];
        let ids = ids.map(|(attempt, n)| EventId::new(attempt, n));
        let offsets = ids.map(offset);
        assert!(offsets.is_sorted());
        assert_eq!(offsets.map(|offset| Offset::parse(&offset)), ids.map(|id| Some(Offset::After(id))));
    }

    #[test]
    fn other_texts_are_no_offsets() {
        for text in ["", "1-1", "0,1", "0 1", "-2", "Now", "1_1", "0000000001_", "0000000001_+000000001"] {
            assert_eq!(Offset::parse(text), None, "{text:?}");
        }
        assert_eq!(Offset::parse("4294967295_0000000001"), None);
    }

    #[test]
    fn a_cursor_never_repeats() {
        let now = DateTime::from_timestamp(EPOCH + 10 * INTERVAL + 3, 0).unwrap();
        let check = |previous, expected| assert_eq!(cursor(now, previous), expected, "{previous:?}");
        check(None, 10);
        check(Some("7"), 10);
        check(Some("10"), 11);
        check(Some("40"), 41);
        check(Some("not a number"), 10);
    }
}
