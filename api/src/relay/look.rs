//! A look: what there is behind an event, without waiting and without moving a follower's cursor.

use std::error::Error;

use holdfast_shared::{event::Event, event_id::EventId};

use super::{follower::Follower, replay::Replayed};
use crate::wire::Before;

/// What there is.
pub(super) enum Look {
    /// The next events, at least one.
    Events(Vec<Event>),
    /// Nothing yet; the run goes on.
    CaughtUp,
    /// The run has ended before.
    Ended,
    /// The run, or its events, were removed.
    Gone,
    /// The database is away, and nobody knows.
    Away,
}

impl Follower {
    /// Looks behind an event. What changes from here on wakes the next wait.
    pub(super) async fn look(&mut self, at: EventId) -> Look {
        // Order matters: the version is noted before anything is read.
        let version = *self.changes.borrow_and_update();
        let feed = &self.watch.feed;
        match feed.events_after(at) {
            Some((events, _)) if !events.is_empty() => return Look::Events(events),
            Some((_, true)) => return Look::Ended,
            Some((_, false)) => return Look::CaughtUp,
            None => {}
        }
        match self.relay.replay(feed.run_id, at).await {
            Ok(Replayed::Events(events)) => Look::Events(events),
            Ok(Replayed::Nothing) => {
                feed.anchor(Before::cursor(at), version);
                Look::CaughtUp
            }
            Ok(Replayed::Finished) => Look::Ended,
            Ok(Replayed::NeverIssued | Replayed::Removed | Replayed::NoSuchRun) => Look::Gone,
            Err(error) => {
                tracing::debug!(run.id = %feed.run_id, error = &error as &dyn Error, "a look waits for the database");
                Look::Away
            }
        }
    }
}
