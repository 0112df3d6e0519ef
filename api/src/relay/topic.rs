//! A topic: the newest events of one followed run, shared by all its subscribers in this process, and the
//! process's memory of the run. All of it is one state behind one lock, which wakes the subscribers when it changes.

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
use crate::wire::{EarlierPlan, LogPosition};

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
    /// The open plan of an earlier run, once it was read.
    earlier_plan: Option<EarlierPlan>,
    /// Whether the process receives the pushes of the run.
    is_subscribed: bool,
}

/// The part of the run's log that a topic has.
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
    /// Returns the continuation after a cursor, or `None` if the subscriber must read the log.
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

    /// Returns whether the topic has a subscriber.
    pub fn is_followed(&self) -> bool {
        self.state.receiver_count() > 0
    }

    /// Returns the read of the subscribers at a position.
    pub fn shared_read(&self, position: LogPosition) -> Arc<SharedRead> {
        self.shared_reads.at(position)
    }

    /// Notes that a subscriber has found the end of the log, unless a push has brought a newer one.
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

    pub fn earlier_plan(&self) -> Option<EarlierPlan> {
        self.state.borrow().earlier_plan.clone()
    }

    pub fn set_earlier_plan(&self, plan: EarlierPlan) {
        self.edit(|state| state.earlier_plan = Some(plan));
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
mod tests;
