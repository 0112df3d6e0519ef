//! The relay: replays a run's log and then tails it, for any number of clients.
//!
//! A client is a cursor (`subscriber`). Until it has caught up, it reads the log or else the archive, and clients at
//! one cursor use one `shared_read`. After that, it reads from the run's `topic`, which all clients of the run in this
//! process share. Both hold a `replay_buffer` of `batch`es, and encode each batch once per view. `follows` proves at
//! every step that no event is missing, so a lost push costs time and never an event.
//!
//! `head` and `poll` read ahead of a cursor, `outline` reads the whole log, and `snapshot` folds it. `stream_page`
//! returns events without frames, and `live` streams one page after the other.

mod batch;
mod head;
mod live;
mod outline;
mod poll;
mod replay;
mod replay_buffer;
mod shared_read;
mod snapshot;
mod stream_page;
mod subscriber;
mod topic;

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
    wire::{Block, LogPosition},
};
pub use live::LiveFrames;
pub use outline::{Outline, is_left_out};
use replay::ReplayResult;
use shared_read::SharedRead;
pub use snapshot::RunFold;
pub use stream_page::StreamPage;
pub use subscriber::{LogFilter, Subscriber, TruncatedStream};
use topic::Topic;

/// Bytes of frames that one client's socket receives at a time.
const SLICE_BYTES: usize = 32 * 1024;

/// Relays runs to the clients of this process.
pub struct Relay {
    storage: Storage,
    run_log: RunLog,
    topics: Mutex<HashMap<Uuid, Arc<Topic>>>,
    topic_bytes: usize,
    heartbeat: Duration,
    poll_interval: Duration,
    drain: CancellationToken,
    /// Counts the events that subscribers have sent to clients.
    relayed: metrics::Counter,
}

/// A reference to a run's topic. The relay drops a topic after its last handle.
pub struct TopicHandle {
    topic: Arc<Topic>,
}

/// The result of a client's request for events.
pub enum OpenOutcome {
    Stream(Box<Subscriber>),
    /// The run has ended, and the client has all its events.
    Finished,
}

impl Relay {
    pub fn new(storage: Storage, run_log: RunLog, config: &ApiConfig, drain: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            storage,
            run_log,
            topics: Mutex::default(),
            topic_bytes: config.feed_bytes,
            heartbeat: config.heartbeat,
            poll_interval: config.look,
            drain,
            relayed: metrics::counter!("holdfast_events_relayed_total"),
        })
    }

    /// Creates the topic of a run before the run exists, and subscribes to its pushes, so that the topic has the first
    /// event.
    pub async fn open_topic(&self, run_id: Uuid) -> TopicHandle {
        let (handle, _) = self.join(run_id);
        let first_event = LogPosition { id: EventId::first_of(0), block: Some(Block::None) };
        handle.topic.anchor(first_event, handle.topic.version());
        self.subscribe(&handle.topic).await;
        handle
    }

    /// Follows the owner's run from a cursor. Fails if the cursor is no event of the run, or if the events have
    /// expired.
    pub async fn open(
        self: &Arc<Self>,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        stream: OpenStream,
    ) -> Result<OpenOutcome, Problem> {
        let run_id = run.id;
        let (handle, is_new) = self.join(run_id);
        handle.topic.remember(owner, run);
        // Order matters: the process subscribes before it reads the log, so that no event is lost between the two.
        if is_new {
            self.subscribe(&handle.topic).await;
        }
        let version = handle.topic.version();
        let subscriber =
            |handle, shared_read| Box::new(Subscriber::new(Arc::clone(self), handle, cursor, shared_read, stream));
        if handle.topic.serves(cursor) {
            return Ok(OpenOutcome::Stream(subscriber(handle, None)));
        }
        match self.read_shared(&handle.topic, LogPosition::of_cursor(cursor)).await? {
            ReplayResult::Events(shared_read) => Ok(OpenOutcome::Stream(subscriber(handle, Some(shared_read)))),
            ReplayResult::CaughtUp => {
                handle.topic.anchor(LogPosition::of_cursor(cursor), version);
                Ok(OpenOutcome::Stream(subscriber(handle, None)))
            }
            ReplayResult::Finished => Ok(OpenOutcome::Finished),
            ReplayResult::ForeignCursor => Err(Problem::foreign_event_id(cursor, run_id)),
            ReplayResult::EventsGone => Err(Problem::events_gone(run_id)),
            ReplayResult::NoSuchRun => Err(Problem::run_not_found(run_id)),
        }
    }

    /// Calls `open`, and counts the stream if the client reconnects.
    pub async fn resume(
        self: &Arc<Self>,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        stream: OpenStream,
    ) -> Result<OpenOutcome, Problem> {
        let outcome = self.open(owner, run, cursor, stream).await?;
        if cursor != EventId::ORIGIN && matches!(outcome, OpenOutcome::Stream(_)) {
            metrics::counter!("holdfast_streams_resumed_total").increment(1);
        }
        Ok(outcome)
    }

    /// Returns the owner's run if its topic remembers it and the run has not ended. The status may be outdated; what a
    /// stream shows of a run never changes.
    pub fn remembered(&self, owner: &str, run_id: Uuid) -> Option<Arc<Run>> {
        self.topic(run_id)?.remembered(owner)
    }

    /// Moves the remembered runs of one owner to another, which has taken over all of them.
    pub fn move_owner(&self, from: &str, to: &str) {
        self.topics().values().for_each(|topic| topic.move_owner(from, to));
    }

    /// Forgets the runs of a deleted conversation.
    pub fn forget(&self, conversation_id: Uuid) {
        self.topics().values().for_each(|topic| topic.forget(conversation_id));
    }

    /// Returns the default mode of the run's streams. Its topic remembers it.
    pub async fn stream_defaults(&self, run_id: Uuid) -> Result<StreamDefaults, Problem> {
        let topic = self.topic(run_id);
        if let Some(defaults) = topic.as_ref().and_then(|topic| topic.stream_defaults.get()) {
            return Ok(*defaults);
        }
        let defaults = self.storage.stream_defaults(run_id).await?;
        // A concurrent request has read the same value.
        if let Some(topic) = topic {
            let _ = topic.stream_defaults.set(defaults);
        }
        Ok(defaults)
    }

    /// Follows a run that its owner has just posted, from its first event.
    pub fn open_new(
        self: &Arc<Self>,
        handle: TopicHandle,
        owner: &str,
        run: &Arc<Run>,
        queued: Event,
        stream: OpenStream,
    ) -> Subscriber {
        handle.topic.remember(owner, run);
        let shared_read = SharedRead::of(LogPosition::START, vec![queued]);
        Subscriber::new(Arc::clone(self), handle, EventId::ORIGIN, Some(shared_read), stream)
    }

    /// Returns the next events after `cursor`, from the log or else the archive; none if the client has caught up.
    pub async fn page(&self, run_id: Uuid, cursor: EventId) -> Result<Vec<Event>, Problem> {
        match self.replay(run_id, cursor).await? {
            ReplayResult::Events(events) => Ok(events),
            ReplayResult::CaughtUp | ReplayResult::Finished => Ok(Vec::new()),
            ReplayResult::ForeignCursor => Err(Problem::foreign_event_id(cursor, run_id)),
            ReplayResult::EventsGone => Err(Problem::events_gone(run_id)),
            ReplayResult::NoSuchRun => Err(Problem::run_not_found(run_id)),
        }
    }

    /// Returns the position after the event `cursor`, with the block that a client at this cursor is in.
    pub async fn position(&self, run_id: Uuid, cursor: EventId) -> Result<LogPosition, Problem> {
        // No block is open before the first event of an attempt.
        let Some(previous) = cursor.previous() else { return Ok(LogPosition { id: cursor, block: Some(Block::None) }) };
        let event = self.page(run_id, previous).await?.into_iter().next().filter(|event| event.id == cursor);
        Ok(event.as_ref().map_or_else(|| LogPosition::of_cursor(cursor), LogPosition::after))
    }

    /// Returns whether `cursor` is the last event of an ended run.
    pub async fn has_ended_at(&self, run_id: Uuid, cursor: EventId) -> Result<bool, Problem> {
        Ok(matches!(self.replay(run_id, cursor).await?, ReplayResult::Finished))
    }

    /// Returns whether this process is shutting down.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Wakes all subscribers when this process shuts down, so that no subscriber has to watch for the shutdown itself.
    pub async fn announce_drain(self: Arc<Self>) {
        self.drain.cancelled().await;
        self.topics().values().for_each(|topic| topic.bump());
    }

    /// Passes each push to its run's topic, until the run log closes.
    pub async fn dispatch(self: Arc<Self>, mut pushes: mpsc::UnboundedReceiver<Push>) {
        while let Some(push) = pushes.recv().await {
            let Some(topic) = self.topic(push.run_id) else { continue };
            match Event::parse_batch(&push.lines) {
                Ok(events) => {
                    if topic.extend(events).has_gap() {
                        self.fill(topic);
                    }
                }
                Err(error) => {
                    tracing::error!(run.id = %push.run_id, error = &error as &dyn Error, "failed to parse a push")
                }
            }
        }
    }

    /// Looks up all followed runs at an interval, with one statement, because a push may be lost. Drops topics without
    /// handles.
    pub async fn poll_runs(self: Arc<Self>, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.drop_unused_topics().await;
            self.poll_once().await;
        }
    }

    async fn poll_once(self: &Arc<Self>) {
        let mut topics: Vec<Arc<Topic>> = self.topics().values().cloned().collect();
        let unsubscribed = topics.iter().filter(|topic| !topic.is_subscribed());
        futures::future::join_all(unsubscribed.map(|topic| self.subscribe(topic))).await;
        topics.retain(|topic| topic.is_live());
        if topics.is_empty() {
            return;
        }
        let run_ids = topics.iter().map(|topic| topic.run_id).collect();
        let positions: HashMap<Uuid, _> = match self.storage.positions(run_ids).await {
            Ok(positions) => positions.into_iter().collect(),
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to look up the followed runs");
                return;
            }
        };
        for topic in topics {
            match positions.get(&topic.run_id) {
                Some(position) if topic.lacks(position.archived_to) => self.fill(topic),
                // No push announces the end to this topic, because it starts after an event that the run does not have.
                Some(position) if position.status.is_terminal() => topic.restart(),
                // The conversation is deleted, or the run was committed after this look-up. In that case the
                // subscribers read once too often.
                None if topic.was_committed() => topic.restart(),
                _ => {}
            }
        }
    }

    /// Reads the events that a topic lacks, in one task per topic.
    fn fill(self: &Arc<Self>, topic: Arc<Topic>) {
        let Some(guard) = topic.start_fill() else { return };
        let relay = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(tail) = topic.tail() {
                match relay.replay(topic.run_id, tail).await {
                    Ok(ReplayResult::Events(events)) => drop(topic.extend(events)),
                    _ => break,
                }
            }
            drop(guard);
            if topic.take_missed_gap() {
                relay.fill(topic);
            }
        });
    }

    fn join(&self, run_id: Uuid) -> (TopicHandle, bool) {
        let mut topics = self.topics();
        let mut is_new = false;
        let topic = topics.entry(run_id).or_insert_with(|| {
            is_new = true;
            Arc::new(Topic::new(run_id, self.topic_bytes))
        });
        (TopicHandle { topic: Arc::clone(topic) }, is_new)
    }

    async fn subscribe(&self, topic: &Topic) {
        let subscribed = self.run_log.subscribe(topic.run_id).await;
        topic.set_subscribed(subscribed.is_ok());
        if let Err(error) = subscribed {
            tracing::debug!(run.id = %topic.run_id, error = &error as &dyn Error, "failed to subscribe to the pushes of a run");
        }
    }

    async fn drop_unused_topics(&self) {
        let unused: Vec<Arc<Topic>> = {
            let mut topics = self.topics();
            // The map holds one reference, and each handle another.
            topics.extract_if(|_, topic| Arc::strong_count(topic) == 1).map(|(_, topic)| topic).collect()
        };
        for topic in unused {
            if let Err(error) = self.run_log.unsubscribe(topic.run_id).await {
                tracing::debug!(run.id = %topic.run_id, error = &error as &dyn Error, "failed to unsubscribe from the pushes of a run");
            }
            // Order matters: a client may have opened the topic again meanwhile, and has subscribed before this
            // unsubscribed.
            if let Some(again) = self.topic(topic.run_id) {
                self.subscribe(&again).await;
            }
        }
    }

    fn topic(&self, run_id: Uuid) -> Option<Arc<Topic>> {
        self.topics().get(&run_id).cloned()
    }

    fn topics(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Topic>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
