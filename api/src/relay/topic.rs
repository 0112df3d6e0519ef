//! A topic: the newest events of one followed run, shared by all its subscribers in this process, and what the process
//! remembers of the run. All of it is one state behind one lock, which wakes the subscribers when it changes.

use std::sync::Arc;

use holdfast_shared::{event::Event, event_id::EventId, run::Run, storage::StreamDefaults};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    batch::Slice,
    log_reader::Next,
    replay_buffer::ReplayBuffer,
    shared_read::{SharedRead, SharedReads},
};
use crate::wire::LogPosition;

/// The newest events of one run, and a memory of the run.
pub struct Topic {
    pub run_id: Uuid,
    /// The reads of subscribers whose cursor the replay buffer does not have.
    shared_reads: SharedReads,
    max_bytes: usize,
    state: watch::Sender<TopicState>,
}

/// The state of a topic.
#[derive(Default)]
pub struct TopicState {
    tail: TailState,
    run: RunMemory,
    /// The default mode of the run's streams, once a request has read it.
    stream_defaults: Option<StreamDefaults>,
    /// Whether the process receives the pushes of the run.
    is_subscribed: bool,
}

/// How much of the run's log a topic has.
#[derive(Default)]
enum TailState {
    /// No push has arrived, and no subscriber has found the end of the log. Subscribers read the log by themselves.
    #[default]
    Cold,
    /// The buffer has all events after its start, up to the newest push. A gap between two pushes starts it again.
    Live(ReplayBuffer),
    /// The buffer's tail is the run's last event.
    Ended(ReplayBuffer),
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

impl TailState {
    fn buffer(&self) -> Option<&ReplayBuffer> {
        match self {
            Self::Cold => None,
            Self::Live(buffer) | Self::Ended(buffer) => Some(buffer),
        }
    }

    /// Appends pushed events. After a gap the buffer starts again after the first of them, because only a known event
    /// tells in which block the next one begins.
    fn extend(&mut self, events: Vec<Event>, max_bytes: usize) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let (last, is_terminal) = (last.id, last.is_terminal());
        let mut buffer = match std::mem::take(self) {
            Self::Ended(buffer) => return *self = Self::Ended(buffer),
            Self::Live(buffer) if !buffer.has_gap_before(&events) => buffer,
            Self::Cold | Self::Live(_) => ReplayBuffer::after(LogPosition::after(first), max_bytes),
        };
        buffer.extend(events);
        let has_ended = is_terminal && buffer.tail().id == last;
        *self = if has_ended { Self::Ended(buffer) } else { Self::Live(buffer) };
    }
}

impl TopicState {
    /// Returns what follows a cursor, or `None` if the subscriber must read the log.
    pub fn next(&self, cursor: EventId) -> Option<Next<Slice>> {
        let buffer = self.tail.buffer()?;
        if buffer.tail().id == cursor {
            return Some(if matches!(self.tail, TailState::Ended(_)) { Next::Ended } else { Next::CaughtUp });
        }
        buffer.slice(cursor).map(Next::Events)
    }
}

impl Topic {
    pub fn new(run_id: Uuid, max_bytes: usize) -> Self {
        let (shared_reads, state) = (SharedReads::default(), watch::Sender::default());
        Self { run_id, shared_reads, max_bytes, state }
    }

    /// Returns a view of the state, which also tells when the state has changed.
    pub fn watch(&self) -> watch::Receiver<TopicState> {
        self.state.subscribe()
    }

    /// Returns the read of the subscribers at a position.
    pub fn shared_read(&self, position: LogPosition) -> Arc<SharedRead> {
        self.shared_reads.at(position)
    }

    /// Notes that a subscriber has found the end of the log, unless pushes have told the topic a newer one.
    pub fn anchor(&self, position: LogPosition) {
        self.edit(|state| {
            if let TailState::Cold = state.tail {
                state.tail = TailState::Live(ReplayBuffer::after(position, self.max_bytes));
            }
        });
    }

    /// Appends pushed events, and wakes the subscribers.
    pub fn extend(&self, events: Vec<Event>) {
        self.state.send_modify(|state| state.tail.extend(events, self.max_bytes));
    }

    /// Drops the buffer of a run that has not ended here. Its subscribers then read the log and find out.
    pub fn restart(&self) {
        self.state.send_if_modified(|state| {
            let is_live = matches!(state.tail, TailState::Live(_));
            if is_live {
                state.tail = TailState::Cold;
            }
            is_live
        });
    }

    /// Wakes all subscribers.
    pub fn wake(&self) {
        self.state.send_modify(|_| {});
    }

    /// Drops the oldest batches if the encodings have made the buffer too large.
    pub fn shrink(&self) {
        let is_too_large = |state: &TopicState| state.tail.buffer().is_some_and(ReplayBuffer::is_too_large);
        if is_too_large(&self.state.borrow()) {
            self.edit(|state| match &mut state.tail {
                TailState::Cold => {}
                TailState::Live(buffer) | TailState::Ended(buffer) => buffer.shrink(),
            });
        }
    }

    /// Returns the newest event of a run that has not ended, if the topic knows it.
    pub fn live_tail(&self) -> Option<EventId> {
        match &self.state.borrow().tail {
            TailState::Live(buffer) => Some(buffer.tail().id),
            TailState::Cold | TailState::Ended(_) => None,
        }
    }

    /// Returns the position of a client at `cursor` if the client can continue from this topic, without a read of the
    /// log.
    pub fn position(&self, cursor: EventId) -> Option<LogPosition> {
        let state = self.state.borrow();
        match &state.tail {
            TailState::Live(buffer) if state.is_subscribed => buffer.position(cursor),
            _ => None,
        }
    }

    /// Remembers the owner's run, unless the topic remembers it already.
    pub fn remember(&self, owner: &str, run: &Arc<Run>) {
        self.edit(|state| {
            if let RunMemory::Empty = state.run {
                state.run = RunMemory::Run { owner: owner.to_owned(), run: Arc::clone(run) };
            }
        });
    }

    /// Forgets the run if it belongs to the deleted conversation.
    pub fn forget(&self, conversation_id: Uuid) {
        self.edit(|state| {
            if let RunMemory::Run { run, .. } = &state.run
                && run.conversation_id == conversation_id
            {
                state.run = RunMemory::Deleted;
            }
        });
    }

    /// Moves the run to another owner if it belongs to `from`.
    pub fn move_owner(&self, from: &str, to: &str) {
        self.edit(|state| {
            if let RunMemory::Run { owner, .. } = &mut state.run
                && owner == from
            {
                to.clone_into(owner);
            }
        });
    }

    /// Returns the run if the topic remembers it for this owner. After the run's end it returns `None`, because the
    /// database has the result.
    pub fn remembered(&self, owner: &str) -> Option<Arc<Run>> {
        let state = self.state.borrow();
        match (&state.run, &state.tail) {
            (RunMemory::Run { owner: remembered_owner, run }, TailState::Live(_))
                if remembered_owner == owner && state.is_subscribed =>
            {
                Some(Arc::clone(run))
            }
            _ => None,
        }
    }

    /// Returns whether a request has read the run from the database.
    pub fn was_committed(&self) -> bool {
        !matches!(self.state.borrow().run, RunMemory::Empty)
    }

    pub fn stream_defaults(&self) -> Option<StreamDefaults> {
        self.state.borrow().stream_defaults
    }

    pub fn set_stream_defaults(&self, defaults: StreamDefaults) {
        self.edit(|state| state.stream_defaults = Some(defaults));
    }

    pub fn is_subscribed(&self) -> bool {
        self.state.borrow().is_subscribed
    }

    pub fn set_subscribed(&self, is_subscribed: bool) {
        self.edit(|state| state.is_subscribed = is_subscribed);
    }

    /// Changes the state without waking the subscribers.
    fn edit(&self, change: impl FnOnce(&mut TopicState)) {
        self.state.send_if_modified(|state| {
            change(state);
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chrono::DateTime;
    use holdfast_shared::event::{
        AttemptReason, AttemptStarted, EventBody, MessageDelta, RunCompleted, StepStarted, following,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Block;

    fn event<'a>(attempt: u32, n: u32, body: impl Into<EventBody<'a>>) -> Event {
        Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, &body.into())
    }

    fn delta(n: u32) -> Event {
        event(1, n, MessageDelta { message_id: Uuid::nil(), text: "word ".into() })
    }

    fn end(n: u32) -> Event {
        event(1, n, RunCompleted::default())
    }

    fn topic() -> Topic {
        let topic = Topic::new(Uuid::nil(), usize::MAX);
        topic.set_subscribed(true);
        topic
    }

    fn after(n: u32) -> LogPosition {
        LogPosition { id: EventId::new(1, n), block: Block::None }
    }

    /// Returns what the topic says after 1-n: the numbers of the next events, or why there are none.
    fn next(topic: &Topic, n: u32) -> String {
        match topic.watch().borrow().next(EventId::new(1, n)) {
            Some(Next::Events(slice)) => {
                slice.events().map(|event| event.id.n.to_string()).collect::<Vec<_>>().join(",")
            }
            Some(Next::CaughtUp) => "caught up".to_owned(),
            Some(Next::Ended) => "ended".to_owned(),
            None => "read the log".to_owned(),
        }
    }

    #[test]
    fn a_topic_serves_what_follows_its_anchor() {
        let topic = topic();
        assert_eq!(next(&topic, 1), "read the log");
        topic.anchor(after(1));
        assert_eq!(next(&topic, 1), "caught up");
        topic.extend(vec![delta(2), delta(3)]);
        assert_eq!([1, 2, 3, 4].map(|n| next(&topic, n)), ["2,3", "3", "caught up", "read the log"]);
        topic.anchor(after(9));
        assert_eq!(next(&topic, 3), "caught up", "a late anchor moved the topic");
    }

    #[test]
    fn a_push_without_an_anchor_starts_after_its_first_event() {
        let topic = topic();
        topic.extend(vec![delta(5), delta(6)]);
        assert_eq!([4, 5, 6].map(|n| next(&topic, n)), ["read the log", "6", "caught up"]);
        assert_eq!(topic.position(EventId::new(1, 5)).unwrap().block, Block::Text);
    }

    #[test]
    fn a_lost_push_starts_the_buffer_again() {
        let topic = topic();
        topic.anchor(after(1));
        topic.extend(vec![delta(2)]);
        topic.extend(vec![delta(4), delta(5)]);
        assert_eq!([1, 2, 4, 5].map(|n| next(&topic, n)), ["read the log", "read the log", "5", "caught up"]);
    }

    #[test]
    fn a_repeated_push_changes_nothing() {
        let topic = topic();
        topic.anchor(after(1));
        topic.extend(vec![delta(2), delta(3)]);
        topic.extend(vec![delta(2)]);
        topic.extend(vec![delta(3), delta(4)]);
        assert_eq!([1, 4].map(|n| next(&topic, n)), ["2,3,4", "caught up"]);
    }

    #[test]
    fn an_ended_topic_serves_the_end_and_takes_nothing_more() {
        let topic = topic();
        topic.anchor(after(1));
        topic.extend(vec![delta(2), end(3)]);
        topic.restart();
        topic.extend(vec![delta(9)]);
        assert_eq!([1, 2, 3].map(|n| next(&topic, n)), ["2,3", "3", "ended"]);
        assert_eq!((topic.live_tail(), topic.position(EventId::new(1, 2)).is_none()), (None, true));
    }

    #[test]
    fn a_restart_sends_the_subscribers_to_the_log() {
        let topic = topic();
        topic.anchor(after(1));
        topic.extend(vec![delta(2)]);
        let mut changes = topic.watch();
        topic.restart();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(next(&topic, 1), "read the log");
        topic.restart();
        assert!(!changes.has_changed().unwrap(), "a cold topic woke its subscribers");
    }

    #[test]
    fn the_end_is_never_read_without_the_events_before_it() {
        for _ in 0..2000 {
            let topic = topic();
            topic.anchor(after(1));
            thread::scope(|scope| {
                scope.spawn(|| topic.extend(vec![end(2)]));
                let first = loop {
                    match next(&topic, 1) {
                        result if result == "caught up" => {}
                        result => break result,
                    }
                };
                assert_eq!(first, "2");
            });
        }
    }

    /// Returns a log of two attempts. The second supersedes the end of the first.
    fn log() -> Vec<Event> {
        let first = (1..40).map(delta);
        let base = EventId::new(1, 30);
        let started =
            AttemptStarted { attempt: 2, base, reason: AttemptReason::LeaseExpired, crashes: 1, max_crashes: 3 };
        let second = (2..40).map(|n| event(2, n, StepStarted { step: 1 }));
        first.chain([event(2, 1, started)]).chain(second).chain([event(2, 40, RunCompleted::default())]).collect()
    }

    /// Reads as a subscriber does, up to the newest event: from the topic, or else from the log. Returns the events.
    fn read(topic: &Topic, log: &[Event], cursor: &mut EventId) -> Vec<Event> {
        let mut received = Vec::new();
        loop {
            let known = topic.watch().borrow().next(*cursor);
            let events = match known {
                Some(Next::Events(slice)) => slice.events().cloned().collect(),
                Some(Next::CaughtUp | Next::Ended) => return received,
                None => following(log.to_vec(), *cursor),
            };
            let Some(last) = events.last() else {
                topic.anchor(LogPosition { id: *cursor, block: Block::None });
                return received;
            };
            *cursor = last.id;
            received.extend(events);
        }
    }

    proptest! {
        /// Each step writes events to the log, and pushes them once, twice or never. A subscriber reads after some steps.
        #[test]
        fn a_subscriber_misses_no_event_and_gets_none_twice(
            steps in proptest::collection::vec((1..6_usize, 0..3_u8, any::<bool>()), 0..40),
            start in 1..79_usize,
        ) {
            let (topic, log) = (topic(), log());
            let (mut written, mut cursor, mut received) = (start, log[start - 1].id, Vec::new());
            for (count, copies, reads) in steps {
                let push = &log[written..log.len().min(written + count)];
                written += push.len();
                (0..copies).for_each(|_| topic.extend(push.to_vec()));
                if reads {
                    received.extend(read(&topic, &log[..written], &mut cursor));
                }
            }
            // The look-up of followed runs finds what no push brought.
            topic.restart();
            received.extend(read(&topic, &log, &mut cursor));
            // An event that a later attempt supersedes may come or not.
            let valid = |events: &[Event]| -> Vec<EventId> {
                let ids = events.iter().map(|event| event.id);
                ids.filter(|id| id.attempt == 2 || *id <= EventId::new(1, 30)).collect()
            };
            prop_assert_eq!(valid(&received), valid(&log[start..]));
            prop_assert!(received.is_sorted_by_key(|event| event.id));
        }
    }
}
