//! A batch: consecutive events, with their frames for each view that a subscriber has asked for. A slice is what one
//! subscriber receives of batches at a time.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use holdfast_shared::{event::Event, event_id::EventId};

use crate::wire::{LogPosition, Projector, View};

/// Bytes of frames that one client's socket receives at a time.
pub const SLICE_BYTES: usize = 32 * 1024;

/// About how many bytes the frame of an event is longer than its line, at most.
const FRAME_OVERHEAD: usize = 160;

/// Consecutive events, at least one.
pub struct Batch {
    /// The position before the first event, where each encoding starts.
    start: LogPosition,
    events: Vec<Event>,
    /// One encoding per view. The first subscriber with a view encodes the batch, and all subscribers with that view
    /// share the frames.
    encodings: Mutex<Vec<(View, Arc<OnceLock<Encoding>>)>>,
    /// About how many bytes the frames of the events take.
    frame_bytes: usize,
    /// Bytes of memory that the batch takes, encodings included.
    bytes: AtomicUsize,
    memory: MemoryUse,
}

/// Counts the memory of all batches that were made with it, until they are dropped.
#[derive(Clone, Default)]
pub struct MemoryUse(Arc<AtomicUsize>);

struct Encoding {
    frames: Bytes,
    /// For each event, the offset at which its frames end.
    ends: Vec<u32>,
}

/// Consecutive events of one or more batches, at least one.
#[derive(Clone)]
pub struct Slice {
    batches: Vec<Arc<Batch>>,
    /// The number of events that the slice leaves out of the first batch.
    skip: usize,
    /// The read that the frames keep alive until they are sent.
    read: Option<Arc<dyn Any + Send + Sync>>,
}

/// Frames that keep the read of their events alive.
struct FramesOfRead {
    frames: Bytes,
    _read: Arc<dyn Any + Send + Sync>,
}

impl AsRef<[u8]> for FramesOfRead {
    fn as_ref(&self) -> &[u8] {
        &self.frames
    }
}

impl MemoryUse {
    /// Returns the bytes of all batches.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Batch {
    /// Splits events into batches, each with about a slice of frames.
    pub fn split(mut start: LogPosition, mut events: Vec<Event>, memory: &MemoryUse) -> Vec<Arc<Self>> {
        let mut batches = Vec::new();
        while !events.is_empty() {
            let mut frame_bytes = 0;
            let fitting = events.iter().take_while(|event| {
                let fits = frame_bytes < SLICE_BYTES;
                frame_bytes += if fits { frame_bytes_of(event) } else { 0 };
                fits
            });
            let rest = events.split_off(fitting.count());
            let batch = Self::new(start, std::mem::replace(&mut events, rest), frame_bytes, memory.clone());
            start = batch.end();
            batches.push(Arc::new(batch));
        }
        batches
    }

    fn new(start: LogPosition, events: Vec<Event>, frame_bytes: usize, memory: MemoryUse) -> Self {
        let batch =
            Self { start, events, encodings: Mutex::default(), frame_bytes, bytes: AtomicUsize::new(0), memory };
        batch.count(batch.events.iter().map(|event| event.line().len() + size_of::<Event>()).sum());
        batch
    }

    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.memory.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the last event.
    pub fn last(&self) -> &Event {
        self.events.last().expect("a batch has an event")
    }

    /// Returns the position after the batch.
    pub fn end(&self) -> LogPosition {
        LogPosition::after(self.last())
    }

    /// Returns the events of the batch, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns how many events of the batch a client with `cursor` has, or `None` if the batch does not have the
    /// cursor.
    pub fn offset_after(&self, cursor: EventId) -> Option<usize> {
        self.events.binary_search_by_key(&cursor, |event| event.id).ok().map(|at| at + 1)
    }

    /// Returns the frames of the events after the first `skip`, and encodes the batch if the view is new.
    fn frames(&self, view: &View, skip: usize) -> Bytes {
        let encoding = {
            let mut encodings = self.encodings.lock().unwrap_or_else(PoisonError::into_inner);
            let known = encodings.iter().find(|(known, _)| known == view).map(|(_, encoding)| Arc::clone(encoding));
            known.unwrap_or_else(|| {
                let encoding = Arc::default();
                encodings.push((view.clone(), Arc::clone(&encoding)));
                encoding
            })
        };
        let Encoding { frames, ends } = encoding.get_or_init(|| {
            let encoding = Encoding::new(view, self.start, &self.events);
            self.count(encoding.frames.len() + size_of_val(&encoding.ends[..]));
            encoding
        });
        let start = skip.checked_sub(1).map_or(0, |last| ends[last] as usize);
        frames.slice(start..)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl Encoding {
    fn new(view: &View, start: LogPosition, events: &[Event]) -> Self {
        let usual = (events.len() * view.typical_event_bytes()).min(SLICE_BYTES);
        // `message.completed` has the whole answer, and may be larger than all other events together, so the buffer is
        // sized for it.
        let large = events.iter().map(frame_bytes_of).filter(|bytes| *bytes > SLICE_BYTES);
        let mut frames = Vec::with_capacity(usual + large.sum::<usize>());
        let mut projector = Projector::after(start, view.clone());
        let ends = events.iter().map(|event| {
            projector.frame(&mut frames, event);
            frames.len() as u32
        });
        let ends = ends.collect();
        // Not every view shows a large event, and an encoding counts by its length.
        if frames.capacity() - frames.len() > SLICE_BYTES {
            frames.shrink_to_fit();
        }
        Self { frames: frames.into(), ends }
    }
}

fn frame_bytes_of(event: &Event) -> usize {
    event.line().len() + FRAME_OVERHEAD
}

impl Slice {
    /// Returns the events of one batch, which belongs to a read.
    pub fn of_read(batch: Arc<Batch>, read: Arc<dyn Any + Send + Sync>) -> Self {
        Self { batches: vec![batch], skip: 0, read: Some(read) }
    }

    /// Takes the leading batches that fill about a slice, at least one, without the first `skip` events.
    pub fn take<'a>(batches: impl Iterator<Item = &'a Arc<Batch>>, skip: usize) -> Self {
        let mut frame_bytes = 0;
        let fitting = batches.take_while(|batch| {
            let is_first = frame_bytes == 0;
            frame_bytes += batch.frame_bytes;
            is_first || frame_bytes <= SLICE_BYTES
        });
        Self { batches: fitting.cloned().collect(), skip, read: None }
    }

    /// Drops the first event. Returns `None` if the slice has no other event.
    pub fn without_first(self) -> Option<Self> {
        (self.events().count() > 1).then(|| Self { skip: self.skip + 1, ..self })
    }

    /// Returns the first event.
    pub fn first(&self) -> &Event {
        self.events().next().expect("a slice has an event")
    }

    /// Returns the events, in order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.batches.iter().flat_map(|batch| batch.events()).skip(self.skip)
    }

    /// Returns the last event.
    pub fn last(&self) -> &Event {
        self.batches.last().expect("a slice has a batch").last()
    }

    /// Returns the frames of the events, which may be empty.
    pub fn frames(&self, view: &View) -> Bytes {
        let (first, more) = self.batches.split_first().expect("a slice has a batch");
        let mut frames = first.frames(view, self.skip);
        if !more.is_empty() {
            let more = more.iter().map(|batch| batch.frames(view, 0));
            frames = std::iter::once(frames).chain(more).collect::<Vec<_>>().concat().into();
        }
        match &self.read {
            Some(read) => Bytes::from_owner(FramesOfRead { frames, _read: Arc::clone(read) }),
            None => frames,
        }
    }
}
