//! Replay: reads the next events after a cursor from the log, or else from the archive.

use std::error::Error;

use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
    storage,
};
use uuid::Uuid;

use super::Relay;

/// Bytes of encoded events that one read asks for.
const READ_BYTES: usize = 64 * 1024;

/// Bytes of encoded events that one client holds while it catches up, without their frames.
const CLIENT_BYTES: usize = 2 * READ_BYTES;

/// The result of a read after a cursor.
pub enum ReplayResult<Events = Vec<Event>> {
    /// The next events, at least one.
    Events(Events),
    /// There are no events yet; the run continues.
    CaughtUp,
    /// The run has ended, and the client has all its events.
    Finished,
    /// The cursor is no event of this run.
    ForeignCursor,
    /// The events have expired.
    EventsGone,
    NoSuchRun,
}

impl<Events> ReplayResult<Events> {
    pub fn map<Other>(self, change: impl FnOnce(Events) -> Other) -> ReplayResult<Other> {
        match self {
            Self::Events(events) => ReplayResult::Events(change(events)),
            Self::CaughtUp => ReplayResult::CaughtUp,
            Self::Finished => ReplayResult::Finished,
            Self::ForeignCursor => ReplayResult::ForeignCursor,
            Self::EventsGone => ReplayResult::EventsGone,
            Self::NoSuchRun => ReplayResult::NoSuchRun,
        }
    }
}

impl Relay {
    /// Reads the next events after `cursor`.
    pub(super) async fn replay(&self, run_id: Uuid, cursor: EventId) -> Result<ReplayResult, storage::Error> {
        let events = match self.run_log.read(run_id, cursor, READ_BYTES).await {
            Ok(events) => truncate(following(events, cursor)),
            Err(error) => {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to read the run log; reading the archive");
                Vec::new()
            }
        };
        if !events.is_empty() {
            return Ok(ReplayResult::Events(events));
        }
        let Some(archived) = self.storage.read_archive(run_id, cursor).await? else {
            return Ok(ReplayResult::NoSuchRun);
        };
        let events = truncate(following(archived.events, cursor));
        let position = archived.position;
        if !events.is_empty() {
            return Ok(ReplayResult::Events(events));
        }
        Ok(match position {
            _ if position.status.is_terminal() && cursor == position.archived_to => ReplayResult::Finished,
            _ if position.removed && cursor < position.archived_to => ReplayResult::EventsGone,
            _ if position.status.is_terminal() || cursor.attempt > position.attempt => ReplayResult::ForeignCursor,
            _ => ReplayResult::CaughtUp,
        })
    }
}

/// Truncates the events to what one client may hold, at least one.
fn truncate(mut events: Vec<Event>) -> Vec<Event> {
    let mut bytes = 0;
    let fitting = events.iter().take_while(|event| {
        let fits = bytes < CLIENT_BYTES;
        bytes += event.line().len();
        fits
    });
    let fitting = fitting.count();
    events.truncate(fitting);
    events
}
