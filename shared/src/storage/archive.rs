//! The archive: a run's durable events in chunks, read together with the run's position.

use bytes::Bytes;
use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};
use crate::{event::Event, event_id::EventId, run::RunStatus};

/// The state of a run at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Status of the run.
    pub status: RunStatus,
    /// Number of the newest attempt.
    pub attempt: u32,
    /// The newest durable event.
    pub archived_to: EventId,
    /// True if the sweeper has removed the events, because their retention is over.
    pub removed: bool,
}

/// A part of a run's archive.
#[derive(Debug)]
pub struct ArchivePage {
    /// The run's state at the moment of the read.
    pub position: Position,
    /// Events of the chunks that end after the cursor. The first of them may lie before it.
    pub events: Vec<Event>,
}

/// Rows of one read.
const CHUNKS: i64 = 1;

#[derive(FromRow)]
struct PositionRow {
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    removed: bool,
}

#[derive(FromRow)]
struct ChunkRow {
    #[sqlx(flatten)]
    position: PositionRow,
    body: Option<Vec<u8>>,
}

impl From<PositionRow> for Position {
    fn from(row: PositionRow) -> Self {
        Self { status: row.status, attempt: row.attempt as u32, archived_to: row.archived_to, removed: row.removed }
    }
}

statements! {
    /// Returns the position of a run, with its next rows of events, if they are not being removed.
    ARCHIVE = "
        select r.status, r.attempt, r.archived_to, r.events_removed_at is not null as removed,
            e.body
        from agent_runs r
        left join run_events e
            on e.run_id = r.id and e.last_id > $2 and r.events_removed_at is null
        where r.id = $1
        order by e.last_id
        limit $3
    ",
    /// Returns the positions of many runs.
    POSITIONS = "
        select id,
            case
                when status = 'waiting' and awaits = 'children' then 'running'
                else status
            end as status,
            attempt, archived_to, events_removed_at is not null as removed
        from agent_runs
        where id {in:$1}
    ",
}

impl Storage {
    /// Returns the run's position and the next archived events after `after`, of one moment. `None` if there is no such
    /// run.
    pub async fn read_archive(&self, run_id: Uuid, after: EventId) -> Result<Option<ArchivePage>, Error> {
        let rows = self.database.fetch_all::<ChunkRow>("read a run's archive", ARCHIVE, args![run_id, after, CHUNKS]);
        let rows = rows.await?;
        let mut position = None;
        let mut events = Vec::new();
        for row in rows {
            position = Some(row.position.into());
            if let Some(body) = row.body {
                events.extend(
                    Event::parse_batch(&Bytes::from(body)).map_err(|source| Error::Damaged { run_id, source })?,
                );
            }
        }
        Ok(position.map(|position| ArchivePage { position, events }))
    }

    /// Returns the positions of many runs, without those that are gone.
    pub async fn positions(&self, run_ids: Vec<Uuid>) -> Result<Vec<(Uuid, Position)>, Error> {
        #[derive(FromRow)]
        struct Row {
            id: Uuid,
            #[sqlx(flatten)]
            position: PositionRow,
        }
        let rows = self.database.fetch_all::<Row>("look up the followed runs", POSITIONS, args![run_ids]).await?;
        Ok(rows.into_iter().map(|row| (row.id, row.position.into())).collect())
    }
}
