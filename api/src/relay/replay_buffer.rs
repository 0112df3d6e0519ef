//! A replay buffer: the newest batches of a run, up to a number of bytes.

use std::{collections::VecDeque, sync::Arc};

use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
};

use super::batch::{Batch, MemoryUse, Slice};
use crate::wire::LogPosition;

/// Batches at the end of a buffer that are searched first.
const NEAR: usize = 4;

/// The events of one run after some cursor, up to the newest.
pub struct ReplayBuffer {
    /// The position before the oldest event in the buffer.
    start: LogPosition,
    batches: VecDeque<Arc<Batch>>,
    memory: MemoryUse,
    max_bytes: usize,
}

/// A position in the buffer: a batch, and how many of its events to skip.
struct BufferPosition {
    index: usize,
    skip: usize,
}

impl ReplayBuffer {
    /// Returns an empty buffer for the events after a position.
    pub fn after(start: LogPosition, max_bytes: usize) -> Self {
        Self { start, batches: VecDeque::new(), memory: MemoryUse::default(), max_bytes }
    }

    /// Returns the position after the newest event.
    pub fn tail(&self) -> LogPosition {
        self.batches.back().map_or(self.start, |batch| batch.end())
    }

    /// Returns whether an event between the newest one and these is missing.
    pub fn has_gap_before(&self, events: &[Event]) -> bool {
        let tail = self.tail().id;
        events.iter().find(|event| event.id > tail).is_some_and(|event| !event.follows(tail))
    }

    /// Appends the events that follow the newest one, and drops those that the buffer has already.
    pub fn extend(&mut self, events: Vec<Event>) {
        let tail = self.tail();
        self.batches.extend(Batch::split(tail, following(events, tail.id), &self.memory));
        self.shrink();
    }

    /// Returns the position after the event `cursor`, or `None` if the buffer does not have the cursor.
    pub fn position(&self, cursor: EventId) -> Option<LogPosition> {
        if cursor == self.tail().id {
            return Some(self.tail());
        }
        let BufferPosition { index, skip } = self.find(cursor)?;
        let before = skip.checked_sub(1).map(|last| LogPosition::after(&self.batches[index].events()[last]));
        Some(before.or_else(|| index.checked_sub(1).map(|index| self.batches[index].end())).unwrap_or(self.start))
    }

    /// Returns about a slice of the events after `cursor`, or `None` if the buffer does not have the cursor or no event
    /// follows it.
    pub fn slice(&self, cursor: EventId) -> Option<Slice> {
        let BufferPosition { index, skip } = self.find(cursor)?;
        Some(Slice::take(self.batches.range(index..), skip))
    }

    /// Returns whether the buffer takes more memory than it may.
    pub fn is_too_large(&self) -> bool {
        self.memory.bytes() > self.max_bytes && self.batches.len() > 1
    }

    /// Drops the oldest batches until the buffer is within its limit.
    pub fn shrink(&mut self) {
        while self.is_too_large() {
            let dropped = self.batches.pop_front().expect("there is more than one");
            self.start = dropped.end();
        }
    }

    fn find(&self, cursor: EventId) -> Option<BufferPosition> {
        if cursor == self.start.id {
            return (!self.batches.is_empty()).then_some(BufferPosition { index: 0, skip: 0 });
        }
        let index = self.first_that_ends_at_or_after(cursor);
        let batch = self.batches.get(index)?;
        if batch.end().id == cursor {
            return (index + 1 < self.batches.len()).then_some(BufferPosition { index: index + 1, skip: 0 });
        }
        batch.offset_after(cursor).map(|skip| BufferPosition { index, skip })
    }

    /// Returns the index of the batch that has the cursor, if any has. Most subscribers are near the end, and a search of
    /// the whole buffer for each event of each run would take a fifth of the process's time.
    fn first_that_ends_at_or_after(&self, cursor: EventId) -> usize {
        let has_passed = |batch: &Arc<Batch>| batch.end().id < cursor;
        let near = self.batches.iter().rev().take(NEAR).take_while(|batch| !has_passed(batch)).count();
        if near < NEAR { self.batches.len() - near } else { self.batches.partition_point(has_passed) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use chrono::DateTime;
    use holdfast_shared::event::{EventBody, MessageDelta, StepStarted};
    use uuid::Uuid;

    use super::{super::batch::SLICE_BYTES, *};
    use crate::wire::{Block, Detail, View, Wire};

    const NATIVE: View = view(Wire::Native, Detail::All);
    const CHAT: View = view(Wire::Chat, Detail::All);
    const TEXT: View = view(Wire::Text, Detail::All);

    const fn view(wire: Wire, detail: Detail) -> View {
        let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::nil(), Uuid::nil());
        let created_at = DateTime::UNIX_EPOCH;
        View { wire, detail, run_id, conversation_id, message_id, created_at, context: None, plan: None }
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
        let start = LogPosition { id: EventId::new(1, 1), block: Block::None };
        let mut buffer = ReplayBuffer::after(start, usize::MAX);
        for events in batches {
            assert!(!buffer.has_gap_before(&events));
            buffer.extend(events);
        }
        buffer
    }

    fn frames(buffer: &ReplayBuffer, after: u32, view: &View) -> (Bytes, EventId) {
        let slice = buffer.slice(EventId::new(1, after)).expect("the buffer has events after the cursor");
        (slice.frames(view), slice.last().id)
    }

    #[test]
    fn a_batch_is_encoded_once_per_view() {
        let buffer = buffer(vec![vec![delta(2), delta(3)]]);
        for view in [NATIVE, CHAT, TEXT, view(Wire::Native, Detail::Messages)] {
            let (first, _) = frames(&buffer, 1, &view);
            let (again, _) = frames(&buffer, 1, &view);
            assert_eq!(first.as_ptr(), again.as_ptr(), "{view:?}");
            let (rest, _) = frames(&buffer, 2, &view);
            assert!(first.ends_with(&rest), "{view:?}");
            assert_eq!(rest.is_empty(), first.is_empty(), "{view:?}");
        }
    }

    #[test]
    fn each_view_continues_after_every_event() {
        let buffer = buffer(vec![vec![delta(2), delta(3), step(4), delta(5)], vec![step(6)], vec![delta(7), delta(8)]]);
        let shown = |from: u32| [2, 3, 5, 7, 8].into_iter().filter(move |n| *n > from);
        for after in 1..8 {
            let (text, last) = frames(&buffer, after, &TEXT);
            let expected: String = shown(after).map(|n| format!("id: 1-{n}\ndata: word{n} \n\n")).collect();
            assert_eq!((&text[..], last), (expected.as_bytes(), EventId::new(1, 8)), "after {after}");
            let (native, _) = frames(&buffer, after, &NATIVE);
            let ids = String::from_utf8_lossy(&native).matches("\nid: 1-").count() + 1;
            assert_eq!(ids, 8 - after as usize, "after {after}");
        }
        assert!(buffer.slice(EventId::new(1, 8)).is_none());
        assert!(buffer.slice(EventId::new(1, 9)).is_none());
    }

    #[test]
    fn a_position_has_the_block_after_its_event() {
        let buffer = buffer(vec![vec![delta(2), step(3)], vec![delta(4)]]);
        let block = |n| buffer.position(EventId::new(1, n)).map(|position| position.block);
        let known = [Block::None, Block::Text, Block::None, Block::Text].map(Some);
        assert_eq!([block(1), block(2), block(3), block(4)], known);
        assert_eq!([block(0), block(5)], [None; 2]);
    }

    #[test]
    fn each_event_is_found_near_the_end_and_far_from_it() {
        let batches = (2..40).step_by(2).map(|n| vec![delta(n), delta(n + 1)]).collect();
        let buffer = buffer(batches);
        for after in 1..39 {
            let slice = buffer.slice(EventId::new(1, after)).expect("the buffer has events after the cursor");
            assert_eq!(slice.first().id, EventId::new(1, after + 1));
        }
        assert!(buffer.slice(EventId::new(1, 0)).is_none());
        assert!(buffer.slice(EventId::new(1, 39)).is_none());
    }

    #[test]
    fn reading_events_needs_no_frames() {
        let buffer = buffer(vec![vec![delta(2), delta(3)], vec![delta(4)]]);
        let after = |n| buffer.slice(EventId::new(1, n)).map(|slice| slice.events().count());
        assert_eq!([after(1), after(2), after(3), after(4), after(5)], [Some(3), Some(2), Some(1), None, None]);
        assert_eq!(buffer.memory.bytes(), (2..5).map(|n| delta(n).line().len() + size_of::<Event>()).sum::<usize>());
    }

    #[test]
    fn encodings_count_towards_the_limit() {
        let mut buffer = buffer((2..200).map(|n| vec![delta(n)]).collect());
        buffer.max_bytes = buffer.memory.bytes();
        frames(&buffer, 1, &NATIVE);
        assert!(buffer.is_too_large());
        buffer.shrink();
        assert!(buffer.memory.bytes() <= buffer.max_bytes, "{} > {}", buffer.memory.bytes(), buffer.max_bytes);
        assert!(buffer.start.id > EventId::new(1, 1), "the buffer dropped no batch for the frames");
        assert!(buffer.slice(EventId::new(1, 1)).is_none());
    }

    #[test]
    fn a_client_receives_about_a_slice_at_a_time() {
        let buffer = buffer(vec![(2..3000).map(delta).collect()]);
        let mut at = 1;
        while at < 2999 {
            let (sent, last) = frames(&buffer, at, &NATIVE);
            assert!(sent.len() < SLICE_BYTES + 1024, "{}", sent.len());
            at = last.n;
        }
    }
}
