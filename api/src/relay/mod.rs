//! The relay: replays a run's log and then tails it, for any number of clients.
//!
//! A client is a position in a run's log (`subscriber`). It reads from the run's `topic`, which all clients of the run
//! in this process share and which has the newest events in a `replay_buffer`. Without them it reads the log or else the
//! archive (`log_reader`), and clients at one position use one `shared_read`. Both hold events in a `batch`, which is
//! encoded once per view. `follows` proves at every step that no event is missing, so a lost push costs time and never
//! an event. `frame_stream` sends a subscriber's events as frames, and `fold_stream` encodes them
//! for wires with a state. `arrivals` wakes the streams of threads whose next run has not come yet.
//!
//! Invariant: no import points back. The order is `arrivals`, `batch`, `replay_buffer`, `log_reader`, `shared_read`, `topic`,
//! `subscriber`, `frame_stream`, `fold_stream`, and this file.

mod arrivals;
mod batch;
mod fold_stream;
mod frame_stream;
mod log_reader;
mod replay_buffer;
mod shared_read;
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
    storage::{self, Storage, StreamDefaults},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    problem::Problem,
    streams::OpenStream,
    wire::{Block, EarlierPlan, LogPosition, UiPlan},
};
pub use arrivals::{ThreadArrival, ThreadArrivals};
pub use batch::{SLICE_BYTES, Slice};
pub use fold_stream::{FoldStream, SeenFrames};
pub use frame_stream::{Encode, StreamGauge, TruncatedStream};
use log_reader::LogReader;
pub use log_reader::{LogPages, Next, ReadError};
use subscriber::SubscriberContext;
pub use subscriber::{Subscriber, WakeReason};
pub use topic::Topic;

/// Relays runs to the clients of this process.
pub struct Relay {
    storage: Storage,
    run_log: RunLog,
    topics: Mutex<HashMap<Uuid, Arc<Topic>>>,
    topic_bytes: usize,
    context: Arc<SubscriberContext>,
    arrivals: ThreadArrivals,
}

impl Relay {
    pub fn new(storage: Storage, run_log: RunLog, config: &ApiConfig, drain: CancellationToken) -> Arc<Self> {
        let reader = LogReader::new(storage.clone(), run_log.clone());
        let (heartbeat, poll_interval) = (config.heartbeat, config.look);
        let relayed = metrics::counter!("holdfast_events_relayed_total");
        let context = Arc::new(SubscriberContext { reader, heartbeat, poll_interval, drain, relayed });
        Arc::new(Self {
            storage,
            run_log,
            topics: Mutex::default(),
            topic_bytes: config.feed_bytes,
            context,
            arrivals: ThreadArrivals::default(),
        })
    }

    /// Creates the topic of a run before the run exists, and subscribes to its pushes, so that the topic has the first
    /// event.
    pub async fn open_topic(&self, run_id: Uuid) -> Arc<Topic> {
        let (topic, _) = self.join(run_id);
        topic.anchor(LogPosition { id: EventId::first_of(0), block: Block::None });
        self.subscribe(&topic).await;
        topic
    }

    /// Follows the owner's run from a cursor. Returns `None` if the run has ended and the client has all its events.
    /// Fails if the cursor is no event of the run, or if the events have expired.
    pub async fn open(
        &self,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        permit: OpenStream,
    ) -> Result<Option<Subscriber>, Problem> {
        let (topic, is_new) = self.join(run.id);
        topic.remember(owner, run);
        // Order matters: the process subscribes before it reads the log, so that no event is lost between the two.
        if is_new {
            self.subscribe(&topic).await;
        }
        let known = topic.position(cursor);
        let mut subscriber =
            Subscriber::new(topic, Arc::clone(&self.context), permit, known.unwrap_or(LogPosition::START));
        if known.is_some() {
            return Ok(Some(subscriber));
        }
        let has_more = subscriber.seek(cursor).await.map_err(|error| error.into_problem(run.id, cursor))?;
        Ok(has_more.then_some(subscriber))
    }

    /// Calls `open`, and counts the stream if the client reconnects.
    pub async fn resume(
        &self,
        owner: &str,
        run: &Arc<Run>,
        cursor: EventId,
        permit: OpenStream,
    ) -> Result<Option<Subscriber>, Problem> {
        let subscriber = self.open(owner, run, cursor, permit).await?;
        if cursor != EventId::ORIGIN && subscriber.is_some() {
            metrics::counter!("holdfast_streams_resumed_total").increment(1);
        }
        Ok(subscriber)
    }

    /// Follows a run that its owner has just posted, from its first event.
    pub fn open_new(
        &self,
        topic: Arc<Topic>,
        owner: &str,
        run: &Arc<Run>,
        queued: Event,
        permit: OpenStream,
    ) -> Subscriber {
        topic.remember(owner, run);
        Subscriber::new(topic, Arc::clone(&self.context), permit, LogPosition::START).with_events(vec![queued])
    }

    /// Returns the pages of a run's log after `cursor`, up to its newest event.
    pub fn pages(&self, run_id: Uuid, cursor: EventId) -> LogPages {
        self.context.reader.pages(run_id, cursor)
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
        if let Some(defaults) = topic.as_ref().and_then(|topic| topic.stream_defaults()) {
            return Ok(defaults);
        }
        let defaults = self.storage.stream_defaults(run_id).await?;
        topic.into_iter().for_each(|topic| topic.set_stream_defaults(defaults));
        Ok(defaults)
    }

    /// Returns the open plan of an earlier run of the conversation. The run's topic remembers it.
    pub async fn earlier_plan(&self, run: &Run) -> Result<EarlierPlan, Problem> {
        let topic = self.topic(run.id);
        if let Some(plan) = topic.as_ref().and_then(|topic| topic.earlier_plan()) {
            return Ok(plan);
        }
        let plan = self.storage.open_plan_before(run).await?.map(|plan| Arc::new(UiPlan::from(plan)));
        topic.into_iter().for_each(|topic| topic.set_earlier_plan(plan.clone()));
        Ok(plan)
    }

    /// Returns whether a client of this process follows the run.
    pub fn is_followed(&self, run_id: Uuid) -> bool {
        self.topic(run_id).is_some_and(|topic| topic.is_followed())
    }

    /// Returns the threads whose streams wait for a run.
    pub const fn arrivals(&self) -> &ThreadArrivals {
        &self.arrivals
    }

    /// Returns the longest pause between two frames of a stream.
    pub fn heartbeat(&self) -> Duration {
        self.context.heartbeat
    }

    /// Returns when this process shuts down.
    pub fn drain(&self) -> &CancellationToken {
        &self.context.drain
    }

    /// Returns whether the run waits for an answer and has no event after `last`.
    pub async fn is_waiting_after(&self, run_id: Uuid, last: EventId) -> Result<bool, storage::Error> {
        self.context.reader.is_waiting_after(run_id, last).await
    }

    /// Returns whether this process is shutting down.
    pub fn is_draining(&self) -> bool {
        self.context.drain.is_cancelled()
    }

    /// Waits until this process shuts down.
    pub async fn until_draining(&self) {
        self.context.drain.cancelled().await;
    }

    /// Wakes all subscribers when this process shuts down, so that no subscriber has to watch for the shutdown itself.
    pub async fn announce_drain(self: Arc<Self>) {
        self.until_draining().await;
        self.topics().values().for_each(|topic| topic.wake());
    }

    /// Passes each push to its run's topic, until the run log closes.
    pub async fn dispatch(self: Arc<Self>, mut pushes: mpsc::UnboundedReceiver<Push>) {
        while let Some(push) = pushes.recv().await {
            let Some(topic) = self.topic(push.run_id) else { continue };
            match Event::parse_batch(&push.lines) {
                Ok(events) => topic.extend(events),
                Err(error) => {
                    tracing::error!(run.id = %push.run_id, error = &error as &dyn Error, "failed to parse a push")
                }
            }
        }
    }

    /// Looks up all followed runs at an interval, with one statement, because a push may be lost. Drops topics without
    /// subscribers.
    pub async fn poll_runs(self: Arc<Self>, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.drop_unused_topics().await;
            self.poll_once().await;
            self.arrivals.poll(&self.storage).await;
        }
    }

    async fn poll_once(&self) {
        let mut topics: Vec<Arc<Topic>> = self.topics().values().cloned().collect();
        let unsubscribed = topics.iter().filter(|topic| !topic.is_subscribed());
        futures::future::join_all(unsubscribed.map(|topic| self.subscribe(topic))).await;
        topics.retain(|topic| topic.live_tail().is_some());
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
            let is_outdated = match positions.get(&topic.run_id) {
                // No push announces the end to a topic that starts after an event that the run does not have.
                Some(position) => {
                    position.status.is_terminal() || topic.live_tail().is_some_and(|tail| tail < position.archived_to)
                }
                // The conversation is deleted, or the run was committed after this look-up. In that case the
                // subscribers read once too often.
                None => topic.was_committed(),
            };
            if is_outdated {
                topic.restart();
            }
        }
    }

    fn join(&self, run_id: Uuid) -> (Arc<Topic>, bool) {
        let mut topics = self.topics();
        let mut is_new = false;
        let topic = topics.entry(run_id).or_insert_with(|| {
            is_new = true;
            Arc::new(Topic::new(run_id, self.topic_bytes))
        });
        (Arc::clone(topic), is_new)
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
            // The map holds one reference, and each subscriber another.
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
