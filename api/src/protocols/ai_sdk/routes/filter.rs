//! The view of a stream that shows only what a filter passes.

use bytes::Bytes;

use crate::{
    protocols::ai_sdk::wire as ai_sdk,
    relay::{Encode, Slice, TruncatedStream},
    thread::LogFilter,
    wire::{LogPosition, Projector, View},
};

/// A view with a filter.
pub struct FilteredView {
    view: View,
    filter: LogFilter,
    /// The position after the last event that the filter has passed.
    shown: LogPosition,
}

impl FilteredView {
    /// Starts at a position, which must be the log's start or a pause.
    pub const fn after(position: LogPosition, view: View, filter: LogFilter) -> Self {
        Self { view, filter, shown: position }
    }
}

impl Encode for FilteredView {
    fn reconnects(&self) -> bool {
        self.view.reconnects()
    }

    async fn encode(&mut self, slice: &Slice) -> Result<(Bytes, bool), TruncatedStream> {
        // After the filter's end, this client can share the frames of the others.
        if slice.first().id > self.filter.end() {
            return self.view.encode(slice).await;
        }
        let mut projector = Projector::after(self.shown, self.view.clone());
        let mut frames = Vec::new();
        for event in slice.events().filter(|event| !self.filter.leaves_out(event.id)) {
            projector.frame(&mut frames, event);
            self.shown = LogPosition::after(event);
            if self.filter.until == Some(event.id) {
                frames.extend_from_slice(&ai_sdk::end_of_segment());
                return Ok((frames.into(), true));
            }
        }
        Ok((frames.into(), slice.last().is_terminal()))
    }

    fn end_at_wait(&self, position: LogPosition) -> Option<Bytes> {
        self.view.end_at_wait(position)
    }
}
