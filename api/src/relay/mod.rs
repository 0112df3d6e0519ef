//! The relay: replay, then tail, of a run's log, for any number of clients.
//!
//! A client is a cursor (`follower`). While it is behind, it reads the log and then the archive, and shares that `reading`
//! with those who are at the same place; once it has caught up, it reads from the run's `feed`, which all who watch the run
//! in this process share. Either is a `window` of `batch`es, each encoded once per view. `follows` proves at every step that
//! nothing is missing, so a push that was lost costs time and never an event. `head` looks ahead of a cursor, `outline` at
//! the whole log; `snapshot` folds what there is; `stretch` gives out events as they are, and `live` one stretch after the
//! other.

mod batch;
mod feed;
mod follower;
mod head;
mod live;
mod look;
mod outline;
mod reading;
mod replay;
mod snapshot;
mod stretch;
mod window;

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdfast_shared::{
    config::ApiConfig,
    event::Event,
    event_id::EventId,
    run::Run,
    run_log::{Push, RunLog},
    storage::{Storage, StreamDefaults},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    problem::Problem,
    streams::OpenStream,
    wire::{Before, Block},
};
use feed::Feed;
pub use follower::{Aborted, Excerpt, Follower};
pub use live::LiveFrames;
pub use outline::{Outline, is_left_out};
use reading::Reading;
use replay::Replayed;
pub use snapshot::Folded;
pub use stretch::Stretch;

/// Frames that go to one client's socket at a time, in bytes.
const SLICE_BYTES: usize = 32 * 1024;

/// Relays runs to the clients of this process.
pub struct Relay {
    storage: Storage,
    run_log: RunLog,
    feeds: Mutex<HashMap<Uuid, Arc<Feed>>>,
    feed_bytes: usize,
    heartbeat: Duration,
    look: Duration,
    drain: CancellationToken,
    /// Counts the events that were written to clients' streams.
    relayed: metrics::Counter,
}

/// A client's share in a run's feed; the feed goes when the last of them has gone.
pub struct Watch {
    feed: Arc<Feed>,
}

/// What a client that asks for events gets.
pub enum Opened {
    Stream(Box<Follower>),
    /// The run has ended and the client has everything.
    Finished,
}

impl Relay {
    pub fn new(storage: Storage, run_log: RunLog, config: &ApiConfig, drain: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            storage,
            run_log,
            feeds: Mutex::default(),
            feed_bytes: config.feed_bytes,
            heartbeat: config.heartbeat,
            look: config.look,
            drain,
            relayed: metrics::counter!("holdfast_events_relayed_total"),
        })
    }

    /// Begins to receive the pushes of a run that is about to be made, so that its feed begins at its first event.
    pub async fn watch_new(&self, run_id: Uuid) -> Watch {
        let (watch, _) = self.join(run_id);
        let queued = Before { id: EventId::first_of(0), block: Some(Block::None) };
        watch.feed.anchor(queued, watch.feed.version());
        self.subscribe(&watch.feed).await;
        watch
    }

    /// Follows the owner's run from a cursor, after a first look that tells whether the cursor can be continued.
    pub async fn open(
        self: &Arc<Self>,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        stream: OpenStream,
    ) -> Result<Opened, Problem> {
        let run_id = run.id;
        let (watch, is_new) = self.join(run_id);
        watch.feed.remember(owner, run);
        // Order matters: before the log is read, so that nothing falls in between.
        if is_new {
            self.subscribe(&watch.feed).await;
        }
        let version = watch.feed.version();
        let follower = |watch, reading| Box::new(Follower::new(Arc::clone(self), watch, cursor, reading, stream));
        if watch.feed.serves(cursor) {
            return Ok(Opened::Stream(follower(watch, None)));
        }
        match self.read(&watch.feed, Before::cursor(cursor)).await? {
            Replayed::Events(reading) => Ok(Opened::Stream(follower(watch, Some(reading)))),
            Replayed::Nothing => {
                watch.feed.anchor(Before::cursor(cursor), version);
                Ok(Opened::Stream(follower(watch, None)))
            }
            Replayed::Finished => Ok(Opened::Finished),
            Replayed::NeverIssued => Err(Problem::foreign_event_id(cursor, run_id)),
            Replayed::Removed => Err(Problem::events_gone(run_id)),
            Replayed::NoSuchRun => Err(Problem::run_not_found(run_id)),
        }
    }

    /// The same for a client that comes back, which is counted.
    pub async fn resume(
        self: &Arc<Self>,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        stream: OpenStream,
    ) -> Result<Opened, Problem> {
        let opened = self.open(owner, run, cursor, stream).await?;
        if cursor != EventId::ORIGIN && matches!(opened, Opened::Stream(_)) {
            metrics::counter!("holdfast_streams_resumed_total").increment(1);
        }
        Ok(opened)
    }

    /// The owner's run, if somebody follows it here and it goes on. Its status is that of when it was followed first; what
    /// a stream shows of it never changes.
    pub fn remembered(&self, owner: &str, run_id: Uuid) -> Option<Arc<Run>> {
        self.feed(run_id)?.remembered(owner)
    }

    /// Remembers the runs of one owner as another's, who has all of them now.
    pub fn move_owner(&self, from: &str, to: &str) {
        self.feeds().values().for_each(|feed| feed.move_owner(from, to));
    }

    /// Forgets the runs of a conversation that was deleted.
    pub fn forget(&self, conversation_id: Uuid) {
        self.feeds().values().for_each(|feed| feed.forget(conversation_id));
    }

    /// What the run's streams carry where a client does not say. A feed remembers it.
    pub async fn stream_defaults(&self, run_id: Uuid) -> Result<StreamDefaults, Problem> {
        let feed = self.feed(run_id);
        if let Some(defaults) = feed.as_ref().and_then(|feed| feed.stream_defaults.get()) {
            return Ok(*defaults);
        }
        let defaults = self.storage.stream_defaults(run_id).await?;
        // Whoever asks at the same time is told the same.
        if let Some(feed) = feed {
            let _ = feed.stream_defaults.set(defaults);
        }
        Ok(defaults)
    }

    /// Follows a run that its owner has just made, from its first event on.
    pub fn open_new(
        self: &Arc<Self>,
        watch: Watch,
        owner: &str,
        run: &Arc<Run>,
        queued: Event,
        stream: OpenStream,
    ) -> Follower {
        watch.feed.remember(owner, run);
        let reading = Reading::of(Before::START, vec![queued]);
        Follower::new(Arc::clone(self), watch, EventId::ORIGIN, Some(reading), stream)
    }

    /// The next events after `cursor`, from the log or else the archive.
    pub async fn page(&self, run_id: Uuid, cursor: EventId) -> Result<Vec<Event>, Problem> {
        match self.replay(run_id, cursor).await? {
            Replayed::Events(events) => Ok(events),
            Replayed::Nothing | Replayed::Finished => Ok(Vec::new()),
            Replayed::NeverIssued => Err(Problem::foreign_event_id(cursor, run_id)),
            Replayed::Removed => Err(Problem::events_gone(run_id)),
            Replayed::NoSuchRun => Err(Problem::run_not_found(run_id)),
        }
    }

    /// What a client whose cursor this is may be in the middle of.
    pub async fn place(&self, run_id: Uuid, cursor: EventId) -> Result<Before, Problem> {
        // The first event of an attempt is never in the middle of anything.
        let Some(previous) = cursor.previous() else { return Ok(Before { id: cursor, block: Some(Block::None) }) };
        let event = self.page(run_id, previous).await?.into_iter().next().filter(|event| event.id == cursor);
        Ok(event.as_ref().map_or_else(|| Before::cursor(cursor), Before::behind))
    }

    /// Whether the run has ended with the event `cursor`.
    pub async fn has_ended_at(&self, run_id: Uuid, cursor: EventId) -> Result<bool, Problem> {
        Ok(matches!(self.replay(run_id, cursor).await?, Replayed::Finished))
    }

    /// Whether this process is shutting down.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Wakes all who wait once this process shuts down, so that each of them need not wait for that too.
    pub async fn announce_drain(self: Arc<Self>) {
        self.drain.cancelled().await;
        self.feeds().values().for_each(|feed| feed.bump());
    }

    /// Gives each push to its run's feed, until the log is closed.
    pub async fn dispatch(self: Arc<Self>, mut pushes: mpsc::UnboundedReceiver<Push>) {
        while let Some(push) = pushes.recv().await {
            let Some(feed) = self.feed(push.run_id) else { continue };
            match Event::parse_batch(&push.lines) {
                Ok(events) => {
                    if feed.extend(events).has_gap() {
                        self.fill(feed);
                    }
                }
                Err(error) => {
                    tracing::error!(run.id = %push.run_id, error = &error as &dyn Error, "a push cannot be read")
                }
            }
        }
    }

    /// Looks all followed runs up, with one statement each time, in case a push was lost; and drops feeds that nobody watches.
    pub async fn look(self: Arc<Self>, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.drop_unwatched().await;
            self.look_once().await;
        }
    }

    async fn look_once(self: &Arc<Self>) {
        let mut feeds: Vec<Arc<Feed>> = self.feeds().values().cloned().collect();
        let unsubscribed = feeds.iter().filter(|feed| !feed.is_subscribed());
        futures::future::join_all(unsubscribed.map(|feed| self.subscribe(feed))).await;
        feeds.retain(|feed| feed.is_live());
        if feeds.is_empty() {
            return;
        }
        let run_ids = feeds.iter().map(|feed| feed.run_id).collect();
        let positions: HashMap<Uuid, _> = match self.storage.positions(run_ids).await {
            Ok(positions) => positions.into_iter().collect(),
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "cannot look up the followed runs");
                return;
            }
        };
        for feed in feeds {
            match positions.get(&feed.run_id) {
                Some(position) if feed.lacks(position.archived_to) => self.fill(feed),
                // Nothing will tell this feed of the end: it was begun behind an event that is not the run's.
                Some(position) if position.status.is_terminal() => feed.restart(),
                // Somebody has removed the run; or it was made since this looked, and a read too many is made of it.
                None if feed.was_committed() => feed.restart(),
                _ => {}
            }
        }
    }

    /// Reads what a feed lacks, in a task of its own; one at a time per feed.
    fn fill(self: &Arc<Self>, feed: Arc<Feed>) {
        let Some(filling) = feed.begin_filling() else { return };
        let relay = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(tail) = feed.tail() {
                match relay.replay(feed.run_id, tail).await {
                    Ok(Replayed::Events(events)) => drop(feed.extend(events)),
                    _ => break,
                }
            }
            drop(filling);
            if feed.take_missed() {
                relay.fill(feed);
            }
        });
    }

    fn join(&self, run_id: Uuid) -> (Watch, bool) {
        let mut feeds = self.feeds();
        let mut is_new = false;
        let feed = feeds.entry(run_id).or_insert_with(|| {
            is_new = true;
            Arc::new(Feed::new(run_id, self.feed_bytes))
        });
        (Watch { feed: Arc::clone(feed) }, is_new)
    }

    async fn subscribe(&self, feed: &Feed) {
        let followed = self.run_log.subscribe(feed.run_id).await;
        feed.set_subscribed(followed.is_ok());
        if let Err(error) = followed {
            tracing::debug!(run.id = %feed.run_id, error = &error as &dyn Error, "following a run without pushes");
        }
    }

    async fn drop_unwatched(&self) {
        let unwatched: Vec<Arc<Feed>> = {
            let mut feeds = self.feeds();
            // The map holds one reference, every watcher another.
            feeds.extract_if(|_, feed| Arc::strong_count(feed) == 1).map(|(_, feed)| feed).collect()
        };
        for feed in unwatched {
            if let Err(error) = self.run_log.unsubscribe(feed.run_id).await {
                tracing::debug!(run.id = %feed.run_id, error = &error as &dyn Error, "cannot stop following a run");
            }
            // Order matters: whoever has begun to watch it meanwhile subscribed before this unsubscribed.
            if let Some(again) = self.feed(feed.run_id) {
                self.subscribe(&again).await;
            }
        }
    }

    fn feed(&self, run_id: Uuid) -> Option<Arc<Feed>> {
        self.feeds().get(&run_id).cloned()
    }

    fn feeds(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
