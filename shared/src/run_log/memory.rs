//! The run log of the embedded mode: in this process, with the rules of the Redis scripts.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{AppendOutcome, EventBatch, Gap, Push};
use crate::{event::Event, event_id::EventId};

/// Bytes of events for all runs together. Above it, the log drops the run with the oldest append, because the archive
/// has those events.
const BYTES: usize = 128 << 20;

pub struct MemoryLog {
    runs: Mutex<Runs>,
    pushes: mpsc::UnboundedSender<Push>,
}

#[derive(Default)]
struct Runs {
    logs: HashMap<Uuid, RunEntries>,
    subscribed: HashSet<Uuid>,
    bytes: usize,
    appends: u64,
}

#[derive(Default)]
struct RunEntries {
    entries: VecDeque<(EventId, Bytes)>,
    bytes: usize,
    /// Count of all appends at the last write to this run.
    written: u64,
}

impl MemoryLog {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Push>) {
        let (pushes, receiver) = mpsc::unbounded_channel();
        (Self { runs: Mutex::default(), pushes }, receiver)
    }

    pub fn append(&self, run_id: Uuid, batch: &EventBatch, gap: Gap) -> AppendOutcome {
        let mut runs = self.lock();
        let newest = runs.logs.get(&run_id).and_then(|log| log.entries.back()).map_or(EventId::ORIGIN, |entry| entry.0);
        if newest.attempt > batch.attempt {
            return AppendOutcome::Fenced;
        }
        let next = if newest.attempt == batch.attempt { newest.n + 1 } else { 1 };
        if batch.last < next {
            return AppendOutcome::Stored;
        }
        if batch.first > next && gap == Gap::Refuse {
            return AppendOutcome::Behind;
        }
        let known = next.saturating_sub(batch.first) as usize;
        let lines = match known {
            0 => batch.lines.clone(),
            known => {
                batch.lines.slice(memchr::memchr_iter(b'\n', &batch.lines).nth(known - 1).map_or(0, |end| end + 1)..)
            }
        };
        runs.store(run_id, EventId::new(batch.attempt, batch.last), lines.clone());
        if runs.subscribed.contains(&run_id) {
            // The receiver is dropped only at the end of the process.
            let _ = self.pushes.send(Push { run_id, lines });
        }
        AppendOutcome::Stored
    }

    pub fn read(&self, run_id: Uuid, after: EventId, bytes: usize) -> Vec<Bytes> {
        let runs = self.lock();
        let Some(log) = runs.logs.get(&run_id) else { return Vec::new() };
        let known = log.entries.partition_point(|(last, _)| *last <= after);
        let mut read = 0;
        let within = |lines: &&Bytes| {
            let fits = read < bytes;
            read += lines.len();
            fits
        };
        log.entries.iter().skip(known).map(|(_, lines)| lines).take_while(within).cloned().collect()
    }

    pub fn remove(&self, run_ids: &[Uuid]) {
        let mut runs = self.lock();
        run_ids.iter().for_each(|run_id| runs.forget(*run_id));
    }

    pub fn subscribe(&self, run_id: Uuid) {
        self.lock().subscribed.insert(run_id);
    }

    pub fn unsubscribe(&self, run_id: Uuid) {
        self.lock().subscribed.remove(&run_id);
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    fn store(&mut self, run_id: Uuid, last: EventId, lines: Bytes) {
        if ends_the_run(&lines) {
            // The archive has each event, and serves later readers.
            self.forget(run_id);
            return;
        }
        self.appends += 1;
        self.bytes += lines.len();
        let log = self.logs.entry(run_id).or_default();
        log.written = self.appends;
        log.bytes += lines.len();
        log.entries.push_back((last, lines));
        while self.bytes > BYTES && self.logs.len() > 1 {
            let oldest = self.logs.iter().min_by_key(|(_, log)| log.written).map(|(id, _)| *id);
            self.forget(oldest.expect("there is more than one"));
        }
    }

    fn forget(&mut self, run_id: Uuid) {
        if let Some(log) = self.logs.remove(&run_id) {
            self.bytes -= log.bytes;
        }
    }
}

fn ends_the_run(lines: &Bytes) -> bool {
    let body = lines.strip_suffix(b"\n").unwrap_or(lines);
    let last = memchr::memrchr(b'\n', body).map_or(0, |newline| newline + 1);
    Event::parse(lines.slice(last..body.len())).is_ok_and(|event| event.is_terminal())
}
