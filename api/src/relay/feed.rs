//! A feed: the newest events of one followed run, shared by all who watch it; a `window` that can be waited for.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use holdfast_shared::{event::Event, event_id::EventId, run::Run, storage::StreamDefaults};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    reading::Readings,
    window::{Extended, Next, ReplayBuffer},
};
use crate::wire::{Before, View};

/// The events of one run after some cursor, up to its newest.
pub struct Feed {
    pub run_id: Uuid,
    /// What is read of the log by those whom the window does not serve.
    pub readings: Readings,
    window: Mutex<ReplayBuffer>,
    /// What its run's streams carry, once one of them had to ask.
    pub stream_defaults: OnceLock<StreamDefaults>,
    known: Mutex<Known>,
    /// Counts the changes; whoever waits was told the count before it looked.
    changed: watch::Sender<u64>,
    subscribed: AtomicBool,
    filling: AtomicBool,
    /// Whether a gap was noticed while the feed was being filled.
    missed: AtomicBool,
}

/// What a feed knows of its run.
#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// Whose it is, and the run as it was when that was found out.
    Run { owner: String, run: Arc<Run> },
    /// Its conversation was deleted.
    Deleted,
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
            readings: Readings::default(),
            window: Mutex::new(ReplayBuffer::new(max_bytes)),
            stream_defaults: OnceLock::new(),
            known: Mutex::default(),
            changed: watch::Sender::new(0),
            subscribed: AtomicBool::new(false),
            filling: AtomicBool::new(false),
            missed: AtomicBool::new(false),
        }
    }

    /// Says where the run's log ends, if nothing has changed since `version`: whatever came meanwhile must be read first.
    pub fn anchor(&self, place: Before, version: u64) {
        let mut window = self.window();
        if *self.changed.borrow() == version {
            window.anchor(place);
        }
    }

    /// Appends the events that follow the newest one; those that are known are dropped.
    pub fn extend(&self, events: Vec<Event>) -> Extended {
        let mut window = self.window();
        let extended = window.extend(events);
        // Order matters: under the lock, so that nobody anchors the feed before events that it has not seen.
        self.bump();
        extended
    }

    /// The frames after `cursor`, as a client with this view is sent them.
    pub fn after(&self, cursor: EventId, view: &View) -> Next {
        self.window().after(cursor, view)
    }

    /// The events after `cursor`, and whether the run has ended with them; `None` if the feed does not know it.
    pub fn events_after(&self, cursor: EventId) -> Option<(Vec<Event>, bool)> {
        let window = self.window();
        let events = window.events_after(cursor)?;
        Some((events, window.has_ended()))
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn version(&self) -> u64 {
        *self.changed.borrow()
    }

    pub fn tail(&self) -> Option<EventId> {
        self.window().tail()
    }

    /// Whether the run may still have events to come.
    pub fn is_live(&self) -> bool {
        !self.window().has_ended()
    }

    /// Whether a client at `cursor` can go on from here, without a first look at the log.
    pub fn serves(&self, cursor: EventId) -> bool {
        let window = self.window();
        self.is_current(&window) && window.knows(cursor)
    }

    /// Remembers what the database has said of the run, unless it is known already.
    pub fn remember(&self, owner: &str, run: &Arc<Run>) {
        let mut known = self.known();
        if let Known::Nothing = *known {
            *known = Known::Run { owner: owner.to_owned(), run: Arc::clone(run) };
        }
    }

    /// Somebody has deleted a conversation, perhaps this run's.
    pub fn forget(&self, conversation_id: Uuid) {
        let mut known = self.known();
        if let Known::Run { run, .. } = &*known
            && run.conversation_id == conversation_id
        {
            *known = Known::Deleted;
        }
    }

    /// One owner has all that another had, perhaps this run.
    pub fn move_owner(&self, from: &str, to: &str) {
        if let Known::Run { owner, .. } = &mut *self.known()
            && owner == from
        {
            to.clone_into(owner);
        }
    }

    /// The owner's run, if it is remembered; once it has ended, the database knows more of it.
    pub fn remembered(&self, owner: &str) -> Option<Arc<Run>> {
        let run = match &*self.known() {
            Known::Run { owner: known, run } if known == owner => Arc::clone(run),
            _ => return None,
        };
        self.is_current(&self.window()).then_some(run)
    }

    /// Whether the run was in the database once.
    pub fn was_committed(&self) -> bool {
        !matches!(*self.known(), Known::Nothing)
    }

    /// Whether this feed receives a run that has not ended.
    fn is_current(&self, window: &ReplayBuffer) -> bool {
        self.is_subscribed() && window.tail().is_some() && !window.has_ended()
    }

    /// Begins anew, unless the run's end is here: all who watch look for themselves where it is.
    pub fn restart(&self) {
        let mut window = self.window();
        if window.tail().is_some() && !window.has_ended() {
            window.restart();
            self.bump();
        }
    }

    /// Whether the archive has something that this feed has not.
    pub fn lacks(&self, archived_to: EventId) -> bool {
        match self.window().tail() {
            Some(tail) => tail < archived_to,
            None => false,
        }
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscribed.load(Ordering::Relaxed)
    }

    pub fn set_subscribed(&self, is_subscribed: bool) {
        self.subscribed.store(is_subscribed, Ordering::Relaxed);
    }

    pub fn begin_filling(self: &Arc<Self>) -> Option<Filling> {
        let idle = !self.filling.swap(true, Ordering::AcqRel);
        self.missed.fetch_or(!idle, Ordering::AcqRel);
        idle.then(|| Filling(Arc::clone(self)))
    }

    pub fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    /// Wakes all who wait for a change.
    pub fn bump(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn window(&self) -> MutexGuard<'_, ReplayBuffer> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_end_is_never_seen_without_the_events_before_it() {
        let end = EventBody::RunCompleted(RunCompleted {
            message_id: Uuid::nil(),
            usage: Usage::default(),
            finish_reason: None,
        });
        let end = Event::new(EventId::new(1, 2), DateTime::UNIX_EPOCH, &end);
        for _ in 0..2000 {
            let feed = Feed::new(Uuid::nil(), usize::MAX);
            let begin = EventId::new(1, 1);
            feed.anchor(Before::cursor(begin), feed.version());
            thread::scope(|scope| {
                scope.spawn(|| feed.extend(vec![end.clone()]));
                let (events, has_ended) = loop {
                    match feed.events_after(begin).unwrap() {
                        (events, false) if events.is_empty() => {}
                        seen => break seen,
                    }
                };
                assert_eq!((events.len(), has_ended), (1, true));
            });
        }
    }
}
