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

use crate::wire::{LogPosition, Projector, View, WireFold};

/// Bytes of frames that one client's socket receives at a time.
pub const SLICE_BYTES: usize = 32 * 1024;

/// About how many bytes the frame of an event is longer than its line, at most.
const FRAME_OVERHEAD: usize = 160;

/// Consecutive events, at least one.
pub struct Batch {
    /// The position before the first event, where each encoding starts.
    start: LogPosition,
    events: Vec<Event>,
    projections: Mutex<Vec<(View, Projection)>>,
    folds: Folds,
    /// About how many bytes the frames of the events take.
    frame_bytes: usize,
    /// Bytes of memory that the batch takes, encodings included.
    bytes: AtomicUsize,
    memory: MemoryUse,
}

/// Counts the memory of all batches that were made with it, until they are dropped.
#[derive(Clone, Default)]
pub struct MemoryUse(Arc<AtomicUsize>);

/// The encoding of a batch by a projector, which its first reader makes.
type Projection = Arc<OnceLock<Encoding<()>>>;

/// One encoding per view of each wire with a state. The first subscriber with a view encodes the batch, and all subscribers with
/// that view share the frames.
#[derive(Default)]
struct Folds(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

/// The encoding of a batch by a fold, which its first reader makes.
struct Folded<F: WireFold> {
    view: Arc<F::View>,
    encoding: OnceLock<Encoding<F>>,
}

/// The frames of a batch. `S` is the state of a fold.
struct Encoding<S> {
    frames: Bytes,
    /// For each event, the offset at which its frames end.
    ends: Vec<u32>,
    /// The state after the batch.
    end: S,
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
        let batch = Self {
            start,
            events,
            projections: Mutex::default(),
            folds: Folds::default(),
            frame_bytes,
            bytes: AtomicUsize::new(0),
            memory,
        };
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
        let encoding = self.projection(view);
        let encoding = encoding.get_or_init(|| {
            let mut projector = Projector::after(self.start, view.clone());
            let usual = self.events.len() * view.typical_event_bytes();
            self.counted(Encoding::new(usual, &self.events, |frames, event| projector.frame(frames, event)))
        });
        encoding.frames_after(skip)
    }

    fn projection(&self, view: &View) -> Projection {
        let mut projections = self.projections.lock().unwrap_or_else(PoisonError::into_inner);
        let known = projections.iter().find(|(known, _)| known == view).map(|(_, encoding)| Arc::clone(encoding));
        known.unwrap_or_else(|| {
            let encoding = Arc::default();
            // Nearly all batches have one view.
            projections.reserve_exact(1);
            projections.push((view.clone(), Arc::clone(&encoding)));
            encoding
        })
    }

    /// Returns the frames of the events after the first `skip`. The fold has all events before these, and moves past them.
    fn folded<F: WireFold>(&self, view: &mut Arc<F::View>, fold: &mut F, skip: usize) -> Bytes {
        let folded = self.folds.of::<F>(view);
        // Subscribers with equal views share one from here on, so the next comparison is one of pointers.
        if !Arc::ptr_eq(view, &folded.view) {
            *view = Arc::clone(&folded.view);
        }
        if skip > 0 && folded.encoding.get().is_none() {
            // The state before the batch is gone, so no other subscriber can use these frames.
            let mut frames = Vec::new();
            self.events[skip..].iter().for_each(|event| fold.frame(view, &mut frames, event));
            return frames.into();
        }
        let encoding = folded.encoding.get_or_init(|| {
            let mut end = fold.clone();
            let frames = Encoding::new(self.frame_bytes, &self.events, |frames, event| end.frame(view, frames, event));
            self.counted(frames.with_end(end))
        });
        fold.clone_from(&encoding.end);
        encoding.frames_after(skip)
    }

    fn counted<S>(&self, encoding: Encoding<S>) -> Encoding<S> {
        self.count(encoding.frames.len() + size_of_val(&encoding.ends[..]) + size_of::<Encoding<S>>());
        encoding
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl Folds {
    fn of<F: WireFold>(&self, view: &Arc<F::View>) -> Arc<Folded<F>> {
        let mut folds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = folds.iter().find_map(|known| {
            let known = Arc::clone(known).downcast::<Folded<F>>().ok()?;
            (Arc::ptr_eq(&known.view, view) || known.view == *view).then_some(known)
        });
        known.unwrap_or_else(|| {
            let folded = Arc::new(Folded { view: Arc::clone(view), encoding: OnceLock::new() });
            folds.push(Arc::clone(&folded) as Arc<dyn Any + Send + Sync>);
            folded
        })
    }
}

impl Encoding<()> {
    /// Encodes events, whose frames usually take so many bytes.
    fn new(usual: usize, events: &[Event], mut frame: impl FnMut(&mut Vec<u8>, &Event)) -> Self {
        // `message.completed` has the whole answer, and may be larger than all other events together, so the buffer is
        // sized for it.
        let large = events.iter().map(frame_bytes_of).filter(|bytes| *bytes > SLICE_BYTES);
        let mut frames = Vec::with_capacity(usual.min(SLICE_BYTES) + large.sum::<usize>());
        let ends = events.iter().map(|event| {
            frame(&mut frames, event);
            frames.len() as u32
        });
        let ends = ends.collect();
        // Not every view shows a large event, and an encoding counts by its length.
        if frames.capacity() - frames.len() > SLICE_BYTES {
            frames.shrink_to_fit();
        }
        Self { frames: frames.into(), ends, end: () }
    }

    fn with_end<S>(self, end: S) -> Encoding<S> {
        Encoding { frames: self.frames, ends: self.ends, end }
    }
}

impl<S> Encoding<S> {
    /// Returns the frames of the events after the first `skip`.
    fn frames_after(&self, skip: usize) -> Bytes {
        let start = skip.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        self.frames.slice(start..)
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
        self.joined(|batch, skip| batch.frames(view, skip))
    }

    /// Returns the frames of the events, which may be empty. The fold has all events before these, and moves past them.
    pub fn folded<F: WireFold>(&self, view: &mut Arc<F::View>, fold: &mut F) -> Bytes {
        self.joined(|batch, skip| batch.folded(view, fold, skip))
    }

    fn joined(&self, mut frames_of: impl FnMut(&Batch, usize) -> Bytes) -> Bytes {
        let (first, more) = self.batches.split_first().expect("a slice has a batch");
        let mut frames = frames_of(first, self.skip);
        if !more.is_empty() {
            let more = more.iter().map(|batch| frames_of(batch, 0));
            frames = std::iter::once(frames).chain(more).collect::<Vec<_>>().concat().into();
        }
        match &self.read {
            Some(read) => Bytes::from_owner(FramesOfRead { frames, _read: Arc::clone(read) }),
            None => frames,
        }
    }
}
