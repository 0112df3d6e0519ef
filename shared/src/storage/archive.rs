//! The archive: a run's durable events, written in chunks, and read together with where the run stands.

use bytes::Bytes;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Answer, Claim, Error, Progress, Storage,
    database::{Tx, args},
    fenced::Statement,
    progress::rows_of,
};
use crate::{event::Event, event_id::EventId, run::RunStatus, transcript::Transcript, usage::Usage};

/// Encoded events in a row, all of one attempt, and what becomes durable with them.
#[derive(Debug, Clone)]
pub struct ArchiveChunk {
    pub last: EventId,
    pub body: Bytes,
    pub progress: Progress,
}

impl ArchiveChunk {
    /// One event alone.
    pub(super) fn of(event: &Event) -> Self {
        let body = [event.line(), &b"\n"[..]].concat().into();
        Self { last: event.id, body, progress: Progress::default() }
    }

    /// The events alone, for a database that refuses the rest.
    pub fn without_progress(self) -> Self {
        Self { progress: Progress::default(), ..self }
    }
}

/// Where a run stands, as of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub status: RunStatus,
    pub attempt: u32,
    /// The newest durable event.
    pub archived_to: EventId,
    /// Whether the events have been removed because their time was over.
    pub removed: bool,
}

/// Part of a run's archive.
#[derive(Debug)]
pub struct ArchivePage {
    pub position: Position,
    /// Events of the chunks that end after the asked-for cursor; the first of them may lie before it.
    pub events: Vec<Event>,
}

/// Size of an archive row, give or take an event.
const ROW_BYTES: usize = 64 * 1024;

/// Rows that one look reads.
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

impl Storage {
    /// The run's position and the next of its archived events after `after`, as of one moment; `None` if there is no run.
    pub async fn read_archive(&self, run_id: Uuid, after: EventId) -> Result<Option<ArchivePage>, Error> {
        let rows = self.database.fetch_all::<ChunkRow>(
            "select r.status, r.attempt, r.archived_to, r.events_removed_at is not null as removed, e.body from agent_runs r \
             left join run_events e on e.run_id = r.id and e.last_id > $2 where r.id = $1 order by e.last_id limit $3",
            args![run_id, after, CHUNKS],
        );
        let rows = rows.await.map_err(Error::doing("read a run's archive"))?;
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

    /// The positions of many runs at once; runs that are gone are left out.
    pub async fn positions(&self, run_ids: Vec<Uuid>) -> Result<Vec<(Uuid, Position)>, Error> {
        #[derive(FromRow)]
        struct Row {
            id: Uuid,
            #[sqlx(flatten)]
            position: PositionRow,
        }
        let sql = "select id, status, attempt, archived_to, events_removed_at is not null as removed from agent_runs where id {in:$1}";
        let rows = self
            .database
            .fetch_all::<Row>(sql, args![run_ids])
            .await
            .map_err(Error::doing("look up the followed runs"))?;
        Ok(rows.into_iter().map(|row| (row.id, row.position.into())).collect())
    }
}

/// The run's text as far as it is durable, for whoever ends a run without holding it.
pub(super) async fn durable_text(tx: &mut Tx, run_id: Uuid, streamed: bool) -> Result<String, Error> {
    if !streamed {
        return text_of_steps(tx, run_id).await.map_err(Error::doing("read what a run has said"));
    }
    let chunks = tx
        .fetch_all::<(Vec<u8>,)>("select body from run_events where run_id = $1 order by last_id", args![run_id])
        .await;
    let mut transcript = Transcript::default();
    for (chunk,) in chunks.map_err(Error::doing("read a run's archived text"))? {
        for event in Event::parse_batch(&chunk.into()).map_err(|source| Error::Damaged { run_id, source })? {
            transcript.push(&event);
        }
    }
    Ok(transcript.text().to_owned())
}

impl Storage {
    /// What the run of a claim has said and used in earlier attempts, for one that ends before it has gone on.
    pub async fn earlier_answer(&self, claim: &Claim) -> Result<Answer, Error> {
        let doing = || Error::doing("read what a run has said");
        let mut tx = self.database.begin().await.map_err(doing())?;
        let text = durable_text(&mut tx, claim.run_id, claim.stream).await?;
        let sql = "select usage from agent_runs where id = $1";
        let row = tx.fetch_optional::<(Option<Json<Usage>>,)>(sql, args![claim.run_id]).await.map_err(doing())?;
        tx.rollback().await.map_err(doing())?;
        let usage = row.and_then(|row| row.0).map(|usage| usage.0).unwrap_or_default();
        // A run that ends so has not completed.
        Ok(Answer { text, usage, finish_reason: None })
    }
}

/// The text of a run whose events have no pieces of it.
async fn text_of_steps(tx: &mut Tx, run_id: Uuid) -> Result<String, sqlx::Error> {
    let sql = "select content from agent_run_messages where run_id = $1 and role = 'assistant' order by position";
    Ok(tx.fetch_all::<(String,)>(sql, args![run_id]).await?.into_iter().map(|row| row.0).collect())
}

/// What archives a chunk, with the rows that belong to it; its events in rows of about `ROW_BYTES`, so that a reader never has to hold much at a time.
pub(super) fn writes_of(run_id: Uuid, chunk: &ArchiveChunk) -> Vec<Statement> {
    let mut writes = Vec::new();
    let mut rest = chunk.body.clone();
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', &rest[rest.len().min(ROW_BYTES) - 1..])
            .map_or(rest.len(), |newline| rest.len().min(ROW_BYTES) + newline);
        let row = rest.split_to(end);
        let last = if rest.is_empty() { chunk.last } else { last_id(&row).unwrap_or(chunk.last) };
        let sql = "insert into run_events (run_id, last_id, body) select $1, $2, $3 where {fenced}";
        writes.push(Statement::new(sql, args![run_id, last, row.to_vec()]));
    }
    writes.extend(rows_of(run_id, &chunk.progress));
    writes
}

/// The id of the last line.
fn last_id(lines: &[u8]) -> Option<EventId> {
    let start = memchr::memrchr(b'\n', &lines[..lines.len() - 1]).map_or(0, |newline| newline + 1);
    let id = lines[start..].split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// One chunk of a tail, if there is one, and the events after it, of which there is at least one.
pub(super) fn chunk_of(tail: Option<&ArchiveChunk>, events: &[Event]) -> ArchiveChunk {
    let last = events.last().expect("a run ends with an event").id;
    let mut body = tail.map_or_else(Vec::new, |tail| tail.body.to_vec());
    for event in events {
        body.extend_from_slice(event.line());
        body.push(b'\n');
    }
    let progress = tail.map(|tail| tail.progress.clone()).unwrap_or_default();
    ArchiveChunk { last, body: body.into(), progress }
}
