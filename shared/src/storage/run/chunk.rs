//! The events that a write archives, with the rows that they report.

use bytes::Bytes;
use uuid::Uuid;

use super::{Progress, progress::rows_of};
use crate::{
    event::Event,
    event_id::EventId,
    storage::sql::{Statement, args, statements},
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
    pub fn of(event: &Event) -> Self {
        let body = [event.line(), &b"\n"[..]].concat().into();
        Self { last: event.id, body, progress: Progress::default() }
    }

    /// Returns the events without their rows, for a database that refuses a row.
    pub fn without_progress(self) -> Self {
        Self { progress: Progress::default(), ..self }
    }
}

/// Size of an archive row, give or take an event.
const ROW_BYTES: usize = 64 * 1024;

statements! {
    /// Archives events of a run.
    INSERT_EVENTS = "
        insert into run_events (run_id, last_id, body)
        select $1, $2, $3
        where {fenced}
    ",
    /// Archives events of all runs of a group.
    INSERT_CHUNKS {
        postgres = "
            insert into run_events (run_id, last_id, body)
            select e.run_id, e.last_id, e.body
            from unnest({array uuid:$1}, {array bigint:$2}, {array bytea:$3}) as e (
                run_id, last_id, body
            )
            where {fenced:e.run_id}
        ",
    },
}

/// Returns the writes for a chunk and its rows.
pub fn writes_of(run_id: Uuid, chunk: &ArchiveChunk) -> Vec<Statement> {
    let events =
        event_rows(chunk).map(|(last, body)| Statement::new(INSERT_EVENTS, args![run_id, last, body.to_vec()]));
    events.chain(rows_of(&[(run_id, &chunk.progress)])).collect()
}

/// Returns the insert of all chunks, in rows of the usual size.
pub fn insert_chunks(chunks: &[(Uuid, &ArchiveChunk)]) -> Statement {
    let (mut run_ids, mut last_ids, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for (run_id, chunk) in chunks {
        for (last, body) in event_rows(chunk) {
            run_ids.push(*run_id);
            last_ids.push(last.packed());
            bodies.push(body.to_vec());
        }
    }
    Statement::new(INSERT_CHUNKS, args![run_ids, last_ids, bodies])
}

/// Returns a chunk's events in rows of about `ROW_BYTES`, each with its last id, so a reader holds little at a time.
fn event_rows(chunk: &ArchiveChunk) -> impl Iterator<Item = (EventId, Bytes)> {
    let (mut rest, newest) = (chunk.body.clone(), chunk.last);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', &rest[rest.len().min(ROW_BYTES) - 1..])
            .map_or(rest.len(), |newline| rest.len().min(ROW_BYTES) + newline);
        let row = rest.split_to(end);
        let last = if rest.is_empty() { newest } else { last_id(&row).unwrap_or(newest) };
        Some((last, row))
    })
}

/// Returns the id of the last line.
fn last_id(lines: &[u8]) -> Option<EventId> {
    let start = memchr::memrchr(b'\n', &lines[..lines.len() - 1]).map_or(0, |newline| newline + 1);
    let id = lines[start..].split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Returns one chunk of the tail, if there is one, and the events after it. There must be at least one event.
pub fn chunk_of(tail: Option<&ArchiveChunk>, events: &[Event]) -> ArchiveChunk {
    let last = events.last().expect("a run ends with an event").id;
    let mut body = tail.map_or_else(Vec::new, |tail| tail.body.to_vec());
    for event in events {
        body.extend_from_slice(event.line());
        body.push(b'\n');
    }
    let progress = tail.map(|tail| tail.progress.clone()).unwrap_or_default();
    ArchiveChunk { last, body: body.into(), progress }
}
