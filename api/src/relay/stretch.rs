//! Stretches of a run's log: its events as they are, for a protocol whose clients ask for one piece after the other.

use holdfast_shared::{event::Event, event_id::EventId, run::Run};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Relay,
    follower::{Aborted, Counted, Follower, Woken},
    look::Look,
    replay::Replayed,
};
use crate::problem::Problem;

/// Size of a stretch as JSON, give or take an event.
const STRETCH_BYTES: usize = 1024 * 1024;

/// What an event as JSON is longer than its line, about.
const OVERHEAD: usize = 128;

/// The events behind a cursor, as many as there are or as fit.
pub struct Stretch {
    pub events: Vec<Event>,
    /// The last of them; without any, the cursor.
    pub last: EventId,
    /// Whether there were no more at that moment.
    pub up_to_date: bool,
    /// Whether there will never be more.
    pub closed: bool,
    bytes: usize,
}

impl Stretch {
    /// The empty one behind an event.
    pub const fn behind(cursor: EventId) -> Self {
        Self { events: Vec::new(), last: cursor, up_to_date: false, closed: false, bytes: 0 }
    }

    /// The empty one behind a run's last event.
    pub fn at_the_end(last: EventId) -> Self {
        Self { up_to_date: true, closed: true, ..Self::behind(last) }
    }

    /// Takes the events that fit; tells whether more can follow.
    fn take(&mut self, events: impl IntoIterator<Item = Event>) -> bool {
        for event in events {
            if self.bytes >= STRETCH_BYTES {
                return false;
            }
            self.bytes += event.line().len() + OVERHEAD;
            self.last = event.id;
            self.closed = event.is_terminal();
            self.events.push(event);
        }
        self.up_to_date = self.closed;
        !self.closed && self.bytes < STRETCH_BYTES
    }

    fn is_silent(&self) -> bool {
        self.events.is_empty() && !self.closed
    }
}

impl Relay {
    /// What there is behind a cursor.
    pub async fn stretch(&self, run_id: Uuid, cursor: EventId) -> Result<Stretch, Problem> {
        let mut stretch = Stretch::behind(cursor);
        loop {
            match self.replay(run_id, stretch.last).await? {
                Replayed::Events(events) => {
                    if !stretch.take(events) {
                        return Ok(stretch);
                    }
                }
                Replayed::Nothing => return Ok(Stretch { up_to_date: true, ..stretch }),
                Replayed::Finished => return Ok(Stretch { up_to_date: true, closed: true, ..stretch }),
                Replayed::NeverIssued => return Err(Problem::foreign_event_id(cursor, run_id)),
                Replayed::Removed => return Err(Problem::events_gone(run_id)),
                Replayed::NoSuchRun => return Err(Problem::run_not_found(run_id)),
            }
        }
    }

    /// The empty stretch behind the newest event. What the database has already need not be read for that.
    pub async fn tail(&self, run: &Run) -> Result<Stretch, Problem> {
        let mut stretch = self.stretch(run.id, run.last_event_id).await?;
        while !stretch.up_to_date {
            stretch = self.stretch(run.id, stretch.last).await?;
        }
        Ok(Stretch { events: Vec::new(), ..stretch })
    }
}

impl Follower {
    /// What there is behind the cursor, which moves along.
    pub async fn read_on(&mut self) -> Result<Stretch, Aborted> {
        let mut stretch = Stretch::behind(self.cursor);
        let mut events = self.unsent();
        self.reading = None;
        while stretch.take(std::mem::take(&mut events)) {
            match self.look(stretch.last).await {
                Look::Events(more) => events = more,
                Look::CaughtUp => stretch.up_to_date = true,
                Look::Ended => (stretch.up_to_date, stretch.closed) = (true, true),
                Look::Gone if stretch.is_silent() => return Err(Aborted),
                Look::Gone | Look::Away => {}
            }
            if events.is_empty() {
                break;
            }
        }
        self.cursor = stretch.last;
        self.relay.relayed.increment(stretch.events.len() as u64);
        Ok(stretch)
    }

    /// The same, but waits for it: until there is something, or the time is over.
    pub async fn read_on_by(&mut self, until: Instant) -> Result<Stretch, Problem> {
        let _counted = Counted::new();
        loop {
            let Ok(stretch) = self.read_on().await else {
                // There is nothing to wait for; the database knows why.
                return self.relay.stretch(self.watch.feed.run_id, self.cursor).await;
            };
            if !stretch.is_silent() {
                return Ok(stretch);
            }
            match self.wait_by(until).await {
                Some(Woken::ToLook) => {}
                // Nobody is sent anything yet.
                Some(Woken::HeartbeatDue) => self.beaten(),
                Some(Woken::Draining) | None if stretch.up_to_date => return Ok(stretch),
                Some(Woken::Draining) | None => return Err(Problem::database_away()),
            }
        }
    }

    /// Waits until there may be something behind the cursor; `None` if the time is over before.
    pub(super) async fn wait_by(&mut self, until: Instant) -> Option<Woken> {
        tokio::time::timeout_at(until, self.wait(self.cursor)).await.ok()
    }
}
