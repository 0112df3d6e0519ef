//! The reader of a run's log: the next events after a cursor, from the run log or else from the archive.

use std::error::Error;

use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
    run::RunStatus,
    run_log::RunLog,
    storage::{self, Storage},
};
use uuid::Uuid;

use crate::problem::Problem;

/// Bytes of encoded events that one read asks for.
const READ_BYTES: usize = 64 * 1024;

/// Bytes of encoded events that one client holds while it catches up, without their frames.
const CLIENT_BYTES: usize = 2 * READ_BYTES;

/// The continuation of a run's log after a cursor.
pub enum Next<Events> {
    /// The next events, at least one.
    Events(Events),
    /// There are no events yet; the run continues.
    CaughtUp,
    /// The run has ended, and the cursor is its last event.
    Ended,
}

/// Why a log cannot be read after a cursor.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the cursor is no event of the run")]
    ForeignCursor,
    #[error("the run's events have expired")]
    EventsGone,
    #[error("the run does not exist")]
    NoSuchRun,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Reads the logs of runs.
#[derive(Clone)]
pub struct LogReader {
    storage: Storage,
    run_log: RunLog,
}

/// The pages of one run's log, up to its newest event.
pub struct LogPages {
    reader: LogReader,
    run_id: Uuid,
    /// The last event of the newest page.
    pub last: EventId,
    /// Whether the run has ended with that event.
    pub has_ended: bool,
}

impl ReadError {
    /// Returns the problem of a request for the events after a cursor.
    pub fn into_problem(self, run_id: Uuid, cursor: EventId) -> Problem {
        match self {
            Self::ForeignCursor => Problem::foreign_event_id(cursor, run_id),
            Self::EventsGone => Problem::events_gone(run_id),
            Self::NoSuchRun => Problem::run_not_found(run_id),
            Self::Storage(error) => error.into(),
        }
    }
}

impl LogReader {
    pub const fn new(storage: Storage, run_log: RunLog) -> Self {
        Self { storage, run_log }
    }

    /// Reads the next events after `cursor`.
    pub async fn read(&self, run_id: Uuid, cursor: EventId) -> Result<Next<Vec<Event>>, ReadError> {
        let events = match self.run_log.read(run_id, cursor, READ_BYTES).await {
            Ok(events) => truncate(following(events, cursor)),
            Err(error) => {
                tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "failed to read the run log; reading the archive");
                Vec::new()
            }
        };
        if !events.is_empty() {
            return Ok(Next::Events(events));
        }
        let archived = self.storage.read_archive(run_id, cursor).await?.ok_or(ReadError::NoSuchRun)?;
        let events = truncate(following(archived.events, cursor));
        let position = archived.position;
        if !events.is_empty() {
            return Ok(Next::Events(events));
        }
        match position {
            _ if position.status.is_terminal() && cursor == position.archived_to => Ok(Next::Ended),
            _ if position.removed && cursor < position.archived_to => Err(ReadError::EventsGone),
            _ if position.status.is_terminal() || cursor.attempt > position.attempt => Err(ReadError::ForeignCursor),
            _ => Ok(Next::CaughtUp),
        }
    }

    /// Returns whether the run waits for an answer and has no event after `last`.
    pub async fn is_waiting_after(&self, run_id: Uuid, last: EventId) -> Result<bool, storage::Error> {
        let positions = self.storage.positions(vec![run_id]).await?;
        Ok(positions.iter().any(|(_, at)| at.status == RunStatus::Waiting && at.archived_to == last))
    }

    /// Returns the pages of a run's log after `cursor`.
    pub fn pages(&self, run_id: Uuid, cursor: EventId) -> LogPages {
        LogPages { reader: self.clone(), run_id, last: cursor, has_ended: false }
    }
}

impl LogPages {
    /// Returns the next events, or `None` after the newest one.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, Problem> {
        if self.has_ended {
            return Ok(None);
        }
        let next = self.reader.read(self.run_id, self.last).await;
        match next.map_err(|error| error.into_problem(self.run_id, self.last))? {
            Next::Events(events) => {
                let last = events.last().expect("a read has an event");
                (self.last, self.has_ended) = (last.id, last.is_terminal());
                Ok(Some(events))
            }
            Next::CaughtUp => Ok(None),
            Next::Ended => {
                self.has_ended = true;
                Ok(None)
            }
        }
    }
}

/// Truncates the events to as many as one client may hold, at least one.
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
