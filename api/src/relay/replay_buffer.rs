//! A replay buffer: the newest batches of a run, up to a number of bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
};

use super::{SLICE_BYTES, batch::Batch};
use crate::wire::{LogPosition, View};

/// The events of one run after some cursor, up to the newest.
pub struct ReplayBuffer {
    /// The position after the newest event; unknown until a subscriber that has caught up sets it.
    tail: Option<LogPosition>,
    /// The position before the oldest event in the buffer.
    start: LogPosition,
    batches: VecDeque<Batch>,
    bytes: usize,
    max_bytes: usize,
    has_ended: bool,
}

/// The result of a read after a cursor.
pub enum BufferRead {
    /// The frames of the next events, which may be empty, and the position after these events.
    Frames { frames: Bytes, end: LogPosition, events: usize, has_ended: bool },
    /// The cursor is the newest event, and the run continues.
    CaughtUp,
    /// The cursor is the newest event, and the run has ended.
    Finished,
    /// The buffer does not have the cursor, so the subscriber must read the log.
    NotBuffered,
}

/// The result of appending events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtendOutcome {
    Contiguous,
    /// Events between the newest one and the appended ones are missing.
    Gap,
}

impl ExtendOutcome {
    pub fn has_gap(self) -> bool {
        self == Self::Gap
    }
}

/// A position in the buffer: a batch, and how many of its events to skip.
struct BufferPosition {
    index: usize,
    skip: usize,
}

impl ReplayBuffer {
    pub fn new(max_bytes: usize) -> Self {
        Self { tail: None, start: LogPosition::START, batches: VecDeque::new(), bytes: 0, max_bytes, has_ended: false }
    }

    pub fn tail(&self) -> Option<EventId> {
        self.tail.map(|tail| tail.id)
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sets the position at which the run's log ends, unless the buffer has a better one.
    pub fn anchor(&mut self, position: LogPosition) {
        // A position with a block is better than one with an id alone.
        let is_better = |tail: LogPosition| tail.id == position.id && tail.block.is_none() && self.batches.is_empty();
        if self.tail.is_none_or(is_better) {
            self.tail = Some(position);
            self.start = position;
        }
    }

    /// Drops all events and the position at which the log ends.
    pub fn restart(&mut self) {
        *self = Self::new(self.max_bytes);
    }

    /// Appends the events that follow the newest one, and drops those that the buffer has already.
    pub fn extend(&mut self, events: Vec<Event>) -> ExtendOutcome {
        // Without an anchor, subscribers read the log themselves; the topic wakes them for that.
        let Some(mut tail) = self.tail else { return ExtendOutcome::Contiguous };
        let offered = events.last().map(|event| event.id);
        let mut events = following(events, tail.id);
        self.has_ended |= events.last().is_some_and(Event::is_terminal);
        while !events.is_empty() {
            let batch = Batch::take(tail, &mut events);
            tail = batch.end();
            self.bytes += batch.bytes();
            self.batches.push_back(batch);
        }
        self.tail = Some(tail);
        self.shrink();
        if offered > self.tail() { ExtendOutcome::Gap } else { ExtendOutcome::Contiguous }
    }

    /// Returns the frames after `cursor`, about a slice of them.
    pub fn after(&mut self, cursor: EventId, view: &View) -> BufferRead {
        if self.tail() == Some(cursor) {
            return if self.has_ended { BufferRead::Finished } else { BufferRead::CaughtUp };
        }
        let Some(BufferPosition { index, skip }) = self.find(cursor) else { return BufferRead::NotBuffered };
        if view.wire.has_blocks() && cursor == self.start.id && self.start.block.is_none() {
            return BufferRead::NotBuffered;
        }
        let mut frames = self.frames(index, skip, view);
        let (mut end, mut events) = (self.batches[index].end(), self.batches[index].events().len() - skip);
        let mut combined = Vec::new();
        for index in index + 1..self.batches.len() {
            let more = self.frames(index, 0, view);
            if frames.len().max(combined.len()) + more.len() > SLICE_BYTES {
                break;
            }
            end = self.batches[index].end();
            events += self.batches[index].events().len();
            if frames.is_empty() {
                frames = more;
            } else if !more.is_empty() {
                if combined.is_empty() {
                    combined.extend_from_slice(&frames);
                }
                combined.extend_from_slice(&more);
            }
        }
        if !combined.is_empty() {
            frames = combined.into();
        }
        let has_ended = self.has_ended && Some(end) == self.tail;
        self.shrink();
        BufferRead::Frames { frames, end, events, has_ended }
    }

    /// Returns whether the buffer has, or will have, the events after `cursor`.
    pub fn covers(&self, cursor: EventId) -> bool {
        self.tail() == Some(cursor) || self.find(cursor).is_some()
    }

    /// Returns the events after `cursor`, or `None` if the buffer does not have the cursor.
    pub fn events_after(&self, cursor: EventId) -> Option<Vec<Event>> {
        if self.tail() == Some(cursor) {
            return Some(Vec::new());
        }
        let BufferPosition { index, skip } = self.find(cursor)?;
        let events = self.batches.iter().skip(index).flat_map(Batch::events);
        Some(events.skip(skip).cloned().collect())
    }

    fn frames(&mut self, index: usize, skip: usize, view: &View) -> Bytes {
        let batch = &mut self.batches[index];
        self.bytes -= batch.bytes();
        let frames = batch.frames(view, skip);
        self.bytes += batch.bytes();
        frames
    }

    /// Drops the oldest batches until the buffer is within its limit.
    fn shrink(&mut self) {
        while self.bytes > self.max_bytes && self.batches.len() > 1 {
            let dropped = self.batches.pop_front().expect("there is more than one");
            self.bytes -= dropped.bytes();
            self.start = dropped.end();
        }
    }

    fn find(&self, cursor: EventId) -> Option<BufferPosition> {
        if cursor == self.start.id {
            return (!self.batches.is_empty()).then_some(BufferPosition { index: 0, skip: 0 });
        }
        let index = self.batches.partition_point(|batch| batch.last() < cursor);
        let batch = self.batches.get(index)?;
        if batch.last() == cursor {
            return (index + 1 < self.batches.len()).then_some(BufferPosition { index: index + 1, skip: 0 });
        }
        batch.offset_after(cursor).map(|skip| BufferPosition { index, skip })
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::event::{EventBody, MessageDelta, StepStarted};
    use uuid::Uuid;

    use super::*;
    use crate::wire::{Detail, Wire};

    const NATIVE: View = view(Wire::Native, Detail::All);
    const CHAT: View = view(Wire::Chat, Detail::All);
    const TEXT: View = view(Wire::Text, Detail::All);

    const fn view(wire: Wire, detail: Detail) -> View {
        let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::nil(), Uuid::nil());
        let created_at = DateTime::UNIX_EPOCH;
        View { wire, detail, run_id, conversation_id, message_id, created_at, context: None }
    }

    fn delta(n: u32) -> Event {
        let body = EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: format!("word{n} ").into() });
        Event::new(EventId::new(1, n), DateTime::UNIX_EPOCH, &body)
    }

    fn step(n: u32) -> Event {
        Event::new(EventId::new(1, n), DateTime::UNIX_EPOCH, &EventBody::StepStarted(StepStarted { step: 1 }))
    }

    /// Returns a buffer that starts after 1-1, with a batch per item.
    fn buffer(batches: Vec<Vec<Event>>) -> ReplayBuffer {
        let mut buffer = ReplayBuffer::new(usize::MAX);
        buffer.anchor(LogPosition::of_cursor(EventId::new(1, 1)));
        for events in batches {
            assert!(!buffer.extend(events).has_gap());
        }
        buffer
    }

    fn frames(buffer: &mut ReplayBuffer, after: u32, view: &View) -> (Bytes, EventId) {
        match buffer.after(EventId::new(1, after), view) {
            BufferRead::Frames { frames, end, .. } => (frames, end.id),
            _ => panic!("the buffer has no events after 1-{after}"),
        }
    }

    #[test]
    fn a_batch_is_encoded_once_per_view() {
        let mut buffer = buffer(vec![vec![delta(2), delta(3)]]);
        for view in [NATIVE, CHAT, TEXT, view(Wire::Native, Detail::Messages)] {
            let (first, _) = frames(&mut buffer, 1, &view);
            let (again, _) = frames(&mut buffer, 1, &view);
            assert_eq!(first.as_ptr(), again.as_ptr(), "{view:?}");
            let (rest, _) = frames(&mut buffer, 2, &view);
            assert!(first.ends_with(&rest), "{view:?}");
            assert_eq!(rest.is_empty(), first.is_empty(), "{view:?}");
        }
    }

    #[test]
    fn each_view_continues_after_every_event() {
        let mut buffer =
            buffer(vec![vec![delta(2), delta(3), step(4), delta(5)], vec![step(6)], vec![delta(7), delta(8)]]);
        let shown = |from: u32| [2, 3, 5, 7, 8].into_iter().filter(move |n| *n > from);
        for after in 1..8 {
            let (text, last) = frames(&mut buffer, after, &TEXT);
            let expected: String = shown(after).map(|n| format!("id: 1-{n}\ndata: word{n} \n\n")).collect();
            assert_eq!((&text[..], last), (expected.as_bytes(), EventId::new(1, 8)), "after {after}");
            let (native, _) = frames(&mut buffer, after, &NATIVE);
            let ids = String::from_utf8_lossy(&native).matches("\nid: 1-").count() + 1;
            assert_eq!(ids, 8 - after as usize, "after {after}");
        }
        assert!(matches!(buffer.after(EventId::new(1, 8), &TEXT), BufferRead::CaughtUp));
        assert!(matches!(buffer.after(EventId::new(1, 9), &TEXT), BufferRead::NotBuffered));
    }

    #[test]
    fn reading_events_needs_no_frames() {
        let buffer = buffer(vec![vec![delta(2), delta(3)], vec![delta(4)]]);
        let after = |n| buffer.events_after(EventId::new(1, n)).map(|events| events.len());
        assert_eq!([after(1), after(2), after(3), after(4), after(5)], [Some(3), Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn encodings_count_towards_the_limit() {
        let mut buffer = buffer((2..200).map(|n| vec![delta(n)]).collect());
        buffer.max_bytes = buffer.bytes;
        frames(&mut buffer, 1, &NATIVE);
        assert!(buffer.bytes <= buffer.max_bytes, "{} > {}", buffer.bytes, buffer.max_bytes);
        assert!(buffer.start.id > EventId::new(1, 1), "the buffer dropped no batch for the frames");
        assert_eq!(buffer.bytes, buffer.batches.iter().map(Batch::bytes).sum::<usize>());
        assert!(matches!(buffer.after(EventId::new(1, 1), &NATIVE), BufferRead::NotBuffered));
    }

    #[test]
    fn a_client_receives_about_a_slice_at_a_time() {
        let mut buffer = buffer(vec![(2..3000).map(delta).collect()]);
        let mut at = 1;
        while at < 2999 {
            let (sent, last) = frames(&mut buffer, at, &NATIVE);
            assert!(sent.len() < SLICE_BYTES + 1024, "{}", sent.len());
            at = last.n;
        }
    }
}
