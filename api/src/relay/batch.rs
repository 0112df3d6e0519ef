//! A batch: consecutive events, with their frames for each view that a subscriber has asked for.

use bytes::Bytes;
use holdfast_shared::{event::Event, event_id::EventId};

use super::SLICE_BYTES;
use crate::wire::{LogPosition, Projector, View};

/// About how many bytes the frame of an event is longer than its line, at most.
const FRAME_OVERHEAD: usize = 160;

/// Consecutive events, at least one.
pub struct Batch {
    /// The position before the first event, where each encoding starts.
    start: LogPosition,
    events: Vec<Event>,
    /// One encoding per view. The first subscriber with a view has it made, and all subscribers with that view share
    /// it.
    encodings: Vec<Encoding>,
    /// Bytes of memory that the batch takes, encodings included.
    bytes: usize,
}

struct Encoding {
    view: View,
    frames: Bytes,
    /// For each event, the offset at which its frames end.
    ends: Vec<u32>,
}

impl Batch {
    /// Removes the first events, at least one and about as many as fill a slice, and returns them as a batch.
    pub fn take(start: LogPosition, events: &mut Vec<Event>) -> Self {
        let mut bytes = 0;
        let fitting = events.iter().take_while(|event| {
            let fits = bytes < SLICE_BYTES;
            bytes += event.line().len() + FRAME_OVERHEAD;
            fits
        });
        let rest = events.split_off(fitting.count());
        let events = std::mem::replace(events, rest);
        let bytes = events.iter().map(|event| event.line().len() + size_of::<Event>()).sum();
        Self { start, events, encodings: Vec::new(), bytes }
    }

    pub fn last(&self) -> EventId {
        self.events.last().expect("a batch has an event").id
    }

    /// Returns the position after the batch.
    pub fn end(&self) -> LogPosition {
        LogPosition::after(self.events.last().expect("a batch has an event"))
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns how many events of the batch a client with `cursor` has, or `None` if the batch does not have the
    /// cursor.
    pub fn offset_after(&self, cursor: EventId) -> Option<usize> {
        self.events.binary_search_by_key(&cursor, |event| event.id).ok().map(|at| at + 1)
    }

    /// Returns the frames of the events after the first `skip`, and encodes the batch if the view is new.
    pub fn frames(&mut self, view: &View, skip: usize) -> Bytes {
        let at = self.encodings.iter().position(|encoding| encoding.view == *view).unwrap_or_else(|| {
            let encoding = Encoding::new(view.clone(), self.start, &self.events);
            self.bytes += encoding.frames.len() + size_of_val(&encoding.ends[..]);
            self.encodings.push(encoding);
            self.encodings.len() - 1
        });
        let Encoding { frames, ends, .. } = &self.encodings[at];
        let start = skip.checked_sub(1).map_or(0, |last| ends[last] as usize);
        frames.slice(start..)
    }

    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Encoding {
    fn new(view: View, start: LogPosition, events: &[Event]) -> Self {
        let usual = (events.len() * view.typical_event_bytes()).min(SLICE_BYTES);
        // `message.completed` has the whole answer, and may be larger than all other events together, so the buffer is
        // sized for it.
        let large = events.iter().map(|event| event.line().len() + FRAME_OVERHEAD).filter(|bytes| *bytes > SLICE_BYTES);
        let mut frames = Vec::with_capacity(usual + large.sum::<usize>());
        let mut projector = Projector::after(start, view.clone());
        let ends = events.iter().map(|event| {
            projector.frame(&mut frames, event);
            frames.len() as u32
        });
        let ends = ends.collect();
        // Not every view shows a large event, and the replay buffer counts an encoding by its length.
        if frames.capacity() - frames.len() > SLICE_BYTES {
            frames.shrink_to_fit();
        }
        Self { view, frames: frames.into(), ends }
    }
}
