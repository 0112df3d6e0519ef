//! A poll: the events after a given one, without waiting and without moving the subscriber's cursor.

use std::error::Error;

use holdfast_shared::{event::Event, event_id::EventId};

use super::{replay::ReplayResult, subscriber::Subscriber};
use crate::wire::LogPosition;

/// The result of a poll.
pub(super) enum PollResult {
    /// The next events, at least one.
    Events(Vec<Event>),
    /// There are no events yet; the run continues.
    CaughtUp,
    /// The run ended with the given event.
    Ended,
    /// The run or its events were deleted.
    Gone,
    /// The database is unavailable, so the result is unknown.
    Unavailable,
}

impl Subscriber {
    /// Returns the events after `at`. A change after this call wakes the next `wait`.
    pub(super) async fn poll(&mut self, at: EventId) -> PollResult {
        // Order matters: the subscriber notes the version before it reads.
        let version = *self.changes.borrow_and_update();
        let topic = &self.handle.topic;
        match topic.events_after(at) {
            Some((events, _)) if !events.is_empty() => return PollResult::Events(events),
            Some((_, true)) => return PollResult::Ended,
            Some((_, false)) => return PollResult::CaughtUp,
            None => {}
        }
        match self.relay.replay(topic.run_id, at).await {
            Ok(ReplayResult::Events(events)) => PollResult::Events(events),
            Ok(ReplayResult::CaughtUp) => {
                topic.anchor(LogPosition::of_cursor(at), version);
                PollResult::CaughtUp
            }
            Ok(ReplayResult::Finished) => PollResult::Ended,
            Ok(ReplayResult::ForeignCursor | ReplayResult::EventsGone | ReplayResult::NoSuchRun) => PollResult::Gone,
            Err(error) => {
                tracing::debug!(run.id = %topic.run_id, error = &error as &dyn Error, "failed to poll a run; trying again");
                PollResult::Unavailable
            }
        }
    }
}
