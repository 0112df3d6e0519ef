//! A batch: events in a row, with the frames that they have become for each view that somebody has asked for.

use bytes::Bytes;
use holdfast_shared::{event::Event, event_id::EventId};

use super::SLICE_BYTES;
use crate::wire::{Before, Projector, View};

/// What the frame of an event is longer than its line, at most; about.
const FRAME_OVERHEAD: usize = 160;

/// Events in a row, at least one.
pub struct Batch {
    /// What was just before the first event: where an encoding begins.
    before: Before,
    events: Vec<Event>,
    /// One per view, made on first demand and then shared by all who have that view.
    encodings: Vec<Encoding>,
    /// Bytes of memory that all this holds.
    bytes: usize,
}

struct Encoding {
    view: View,
    frames: Bytes,
    /// For each event the offset where its frames end.
    ends: Vec<u32>,
}

impl Batch {
    /// Takes the first of the events, as many as become about a slice and at least one; they are removed.
    pub fn take(before: Before, events: &mut Vec<Event>) -> Self {
        let mut bytes = 0;
        let fitting = events.iter().take_while(|event| {
            let fits = bytes < SLICE_BYTES;
            bytes += event.line().len() + FRAME_OVERHEAD;
            fits
        });
        let rest = events.split_off(fitting.count());
        let events = std::mem::replace(events, rest);
        let bytes = events.iter().map(|event| event.line().len() + size_of::<Event>()).sum();
        Self { before, events, encodings: Vec::new(), bytes }
    }

    pub fn last(&self) -> EventId {
        self.events.last().expect("a batch has an event").id
    }

    /// The place behind it.
    pub fn behind(&self) -> Before {
        Before::behind(self.events.last().expect("a batch has an event"))
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many of the events are known to who has `cursor`; `None` if that is none of them.
    pub fn known_at(&self, cursor: EventId) -> Option<usize> {
        self.events.binary_search_by_key(&cursor, |event| event.id).ok().map(|at| at + 1)
    }

    /// The frames of the events after the first `known`.
    pub fn frames(&mut self, view: &View, known: usize) -> Bytes {
        let at = self.encodings.iter().position(|encoding| encoding.view == *view).unwrap_or_else(|| {
            let encoding = Encoding::new(view.clone(), self.before, &self.events);
            self.bytes += encoding.frames.len() + size_of_val(&encoding.ends[..]);
            self.encodings.push(encoding);
            self.encodings.len() - 1
        });
        let Encoding { frames, ends, .. } = &self.encodings[at];
        let start = known.checked_sub(1).map_or(0, |last| ends[last] as usize);
        frames.slice(start..)
    }

    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Encoding {
    fn new(view: View, before: Before, events: &[Event]) -> Self {
        let usual = (events.len() * view.usual_bytes()).min(SLICE_BYTES);
        // The whole answer is one event, and may be larger than all others together: no more room than it needs.
        let large = events.iter().map(|event| event.line().len() + FRAME_OVERHEAD).filter(|bytes| *bytes > SLICE_BYTES);
        let mut frames = Vec::with_capacity(usual + large.sum::<usize>());
        let mut projector = Projector::after(before, view.clone());
        let ends = events.iter().map(|event| {
            projector.frame(&mut frames, event);
            frames.len() as u32
        });
        let ends = ends.collect();
        // Not every view shows what is large, and what is kept is counted by its length.
        if frames.capacity() - frames.len() > SLICE_BYTES {
            frames.shrink_to_fit();
        }
        Self { view, frames: frames.into(), ends }
    }
}
