//! A subscriber: one client's position in a run's log.

use std::{collections::VecDeque, pin::Pin, sync::Arc, time::Duration};

use holdfast_shared::{
    event::{Event, EventBody, EventKind, ExecutedBy},
    event_id::EventId,
    run::RunError,
};
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    batch::Slice,
    log_reader::{LogReader, Next, ReadError},
    shared_read::SharedRead,
    topic::{Topic, TopicState},
};
use crate::{
    streams::OpenStream,
    wire::{Block, LogPosition},
};

/// A client that follows a run. The relay drops a topic after its last subscriber.
pub struct Subscriber {
    pub topic: Arc<Topic>,
    pub context: Arc<SubscriberContext>,
    /// The permit for this stream.
    pub permit: OpenStream,
    changes: watch::Receiver<TopicState>,
    position: LogPosition,
    /// Whether the log has the event at the position. A client may name another one, and no topic must start there.
    is_proven: bool,
    /// Slices that the subscriber has read, and returns before it asks the topic.
    unsent: VecDeque<Slice>,
    /// Goes off when a wait ends, or earlier.
    alarm: Pin<Box<Sleep>>,
}

/// The parts that all subscribers of a process share.
pub struct SubscriberContext {
    pub reader: LogReader,
    /// The longest pause between two frames of a stream.
    pub heartbeat: Duration,
    /// The interval at which a subscriber reads the log by itself if its topic cannot serve it.
    pub poll_interval: Duration,
    pub drain: CancellationToken,
    /// Counts the events that subscribers have sent to clients.
    pub relayed: metrics::Counter,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// The topic has changed, or the subscriber must read the log by itself.
    Changed,
    TimedOut,
    Draining,
}

impl Subscriber {
    /// Starts at a position.
    pub fn new(topic: Arc<Topic>, context: Arc<SubscriberContext>, permit: OpenStream, position: LogPosition) -> Self {
        let (changes, alarm) = (topic.watch(), Box::pin(sleep_until(Instant::now() + context.heartbeat)));
        Self { topic, context, permit, changes, position, is_proven: true, unsent: VecDeque::new(), alarm }
    }

    /// Starts with the next events after the position.
    pub fn with_events(self, events: Vec<Event>) -> Self {
        let unsent = SharedRead::of(self.position, events).slices();
        Self { unsent, ..self }
    }

    /// Returns the position after the last returned event.
    pub const fn position(&self) -> LogPosition {
        self.position
    }

    /// Moves to the position after the event `cursor`. Returns whether the client misses events, now or later.
    pub async fn seek(&mut self, cursor: EventId) -> Result<bool, ReadError> {
        if cursor != EventId::ORIGIN {
            // The event itself tells in which block the next one begins.
            self.position = LogPosition { id: cursor.before(), block: Block::None };
            self.is_proven = false;
            match self.fill().await {
                Ok(Next::Events(())) if self.unsent[0].first().id == cursor => self.skip_first(),
                Err(ReadError::Storage(error)) => return Err(error.into()),
                // The log never had the event, or lost it with a worker: an attempt that supersedes it may follow.
                Ok(_) | Err(_) => {
                    self.unsent.clear();
                    self.position = LogPosition { id: cursor, block: Block::None };
                }
            }
        }
        Ok(!matches!(self.fill().await?, Next::Ended))
    }

    /// Moves to the position after the first unsent event.
    fn skip_first(&mut self) {
        if let Some(slice) = self.unsent.pop_front() {
            self.pass(slice.first());
            slice.without_first().into_iter().for_each(|rest| self.unsent.push_front(rest));
        }
    }

    fn pass(&mut self, event: &Event) {
        (self.position, self.is_proven) = (LogPosition::after(event), true);
    }

    /// Returns the next events without waiting for them, and moves past them.
    pub async fn next(&mut self) -> Result<Next<Slice>, ReadError> {
        Ok(match self.fill().await? {
            Next::Events(()) => {
                let slice = self.unsent.pop_front().expect("fill has found a slice");
                self.pass(slice.last());
                Next::Events(slice)
            }
            Next::CaughtUp => Next::CaughtUp,
            Next::Ended => Next::Ended,
        })
    }

    /// Gets the next events from the topic, or else from the log, unless there are unsent ones.
    async fn fill(&mut self) -> Result<Next<()>, ReadError> {
        if !self.unsent.is_empty() {
            return Ok(Next::Events(()));
        }
        // Order matters: a change after this line wakes the next wait.
        let next = self.changes.borrow_and_update().next(self.position.id);
        match next {
            Some(Next::Events(slice)) => {
                self.unsent.push_back(slice);
                Ok(Next::Events(()))
            }
            Some(Next::CaughtUp) => Ok(Next::CaughtUp),
            Some(Next::Ended) => Ok(Next::Ended),
            // Boxed, because most streams only wait: an idle one holds no memory for a read.
            None => Box::pin(self.read()).await,
        }
    }

    /// Reads the log, together with all subscribers at this position.
    async fn read(&mut self) -> Result<Next<()>, ReadError> {
        let (run_id, position) = (self.topic.run_id, self.position);
        let shared_read = self.topic.shared_read(position);
        let next = shared_read.fill(position, self.context.reader.read(run_id, position.id)).await?;
        match next {
            Next::Events(()) => self.unsent = shared_read.slices(),
            Next::CaughtUp if self.is_proven => self.topic.anchor(position),
            Next::CaughtUp | Next::Ended => {}
        }
        Ok(next)
    }

    /// Waits until there may be an event after the position, up to `until`.
    pub async fn wait(&mut self, until: Instant) -> WakeReason {
        // Order matters: a subscriber that passes this check before the drain begins is woken by it.
        if self.context.drain.is_cancelled() {
            return WakeReason::Draining;
        }
        let is_served = self.topic.live_tail() == Some(self.position.id);
        let wake_at = if is_served { until } else { until.min(Instant::now() + self.context.poll_interval) };
        // An alarm that goes off too early is set again, because setting it for every event would cost more.
        if wake_at < self.alarm.deadline() || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(wake_at);
        }
        // Order matters: the alarm comes first, because events that a client's view does not show must not delay its
        // heartbeat.
        tokio::select! {
            biased;
            () = &mut self.alarm => if Instant::now() >= until { WakeReason::TimedOut } else { WakeReason::Changed },
            _ = self.changes.changed() => WakeReason::Changed,
        }
    }

    /// Counts events as sent, and drops batches if their encodings have made the buffer too large.
    pub fn note_sent(&self, events: usize) {
        self.context.relayed.increment(events as u64);
        self.topic.shrink();
    }

    /// Waits up to `max_wait` for the first output or the end, and returns the error if the run failed without output.
    /// Returns `None` at once for a reconnecting client, because its first request has received an answer. `after` is the last event
    /// that earlier responses to the client have.
    pub async fn failure_before_output(&mut self, after: EventId, max_wait: Duration) -> Option<RunError> {
        if self.position.id != EventId::ORIGIN {
            return None;
        }
        let is_first = |event: &Event| event.is_terminal() || is_output(event.kind()) && !is_of_client(event);
        let first = self.find_event(max_wait, |event| event.id > after && is_first(event));
        match first.await?.body() {
            EventBody::RunFailed(end) => Some(end.error),
            _ => None,
        }
    }

    /// Waits up to `max_wait` for the end of the run.
    pub async fn await_end(mut self, max_wait: Duration) {
        // After a time-out, the caller returns the run as it is.
        let _ = self.find_event(max_wait, Event::is_terminal).await;
    }

    /// Waits up to `max_wait` for the first event that matches, and then returns to the position.
    async fn find_event(&mut self, max_wait: Duration, matches: impl Fn(&Event) -> bool) -> Option<Event> {
        let (position, is_proven, unsent) = (self.position, self.is_proven, self.unsent.clone());
        let until = Instant::now() + max_wait;
        let search = async {
            loop {
                match self.next().await {
                    Ok(Next::Events(slice)) => match slice.events().find(|event| matches(event)) {
                        Some(found) => return Some(found.clone()),
                        None => continue,
                    },
                    Ok(Next::CaughtUp) | Err(ReadError::Storage(_)) => {}
                    Ok(Next::Ended) | Err(_) => return None,
                }
                if self.wait(until).await != WakeReason::Changed {
                    return None;
                }
            }
        };
        // A read has its own time-out, which may be longer.
        let found = timeout(max_wait, search).await.ok().flatten();
        (self.position, self.is_proven, self.unsent) = (position, is_proven, unsent);
        found
    }
}

/// Returns whether a reader can see an event of this kind.
/// Returns whether an event repeats what a client has sent: the result of a call.
fn is_of_client(event: &Event) -> bool {
    matches!(event.body(), EventBody::ToolCallCompleted(call) if call.by == Some(ExecutedBy::Client))
}

const fn is_output(kind: EventKind) -> bool {
    match kind {
        EventKind::MessageDelta
        | EventKind::MessageCompleted
        | EventKind::ReasoningDelta
        | EventKind::ToolCallDelta
        | EventKind::ToolCallStarted
        | EventKind::ToolCallCompleted
        | EventKind::ApprovalRequested
        | EventKind::PlanCreated
        | EventKind::PlanUpdated
        | EventKind::PlanReviewed
        | EventKind::PlanStepStarted
        | EventKind::PlanStepCompleted
        | EventKind::QuestionAsked
        | EventKind::SubagentStarted
        | EventKind::SubagentCompleted => true,
        EventKind::RunQueued
        | EventKind::MessageSteered
        | EventKind::AttemptStarted
        | EventKind::StepStarted
        | EventKind::StepCompleted
        | EventKind::ApprovalResolved
        | EventKind::AgentState
        | EventKind::ContextUsage
        | EventKind::DocumentProgress
        | EventKind::ContextRetrieved
        | EventKind::CitationAdded
        | EventKind::CitationDropped
        | EventKind::WarningRaised
        | EventKind::ContextShifted
        | EventKind::FocusChanged
        | EventKind::OntologyLoaded
        | EventKind::TemplateRequested
        | EventKind::TemplateSuggested
        | EventKind::MemoryTold
        | EventKind::RunCompleted
        | EventKind::RunFailed
        | EventKind::RunCancelled
        | EventKind::Unknown => false,
    }
}
