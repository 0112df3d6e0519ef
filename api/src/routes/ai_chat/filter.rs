//! A filter of a run's log, and the view of a stream that shows only what the filter passes.

use bytes::Bytes;
use holdfast_shared::event_id::EventId;

use crate::{
    relay::{Encode, Slice},
    wire::{LogPosition, Projector, View, ai_sdk},
};

/// The part of a log that a stream shows.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Events to skip: those after the first and before the second of each pair.
    pub left_out: Vec<(EventId, EventId)>,
    /// The pause at which the stream ends, if the run has continued after it.
    pub until: Option<EventId>,
}

/// A view with a filter.
pub struct FilteredView {
    view: View,
    filter: LogFilter,
    /// The position after the last event that the filter has passed.
    shown: LogPosition,
}

impl LogFilter {
    /// Returns whether the filter leaves out the event.
    pub fn leaves_out(&self, id: EventId) -> bool {
        self.left_out.iter().any(|(base, until)| id > *base && id < *until)
    }

    /// Returns the event after which the filter passes all others.
    fn end(&self) -> EventId {
        let left_out = self.left_out.iter().map(|(_, until)| *until).max();
        left_out.max(self.until).unwrap_or(EventId::ORIGIN)
    }
}

impl FilteredView {
    /// Starts at a position, which must be the log's start or a pause.
    pub const fn after(position: LogPosition, view: View, filter: LogFilter) -> Self {
        Self { view, filter, shown: position }
    }
}

impl Encode for FilteredView {
    fn view(&self) -> &View {
        &self.view
    }

    fn encode(&mut self, slice: &Slice) -> (Bytes, bool) {
        // After the filter's end, this client can share the frames of the others.
        if slice.first().id > self.filter.end() {
            return self.view.encode(slice);
        }
        let mut projector = Projector::after(self.shown, self.view.clone());
        let mut frames = Vec::new();
        for event in slice.events().filter(|event| !self.filter.leaves_out(event.id)) {
            projector.frame(&mut frames, event);
            self.shown = LogPosition::after(event);
            if self.filter.until == Some(event.id) {
                frames.extend_from_slice(&ai_sdk::end_of_segment());
                return (frames.into(), true);
            }
        }
        (frames.into(), slice.last().is_terminal())
    }
}
