//! The archive: a run's durable events in chunks, read together with the run's position.

use bytes::Bytes;
use chrono::Utc;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Answer, Claim, Error, Progress, Storage,
    progress::rows_of,
    sql::Statement,
    sql::{RollBack, Tx, args},
};
use crate::{
    event::Event,
    event_id::EventId,
    parts::{MessageParts, PartsBuilder},
    run::RunStatus,
    transcript::Transcript,
    usage::Usage,
};

/// Consecutive encoded events of one attempt, and the rows that become durable with them.
#[derive(Debug, Clone)]
pub struct ArchiveChunk {
    /// Id of the newest event in `body`.
    pub last: EventId,
    /// The events' lines, each with its newline.
    pub body: Bytes,
    /// The rows that these events report.
    pub progress: Progress,
}

impl ArchiveChunk {
    /// Returns a chunk of one event.
    pub(super) fn of(event: &Event) -> Self {
        let body = [event.line(), &b"\n"[..]].concat().into();
        Self { last: event.id, body, progress: Progress::default() }
    }

    /// Returns the events without their rows, for a database that refuses a row.
    pub fn without_progress(self) -> Self {
        Self { progress: Progress::default(), ..self }
    }
}

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

/// Size of an archive row, give or take an event.
const ROW_BYTES: usize = 64 * 1024;

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

impl Storage {
    /// Returns the run's position and the next archived events after `after`, of one moment. `None` if there is no such
    /// run.
    pub async fn read_archive(&self, run_id: Uuid, after: EventId) -> Result<Option<ArchivePage>, Error> {
        let rows = self.database.fetch_all::<ChunkRow>(
            "read a run's archive", "select r.status, r.attempt, r.archived_to, r.events_removed_at is not null as removed, e.body from agent_runs r \
             left join run_events e on e.run_id = r.id and e.last_id > $2 where r.id = $1 order by e.last_id limit $3",
            args![run_id, after, CHUNKS],
        );
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
        let sql = "select id, status, attempt, archived_to, events_removed_at is not null as removed from agent_runs where id {in:$1}";
        let rows = self.database.fetch_all::<Row>("look up the followed runs", sql, args![run_ids]).await?;
        Ok(rows.into_iter().map(|row| (row.id, row.position.into())).collect())
    }
}

/// Returns the durable text of a run and its parts, for a writer that ends the run without a claim.
pub(super) async fn durable_answer(tx: &mut Tx, run_id: Uuid, streamed: bool) -> Result<(String, MessageParts), Error> {
    let chunks = tx
        .fetch_all::<(Vec<u8>,)>("select body from run_events where run_id = $1 order by last_id", args![run_id])
        .await?;
    let (mut transcript, mut parts) = (Transcript::default(), PartsBuilder::default());
    for (chunk,) in chunks {
        for event in Event::parse_batch(&chunk.into()).map_err(|source| Error::Damaged { run_id, source })? {
            transcript.apply(&event);
            parts.push(&event);
        }
    }
    let text = if streamed { transcript.into_text() } else { text_of_steps(tx, run_id).await? };
    let mut parts = parts.into_parts(Utc::now().timestamp_millis());
    parts.complete_text(&text);
    Ok((text, parts))
}

impl Storage {
    /// Returns the text and the usage of earlier attempts, for a claimed run that ends before it resumes.
    pub async fn earlier_answer(&self, claim: &Claim) -> Result<Answer, Error> {
        let read = async |tx: &mut Tx| {
            let (text, _) = durable_answer(tx, claim.run_id, claim.stream).await?;
            let sql = "select usage from agent_runs where id = $1";
            Ok(RollBack((text, tx.fetch_optional::<(Option<Json<Usage>>,)>(sql, args![claim.run_id]).await?)))
        };
        let (text, row) = self.database.transact("read a run's text", read).await?;
        let usage = row.and_then(|row| row.0).map(|usage| usage.0).unwrap_or_default();
        // Such a run ends without completion, so it has no finish reason.
        Ok(Answer { text, usage, ..Answer::default() })
    }

    /// Returns the parts of earlier attempts, up to the event with which this claim began.
    pub async fn earlier_parts(&self, claim: &Claim) -> Result<PartsBuilder, Error> {
        let (mut parts, mut cursor) = (PartsBuilder::default(), EventId::ORIGIN);
        while let Some(page) = self.read_archive(claim.run_id, cursor).await? {
            let Some(last) = page.events.last().map(|event| event.id).filter(|last| *last > cursor) else { break };
            let earlier = page.events.iter().filter(|event| event.id > cursor && event.id < claim.started.id);
            earlier.for_each(|event| parts.push(event));
            cursor = last;
        }
        Ok(parts)
    }
}

/// Returns the text of a run whose events have no deltas.
async fn text_of_steps(tx: &mut Tx, run_id: Uuid) -> Result<String, Error> {
    let sql = "select content from agent_run_messages where run_id = $1 and role = 'assistant' order by position";
    Ok(tx.fetch_all::<(String,)>(sql, args![run_id]).await?.into_iter().map(|row| row.0).collect())
}

/// Returns the writes for a chunk and its rows. Each row of events has about `ROW_BYTES`, so a reader holds little at a
/// time.
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

/// Returns the id of the last line.
fn last_id(lines: &[u8]) -> Option<EventId> {
    let start = memchr::memrchr(b'\n', &lines[..lines.len() - 1]).map_or(0, |newline| newline + 1);
    let id = lines[start..].split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Returns one chunk of the tail, if there is one, and the events after it. There must be at least one event.
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
