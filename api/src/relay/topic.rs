//! A topic: the newest events of one followed run, shared by all its subscribers in this process. It is a replay buffer
//! with a version that subscribers can wait for.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use holdfast_shared::{event::Event, event_id::EventId, run::Run, storage::StreamDefaults};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    replay_buffer::{BufferRead, ExtendOutcome, ReplayBuffer},
    shared_read::SharedReads,
};
use crate::wire::{LogPosition, View};

/// The events of one run after some cursor, up to its newest, and what the process remembers of the run.
pub struct Topic {
    pub run_id: Uuid,
    /// The reads of subscribers whose cursor the replay buffer does not have.
    pub shared_reads: SharedReads,
    buffer: Mutex<ReplayBuffer>,
    /// The default mode of the run's streams, once a request has read it.
    pub stream_defaults: OnceLock<StreamDefaults>,
    memory: Mutex<RunMemory>,
    /// Counts the changes. A subscriber notes the version before it reads, and then waits for another version.
    versions: watch::Sender<u64>,
    is_subscribed: AtomicBool,
    is_filling: AtomicBool,
    /// Whether a push left a gap while a task was filling the topic.
    missed_gap: AtomicBool,
}

/// The memory of a topic about its run.
#[derive(Default)]
enum RunMemory {
    #[default]
    Empty,
    /// The owner, and the run as the first request read it.
    Run { owner: String, run: Arc<Run> },
    /// The run's conversation was deleted.
    Deleted,
}

/// The permit to fill a topic, until it is dropped.
pub struct FillGuard(Arc<Topic>);

impl Drop for FillGuard {
    fn drop(&mut self) {
        self.0.is_filling.store(false, Ordering::Release);
        self.0.bump();
    }
}

impl Topic {
    pub fn new(run_id: Uuid, max_bytes: usize) -> Self {
        Self {
            run_id,
            shared_reads: SharedReads::default(),
            buffer: Mutex::new(ReplayBuffer::new(max_bytes)),
            stream_defaults: OnceLock::new(),
            memory: Mutex::default(),
            versions: watch::Sender::new(0),
            is_subscribed: AtomicBool::new(false),
            is_filling: AtomicBool::new(false),
            missed_gap: AtomicBool::new(false),
        }
    }

    /// Sets the position at which the run's log ends, unless the topic has changed since `version`. After a change the
    /// subscriber must read again.
    pub fn anchor(&self, position: LogPosition, version: u64) {
        let mut buffer = self.buffer();
        if *self.versions.borrow() == version {
            buffer.anchor(position);
        }
    }

    /// Appends the events that follow the newest one, and drops those that the topic has already.
    pub fn extend(&self, events: Vec<Event>) -> ExtendOutcome {
        let mut buffer = self.buffer();
        let outcome = buffer.extend(events);
        // Order matters: under the lock, so that no subscriber anchors the topic before events that it has not read.
        self.bump();
        outcome
    }

    /// Returns the frames after `cursor` for a view.
    pub fn after(&self, cursor: EventId, view: &View) -> BufferRead {
        self.buffer().after(cursor, view)
    }

    /// Returns the events after `cursor`, and whether the run has ended with them; `None` if the topic does not have
    /// the cursor.
    pub fn events_after(&self, cursor: EventId) -> Option<(Vec<Event>, bool)> {
        let buffer = self.buffer();
        let events = buffer.events_after(cursor)?;
        Some((events, buffer.has_ended()))
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    pub fn version(&self) -> u64 {
        *self.versions.borrow()
    }

    pub fn tail(&self) -> Option<EventId> {
        self.buffer().tail()
    }

    /// Returns whether the run may write further events.
    pub fn is_live(&self) -> bool {
        !self.buffer().has_ended()
    }

    /// Returns whether a client at `cursor` can continue from this topic, without a read of the log.
    pub fn serves(&self, cursor: EventId) -> bool {
        let buffer = self.buffer();
        self.is_receiving(&buffer) && buffer.covers(cursor)
    }

    /// Remembers the owner's run, unless the topic remembers it already.
    pub fn remember(&self, owner: &str, run: &Arc<Run>) {
        let mut memory = self.memory();
        if let RunMemory::Empty = *memory {
            *memory = RunMemory::Run { owner: owner.to_owned(), run: Arc::clone(run) };
        }
    }

    /// Forgets the run if it belongs to the deleted conversation.
    pub fn forget(&self, conversation_id: Uuid) {
        let mut memory = self.memory();
        if let RunMemory::Run { run, .. } = &*memory
            && run.conversation_id == conversation_id
        {
            *memory = RunMemory::Deleted;
        }
    }

    /// Moves the run to another owner if it belongs to `from`.
    pub fn move_owner(&self, from: &str, to: &str) {
        if let RunMemory::Run { owner, .. } = &mut *self.memory()
            && owner == from
        {
            to.clone_into(owner);
        }
    }

    /// Returns the run if the topic remembers it for this owner. After the run's end it returns `None`, because the
    /// database has the result.
    pub fn remembered(&self, owner: &str) -> Option<Arc<Run>> {
        let run = match &*self.memory() {
            RunMemory::Run { owner: remembered_owner, run } if remembered_owner == owner => Arc::clone(run),
            _ => return None,
        };
        self.is_receiving(&self.buffer()).then_some(run)
    }

    /// Returns whether a request has read the run from the database.
    pub fn was_committed(&self) -> bool {
        !matches!(*self.memory(), RunMemory::Empty)
    }

    /// Returns whether this topic receives pushes of a run that has not ended.
    fn is_receiving(&self, buffer: &ReplayBuffer) -> bool {
        self.is_subscribed() && buffer.tail().is_some() && !buffer.has_ended()
    }

    /// Drops all events, unless the topic has the run's end. Its subscribers then read the log and find the end
    /// themselves.
    pub fn restart(&self) {
        let mut buffer = self.buffer();
        if buffer.tail().is_some() && !buffer.has_ended() {
            buffer.restart();
            self.bump();
        }
    }

    /// Returns whether the archive has an event that this topic lacks.
    pub fn lacks(&self, archived_to: EventId) -> bool {
        match self.buffer().tail() {
            Some(tail) => tail < archived_to,
            None => false,
        }
    }

    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed.load(Ordering::Relaxed)
    }

    pub fn set_subscribed(&self, is_subscribed: bool) {
        self.is_subscribed.store(is_subscribed, Ordering::Relaxed);
    }

    pub fn start_fill(self: &Arc<Self>) -> Option<FillGuard> {
        let idle = !self.is_filling.swap(true, Ordering::AcqRel);
        self.missed_gap.fetch_or(!idle, Ordering::AcqRel);
        idle.then(|| FillGuard(Arc::clone(self)))
    }

    pub fn take_missed_gap(&self) -> bool {
        self.missed_gap.swap(false, Ordering::AcqRel)
    }

    /// Wakes all subscribers.
    pub fn bump(&self) {
        self.versions.send_modify(|version| *version += 1);
    }

    fn memory(&self) -> MutexGuard<'_, RunMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer(&self) -> MutexGuard<'_, ReplayBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chrono::DateTime;
    use holdfast_shared::{
        event::{EventBody, RunCompleted},
        usage::Usage,
    };

    use super::*;

    #[test]
    fn the_end_is_never_read_without_the_events_before_it() {
        let end = EventBody::RunCompleted(RunCompleted {
            message_id: Uuid::nil(),
            usage: Usage::default(),
            finish_reason: None,
        });
        let end = Event::new(EventId::new(1, 2), DateTime::UNIX_EPOCH, &end);
        for _ in 0..2000 {
            let topic = Topic::new(Uuid::nil(), usize::MAX);
            let begin = EventId::new(1, 1);
            topic.anchor(LogPosition::of_cursor(begin), topic.version());
            thread::scope(|scope| {
                scope.spawn(|| topic.extend(vec![end.clone()]));
                let (events, has_ended) = loop {
                    match topic.events_after(begin).unwrap() {
                        (events, false) if events.is_empty() => {}
                        result => break result,
                    }
                };
                assert_eq!((events.len(), has_ended), (1, true));
            });
        }
    }
}
