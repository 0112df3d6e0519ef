//! A feed: the newest frames of one followed run, encoded once and shared by all who watch it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use holdfast_shared::{
    event::{Event, following},
    event_id::EventId,
};
use tokio::sync::watch;
use uuid::Uuid;

use crate::wire::native;

/// Frames that go to one client's socket at a time, in bytes; a slow client holds on to no more.
const SLICE_BYTES: usize = 64 * 1024;

/// The frames of one run after some cursor, up to its newest event.
pub struct Feed {
    pub run_id: Uuid,
    window: Mutex<Window>,
    /// Counts the changes; whoever waits was told the count before it looked.
    changed: watch::Sender<u64>,
    subscribed: AtomicBool,
    filling: AtomicBool,
    /// Whether a gap was noticed while the feed was being filled.
    missed: AtomicBool,
    max_bytes: usize,
}

#[derive(Default)]
struct Window {
    /// The newest event; unknown until somebody who has caught up says where that is.
    tail: Option<EventId>,
    /// What was just before the oldest frame kept here.
    start: EventId,
    batches: VecDeque<Batch>,
    bytes: usize,
    ended: bool,
}

/// Frames in a row, encoded together.
struct Batch {
    frames: Bytes,
    /// Each event, with the offset of the end of its frame.
    ends: Vec<(EventId, u32)>,
}

/// What a feed has for a cursor.
pub enum Next {
    Frames {
        frames: Bytes,
        last: EventId,
        events: usize,
        ended: bool,
    },
    /// The cursor is the newest event; more will come.
    CaughtUp,
    /// The cursor is the newest event, and the run has ended.
    Ended,
    /// The feed does not know this cursor: read the log.
    Elsewhere,
}

/// What events have done to a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    Continued,
    /// There is something between the feed's newest event and these.
    Gap,
}

impl Extended {
    pub fn has_gap(self) -> bool {
        self == Self::Gap
    }
}

/// The right to fill a feed, until it is dropped.
pub struct Filling(Arc<Feed>);

impl Drop for Filling {
    fn drop(&mut self) {
        self.0.filling.store(false, Ordering::Release);
        self.0.bump();
    }
}

impl Feed {
    pub fn new(run_id: Uuid, max_bytes: usize) -> Self {
        Self {
            run_id,
            window: Mutex::default(),
            changed: watch::Sender::new(0),
            subscribed: AtomicBool::new(false),
            filling: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            max_bytes,
        }
    }

    /// Says where the run's log ends, if nothing has changed since `version`: whatever came meanwhile must be read first.
    pub fn anchor(&self, cursor: EventId, version: u64) {
        let mut window = self.window();
        if window.tail.is_none() && *self.changed.borrow() == version {
            window.tail = Some(cursor);
            window.start = cursor;
        }
    }

    /// Appends the events that follow the newest one; those that are known are dropped.
    pub fn extend(&self, events: Vec<Event>) -> Extended {
        let mut window = self.window();
        let extended = window.extend(self.run_id, events, self.max_bytes);
        // Order matters: under the lock, so that nobody anchors the feed before events that it has not seen.
        self.bump();
        extended
    }

    /// The frames after `cursor`.
    pub fn after(&self, cursor: EventId) -> Next {
        self.window().after(cursor)
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn version(&self) -> u64 {
        *self.changed.borrow()
    }

    pub fn tail(&self) -> Option<EventId> {
        self.window().tail
    }

    /// Whether the run may still have events to come.
    pub fn is_live(&self) -> bool {
        !self.window().ended
    }

    /// Whether the archive has something that this feed has not.
    pub fn lacks(&self, archived_to: EventId) -> bool {
        match self.window().tail {
            Some(tail) => tail < archived_to,
            None => false,
        }
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscribed.load(Ordering::Relaxed)
    }

    pub fn subscribed(&self) {
        self.subscribed.store(true, Ordering::Relaxed);
    }

    pub fn begin_filling(self: &Arc<Self>) -> Option<Filling> {
        let idle = !self.filling.swap(true, Ordering::AcqRel);
        self.missed.fetch_or(!idle, Ordering::AcqRel);
        idle.then(|| Filling(Arc::clone(self)))
    }

    pub fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    fn bump(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn extend(&mut self, run_id: Uuid, events: Vec<Event>, max_bytes: usize) -> Extended {
        // Until the feed is anchored, followers read for themselves; they are woken to do so.
        let Some(tail) = self.tail else { return Extended::Continued };
        let offered = events.last().map(|event| event.id);
        let events = following(events, tail);
        if let Some(last) = events.last() {
            self.ended |= last.is_terminal();
            self.tail = Some(last.id);
            let mut rest = &events[..];
            while !rest.is_empty() {
                let batch = Batch::encode(run_id, rest);
                rest = &rest[batch.ends.len()..];
                self.push(batch, max_bytes);
            }
        }
        if offered > self.tail { Extended::Gap } else { Extended::Continued }
    }

    fn push(&mut self, batch: Batch, max_bytes: usize) {
        self.bytes += batch.frames.len();
        self.batches.push_back(batch);
        while self.bytes > max_bytes && self.batches.len() > 1 {
            let dropped = self.batches.pop_front().expect("there is more than one");
            self.bytes -= dropped.frames.len();
            self.start = dropped.last();
        }
    }

    fn after(&self, cursor: EventId) -> Next {
        match self.tail {
            Some(tail) if tail == cursor => return if self.ended { Next::Ended } else { Next::CaughtUp },
            None => return Next::Elsewhere,
            Some(_) => {}
        }
        let Some((index, offset)) = self.find(cursor) else { return Next::Elsewhere };
        let first = &self.batches[index];
        let (mut frames, mut last, mut events) =
            (first.frames.slice(offset..), first.last(), first.events_after(offset));
        let mut joined = Vec::new();
        for batch in self.batches.iter().skip(index + 1) {
            if frames.len().max(joined.len()) + batch.frames.len() > SLICE_BYTES {
                break;
            }
            if joined.is_empty() {
                joined.extend_from_slice(&frames);
            }
            joined.extend_from_slice(&batch.frames);
            last = batch.last();
            events += batch.ends.len();
        }
        if !joined.is_empty() {
            frames = joined.into();
        }
        Next::Frames { frames, last, events, ended: self.ended && Some(last) == self.tail }
    }

    /// The batch and the offset in it where the frames after `cursor` begin.
    fn find(&self, cursor: EventId) -> Option<(usize, usize)> {
        if cursor == self.start {
            return (!self.batches.is_empty()).then_some((0, 0));
        }
        let index = self.batches.partition_point(|batch| batch.last() < cursor);
        let batch = self.batches.get(index)?;
        if batch.last() == cursor {
            return (index + 1 < self.batches.len()).then_some((index + 1, 0));
        }
        let at = batch.ends.binary_search_by_key(&cursor, |(id, _)| *id).ok()?;
        Some((index, batch.ends[at].1 as usize))
    }
}

impl Batch {
    /// Encodes the first of the events, as many as a slice takes and at least one.
    fn encode(run_id: Uuid, events: &[Event]) -> Self {
        let mut frames = Vec::with_capacity((events.len() * 256).min(SLICE_BYTES));
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            native::frame(&mut frames, run_id, event);
            ends.push((event.id, frames.len() as u32));
            if frames.len() >= SLICE_BYTES {
                break;
            }
        }
        Self { frames: frames.into(), ends }
    }

    fn last(&self) -> EventId {
        self.ends.last().expect("a batch has an event").0
    }

    fn events_after(&self, offset: usize) -> usize {
        self.ends.iter().filter(|(_, end)| *end as usize > offset).count()
    }
}
