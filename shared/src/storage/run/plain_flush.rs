//! FLUSH of events without other rows, which are most flushes of a long answer: one statement for all runs of a group.
//!
//! A worker flushes its runs at shared moments, so that groups have many members. Only PostgreSQL has this statement. A
//! member whose run it does not find is flushed alone, which tells whether the run is still held.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use uuid::Uuid;

use super::{
    ArchiveChunk, Claim,
    attempt::status,
    chunk::insert_chunks,
    group::{Group, MAX_BYTES},
};
use crate::storage::sql::{Database, FencedWrites, Statement, args, statements};

/// Events of a held run before their write.
pub struct PlainFlush {
    run_id: Uuid,
    attempt: u32,
    lease: Duration,
    chunk: ArchiveChunk,
}

impl PlainFlush {
    /// Returns the flush of a chunk; `None` if the statement of a group does not store it.
    pub fn new(claim: &Claim, chunk: &ArchiveChunk, lease: Duration) -> Option<Self> {
        let is_plain = chunk.progress.is_plain() && !chunk.body.is_empty();
        (is_plain && chunk.body.len() <= MAX_BYTES).then(|| Self {
            run_id: claim.run_id,
            attempt: claim.attempt,
            lease,
            chunk: chunk.clone(),
        })
    }
}

statements! {
    /// Returns a row for each member of the group.
    FLUSHED {
        postgres = "
            select *
            from unnest(
                {array uuid:$1}, {array bigint:$2}, {array bigint:$3}, {array text:$4}
            ) as flushed (run_id, attempt, last_id, model)
        ",
    },
    /// Records the archived events of the runs that are held and whose rows are free, and extends their leases.
    EXTEND_ALL {
        postgres = concat!("
            update agent_runs r
            set archived_to = f.last_id,
                lease_until = {after:$1},
                model = coalesce(f.model, r.model)
            from flushed f
            cross join lateral (
                select h.id
                from agent_runs h
                where h.id = f.run_id
                  and h.attempt = f.attempt
                  and ", status!("h."), " = 'running'
                  and h.archived_to < f.last_id
                for no key update skip locked
            ) held
            where r.id {is:held.id}
            returning r.id
        "),
    },
}

/// Starts the group of this process's flushes.
pub fn start(database: Database) -> Group<PlainFlush, ()> {
    Group::start(move |flushes: Vec<PlainFlush>| {
        let database = database.clone();
        async move {
            let newest = newest(&flushes);
            let members: Vec<&PlainFlush> = newest.values().copied().collect();
            let extended: Vec<(Uuid,)> = database.write_fenced("archive events of runs", statement(&members)).await?;
            let extended: HashSet<Uuid> = extended.into_iter().map(|(id,)| id).collect();
            let is_written =
                |flush: &PlainFlush| extended.contains(&flush.run_id) && std::ptr::eq(newest[&flush.run_id], flush);
            Ok(flushes.iter().map(|flush| is_written(flush).then_some(())).collect())
        }
    })
}

/// Returns the newest flush of each run. The fence is of a run, so an earlier attempt of the run would pass with a later one.
fn newest(flushes: &[PlainFlush]) -> HashMap<Uuid, &PlainFlush> {
    let mut newest: HashMap<Uuid, &PlainFlush> = HashMap::with_capacity(flushes.len());
    for flush in flushes {
        let kept = newest.entry(flush.run_id).or_insert(flush);
        if (flush.attempt, flush.chunk.last) > (kept.attempt, kept.chunk.last) {
            *kept = flush;
        }
    }
    newest
}

/// Returns the statement, whose fence returns the ids of the runs that are still held.
fn statement(flushes: &[&PlainFlush]) -> FencedWrites {
    let run_ids: Vec<Uuid> = flushes.iter().map(|flush| flush.run_id).collect();
    let attempts: Vec<i64> = flushes.iter().map(|flush| i64::from(flush.attempt)).collect();
    let last_ids: Vec<i64> = flushes.iter().map(|flush| flush.chunk.last.packed()).collect();
    let models: Vec<Option<String>> = flushes.iter().map(|flush| flush.chunk.progress.model.clone()).collect();
    let lease = flushes.iter().map(|flush| flush.lease).max().unwrap_or_default();
    let chunks: Vec<_> = flushes.iter().map(|flush| (flush.run_id, &flush.chunk)).collect();
    FencedWrites::new(Statement::new(EXTEND_ALL, args![lease]), vec![insert_chunks(&chunks)])
        .after("flushed", Statement::new(FLUSHED, args![run_ids, attempts, last_ids, models]))
}
