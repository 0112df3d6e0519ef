//! A window: the newest batches of a run, as many as a feed may hold.

use std::collections::VecDeque;

use bytes::Bytes;
use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
};

use super::{SLICE_BYTES, batch::Batch};
use crate::wire::{Before, View};

/// The events of one run after some cursor, up to the newest.
pub struct ReplayBuffer {
    /// The newest event; unknown until somebody who has caught up says where that is.
    tail: Option<Before>,
    /// What was just before the oldest event kept here.
    start: Before,
    batches: VecDeque<Batch>,
    bytes: usize,
    max_bytes: usize,
    ended: bool,
}

/// What there is for a cursor.
pub enum Next {
    /// What the next events become for the client, which may be nothing.
    Frames { frames: Bytes, behind: Before, events: usize, ended: bool },
    /// The cursor is the newest event; more will come.
    CaughtUp,
    /// The cursor is the newest event, and the run has ended.
    Ended,
    /// This cursor is not known here: read the log.
    Elsewhere,
}

/// What events have done to a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    Continued,
    /// There is something between the newest event and these.
    Gap,
}

impl Extended {
    pub fn has_gap(self) -> bool {
        self == Self::Gap
    }
}

/// Events from a cursor on: a batch, and how many of its events are known.
struct BufferPosition {
    index: usize,
    known: usize,
}

impl ReplayBuffer {
    pub fn new(max_bytes: usize) -> Self {
        Self { tail: None, start: Before::START, batches: VecDeque::new(), bytes: 0, max_bytes, ended: false }
    }

    pub fn tail(&self) -> Option<EventId> {
        self.tail.map(|tail| tail.id)
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Says where the run's log ends, if that is not known.
    pub fn anchor(&mut self, place: Before) {
        // Who has read the last event knows more of it than who was only told its id.
        let is_better = |tail: Before| tail.id == place.id && tail.block.is_none() && self.batches.is_empty();
        if self.tail.is_none_or(is_better) {
            self.tail = Some(place);
            self.start = place;
        }
    }

    /// Forgets where the run's log ends, and everything before.
    pub fn restart(&mut self) {
        *self = Self::new(self.max_bytes);
    }

    /// Appends the events that follow the newest one; those that are known are dropped.
    pub fn extend(&mut self, events: Vec<Event>) -> Extended {
        // Until there is an anchor, followers read for themselves; they are woken to do so.
        let Some(mut tail) = self.tail else { return Extended::Continued };
        let offered = events.last().map(|event| event.id);
        let mut events = following(events, tail.id);
        self.ended |= events.last().is_some_and(Event::is_terminal);
        while !events.is_empty() {
            let batch = Batch::take(tail, &mut events);
            tail = batch.behind();
            self.bytes += batch.bytes();
            self.batches.push_back(batch);
        }
        self.tail = Some(tail);
        self.shrink();
        if offered > self.tail() { Extended::Gap } else { Extended::Continued }
    }

    /// The frames after `cursor`, about a slice of them.
    pub fn after(&mut self, cursor: EventId, view: &View) -> Next {
        if self.tail() == Some(cursor) {
            return if self.ended { Next::Ended } else { Next::CaughtUp };
        }
        let Some(BufferPosition { index, known }) = self.find(cursor) else { return Next::Elsewhere };
        if view.wire.has_blocks() && cursor == self.start.id && self.start.block.is_none() {
            return Next::Elsewhere;
        }
        let mut frames = self.frames(index, known, view);
        let (mut behind, mut events) = (self.batches[index].behind(), self.batches[index].events().len() - known);
        let mut joined = Vec::new();
        for index in index + 1..self.batches.len() {
            let more = self.frames(index, 0, view);
            if frames.len().max(joined.len()) + more.len() > SLICE_BYTES {
                break;
            }
            behind = self.batches[index].behind();
            events += self.batches[index].events().len();
            if frames.is_empty() {
                frames = more;
            } else if !more.is_empty() {
                if joined.is_empty() {
                    joined.extend_from_slice(&frames);
                }
                joined.extend_from_slice(&more);
            }
        }
        if !joined.is_empty() {
            frames = joined.into();
        }
        let ended = self.ended && Some(behind) == self.tail;
        self.shrink();
        Next::Frames { frames, behind, events, ended }
    }

    /// Whether what comes behind `cursor` is here, or will be.
    pub fn knows(&self, cursor: EventId) -> bool {
        self.tail() == Some(cursor) || self.find(cursor).is_some()
    }

    /// The events after `cursor`; `None` if it is not known here.
    pub fn events_after(&self, cursor: EventId) -> Option<Vec<Event>> {
        if self.tail() == Some(cursor) {
            return Some(Vec::new());
        }
        let BufferPosition { index, known } = self.find(cursor)?;
        let events = self.batches.iter().skip(index).flat_map(Batch::events);
        Some(events.skip(known).cloned().collect())
    }

    fn frames(&mut self, index: usize, known: usize, view: &View) -> Bytes {
        let batch = &mut self.batches[index];
        self.bytes -= batch.bytes();
        let frames = batch.frames(view, known);
        self.bytes += batch.bytes();
        frames
    }

    /// Drops the oldest batches, until the rest is as small as it must be.
    fn shrink(&mut self) {
        while self.bytes > self.max_bytes && self.batches.len() > 1 {
            let dropped = self.batches.pop_front().expect("there is more than one");
            self.bytes -= dropped.bytes();
            self.start = dropped.behind();
        }
    }

    fn find(&self, cursor: EventId) -> Option<BufferPosition> {
        if cursor == self.start.id {
            return (!self.batches.is_empty()).then_some(BufferPosition { index: 0, known: 0 });
        }
        let index = self.batches.partition_point(|batch| batch.last() < cursor);
        let batch = self.batches.get(index)?;
        if batch.last() == cursor {
            return (index + 1 < self.batches.len()).then_some(BufferPosition { index: index + 1, known: 0 });
        }
        batch.known_at(cursor).map(|known| BufferPosition { index, known })
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::event::{EventBody, MessageDelta, StepStarted};
    use uuid::Uuid;

    use super::*;
    use crate::wire::{Shows, Wire};

    const NATIVE: View = view(Wire::Native, Shows::Everything);
    const CHAT: View = view(Wire::Chat, Shows::Everything);
    const TEXT: View = view(Wire::Text, Shows::Everything);

    const fn view(wire: Wire, shows: Shows) -> View {
        let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::nil(), Uuid::nil());
        let created_at = DateTime::UNIX_EPOCH;
        View { wire, shows, run_id, conversation_id, message_id, created_at, context: None }
    }

    fn delta(n: u32) -> Event {
        let body = EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: format!("word{n} ").into() });
        Event::new(EventId::new(1, n), DateTime::UNIX_EPOCH, &body)
    }

    fn step(n: u32) -> Event {
        Event::new(EventId::new(1, n), DateTime::UNIX_EPOCH, &EventBody::StepStarted(StepStarted { step: 1 }))
    }

    /// A window behind 1-1, with a batch per item.
    fn window(batches: Vec<Vec<Event>>) -> ReplayBuffer {
        let mut window = ReplayBuffer::new(usize::MAX);
        window.anchor(Before::cursor(EventId::new(1, 1)));
        for events in batches {
            assert!(!window.extend(events).has_gap());
        }
        window
    }

    fn frames(window: &mut ReplayBuffer, after: u32, view: &View) -> (Bytes, EventId) {
        match window.after(EventId::new(1, after), view) {
            Next::Frames { frames, behind, .. } => (frames, behind.id),
            _ => panic!("there is nothing after 1-{after}"),
        }
    }

    #[test]
    fn a_batch_is_encoded_once_per_view() {
        let mut window = window(vec![vec![delta(2), delta(3)]]);
        for view in [NATIVE, CHAT, TEXT, view(Wire::Native, Shows::Messages)] {
            let (first, _) = frames(&mut window, 1, &view);
            let (again, _) = frames(&mut window, 1, &view);
            assert_eq!(first.as_ptr(), again.as_ptr(), "{view:?}");
            let (rest, _) = frames(&mut window, 2, &view);
            assert!(first.ends_with(&rest), "{view:?}");
            assert_eq!(rest.is_empty(), first.is_empty(), "{view:?}");
        }
    }

    #[test]
    fn each_view_goes_on_after_every_event() {
        let mut window =
            window(vec![vec![delta(2), delta(3), step(4), delta(5)], vec![step(6)], vec![delta(7), delta(8)]]);
        let shown = |from: u32| [2, 3, 5, 7, 8].into_iter().filter(move |n| *n > from);
        for after in 1..8 {
            let (text, last) = frames(&mut window, after, &TEXT);
            let expected: String = shown(after).map(|n| format!("id: 1-{n}\ndata: word{n} \n\n")).collect();
            assert_eq!((&text[..], last), (expected.as_bytes(), EventId::new(1, 8)), "after {after}");
            let (native, _) = frames(&mut window, after, &NATIVE);
            let ids = String::from_utf8_lossy(&native).matches("\nid: 1-").count() + 1;
            assert_eq!(ids, 8 - after as usize, "after {after}");
        }
        assert!(matches!(window.after(EventId::new(1, 8), &TEXT), Next::CaughtUp));
        assert!(matches!(window.after(EventId::new(1, 9), &TEXT), Next::Elsewhere));
    }

    #[test]
    fn events_are_seen_without_their_frames() {
        let window = window(vec![vec![delta(2), delta(3)], vec![delta(4)]]);
        let after = |n| window.events_after(EventId::new(1, n)).map(|events| events.len());
        assert_eq!([after(1), after(2), after(3), after(4), after(5)], [Some(3), Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn encodings_count_as_what_a_window_holds() {
        let mut window = window((2..200).map(|n| vec![delta(n)]).collect());
        window.max_bytes = window.bytes;
        frames(&mut window, 1, &NATIVE);
        assert!(window.bytes <= window.max_bytes, "{} > {}", window.bytes, window.max_bytes);
        assert!(window.start.id > EventId::new(1, 1), "nothing was dropped for the frames");
        assert_eq!(window.bytes, window.batches.iter().map(Batch::bytes).sum::<usize>());
        assert!(matches!(window.after(EventId::new(1, 1), &NATIVE), Next::Elsewhere));
    }

    #[test]
    fn a_client_is_sent_about_a_slice_at_a_time() {
        let mut window = window(vec![(2..3000).map(delta).collect()]);
        let mut at = 1;
        while at < 2999 {
            let (sent, last) = frames(&mut window, at, &NATIVE);
            assert!(sent.len() < SLICE_BYTES + 1024, "{}", sent.len());
            at = last.n;
        }
    }
}
