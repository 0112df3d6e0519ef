//! Replay: the next events after a cursor, from the log, or else from the archive.

use std::error::Error;

use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
    storage,
};
use uuid::Uuid;

use super::Relay;

/// Encoded events that one read asks for, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Encoded events that one client holds while it catches up, in bytes; their frames come on top.
const HELD_BYTES: usize = 2 * READ_BYTES;

/// What there is after a cursor.
pub enum Replayed<Events = Vec<Event>> {
    /// The next events, at least one.
    Events(Events),
    /// Nothing yet; the run goes on.
    Nothing,
    /// Nothing any more; the client has everything.
    Finished,
    /// No event of the run was ever named like this.
    NeverIssued,
    /// The events are past their time.
    Removed,
    NoSuchRun,
}

impl<Events> Replayed<Events> {
    pub fn map<Other>(self, change: impl FnOnce(Events) -> Other) -> Replayed<Other> {
        match self {
            Self::Events(events) => Replayed::Events(change(events)),
            Self::Nothing => Replayed::Nothing,
            Self::Finished => Replayed::Finished,
            Self::NeverIssued => Replayed::NeverIssued,
            Self::Removed => Replayed::Removed,
            Self::NoSuchRun => Replayed::NoSuchRun,
        }
    }
}

impl Relay {
    /// Reads on after `cursor`.
    pub(super) async fn replay(&self, run_id: Uuid, cursor: EventId) -> Result<Replayed, storage::Error> {
        let logged = match self.run_log.read(run_id, cursor, READ_BYTES).await {
            Ok(events) => held(following(events, cursor)),
            Err(error) => {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "reading the archive instead of the log");
                Vec::new()
            }
        };
        if !logged.is_empty() {
            return Ok(Replayed::Events(logged));
        }
        let Some(archived) = self.storage.read_archive(run_id, cursor).await? else { return Ok(Replayed::NoSuchRun) };
        let events = held(following(archived.events, cursor));
        let position = archived.position;
        Ok(match events.is_empty() {
            false => Replayed::Events(events),
            true if position.status.is_terminal() && cursor == position.archived_to => Replayed::Finished,
            true if position.removed && cursor < position.archived_to => Replayed::Removed,
            true if position.status.is_terminal() || cursor.attempt > position.attempt => Replayed::NeverIssued,
            true => Replayed::Nothing,
        })
    }
}

/// The leading events that one client may hold, at least one.
fn held(mut events: Vec<Event>) -> Vec<Event> {
    let mut bytes = 0;
    let fitting = events.iter().take_while(|event| {
        let fits = bytes < HELD_BYTES;
        bytes += event.line().len();
        fits
    });
    let fitting = fitting.count();
    events.truncate(fitting);
    events
}
