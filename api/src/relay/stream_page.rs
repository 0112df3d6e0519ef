//! Pages of a run's log: events without frames, for a protocol whose clients ask for one page after the other.

use holdfast_shared::{event::Event, event_id::EventId, run::Run};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Relay,
    poll::PollResult,
    replay::ReplayResult,
    subscriber::{StreamGauge, Subscriber, TruncatedStream, WakeReason},
};
use crate::problem::Problem;

/// Size of a page as JSON; the last event may exceed it.
const PAGE_BYTES: usize = 1024 * 1024;

/// About how many bytes an event as JSON is longer than its line.
const OVERHEAD: usize = 128;

/// The events after a cursor, as many as fit.
pub struct StreamPage {
    pub events: Vec<Event>,
    /// The last event of the page; the cursor if the page is empty.
    pub last: EventId,
    /// Whether the run had no further events at that moment.
    pub up_to_date: bool,
    /// Whether the run will never have further events.
    pub closed: bool,
    bytes: usize,
}

impl StreamPage {
    /// Returns an empty page after an event.
    pub const fn empty_after(cursor: EventId) -> Self {
        Self { events: Vec::new(), last: cursor, up_to_date: false, closed: false, bytes: 0 }
    }

    /// Returns the empty page after a run's last event.
    pub fn end_after(last: EventId) -> Self {
        Self { up_to_date: true, closed: true, ..Self::empty_after(last) }
    }

    /// Appends the events that fit. Returns whether the page has room for more.
    fn take(&mut self, events: impl IntoIterator<Item = Event>) -> bool {
        for event in events {
            if self.bytes >= PAGE_BYTES {
                return false;
            }
            self.bytes += event.line().len() + OVERHEAD;
            self.last = event.id;
            self.closed = event.is_terminal();
            self.events.push(event);
        }
        self.up_to_date = self.closed;
        !self.closed && self.bytes < PAGE_BYTES
    }

    fn is_unchanged(&self) -> bool {
        self.events.is_empty() && !self.closed
    }
}

impl Relay {
    /// Returns the page of events after a cursor.
    pub async fn stream_page(&self, run_id: Uuid, cursor: EventId) -> Result<StreamPage, Problem> {
        let mut page = StreamPage::empty_after(cursor);
        loop {
            match self.replay(run_id, page.last).await? {
                ReplayResult::Events(events) => {
                    if !page.take(events) {
                        return Ok(page);
                    }
                }
                ReplayResult::CaughtUp => return Ok(StreamPage { up_to_date: true, ..page }),
                ReplayResult::Finished => return Ok(StreamPage { up_to_date: true, closed: true, ..page }),
                ReplayResult::ForeignCursor => return Err(Problem::foreign_event_id(cursor, run_id)),
                ReplayResult::EventsGone => return Err(Problem::events_gone(run_id)),
                ReplayResult::NoSuchRun => return Err(Problem::run_not_found(run_id)),
            }
        }
    }

    /// Returns the empty page after the newest event. It does not read the events that the database knew of with the
    /// run.
    pub async fn tail(&self, run: &Run) -> Result<StreamPage, Problem> {
        let mut page = self.stream_page(run.id, run.last_event_id).await?;
        while !page.up_to_date {
            page = self.stream_page(run.id, page.last).await?;
        }
        Ok(StreamPage { events: Vec::new(), ..page })
    }
}

impl Subscriber {
    /// Returns the page after the cursor without waiting, and moves the cursor to its end.
    pub async fn next_page(&mut self) -> Result<StreamPage, TruncatedStream> {
        let mut page = StreamPage::empty_after(self.cursor);
        let mut events = self.unsent_events();
        self.shared_read = None;
        while page.take(std::mem::take(&mut events)) {
            match self.poll(page.last).await {
                PollResult::Events(more) => events = more,
                PollResult::CaughtUp => page.up_to_date = true,
                PollResult::Ended => (page.up_to_date, page.closed) = (true, true),
                PollResult::Gone if page.is_unchanged() => return Err(TruncatedStream),
                PollResult::Gone | PollResult::Unavailable => {}
            }
            if events.is_empty() {
                break;
            }
        }
        self.cursor = page.last;
        self.relay.relayed.increment(page.events.len() as u64);
        Ok(page)
    }

    /// Returns the next page that is not empty; waits for it until the deadline.
    pub async fn next_page_by(&mut self, deadline: Instant) -> Result<StreamPage, Problem> {
        let _gauge = StreamGauge::new();
        loop {
            let Ok(page) = self.next_page().await else {
                // Waiting cannot help, and the database knows the reason.
                return self.relay.stream_page(self.handle.topic.run_id, self.cursor).await;
            };
            if !page.is_unchanged() {
                return Ok(page);
            }
            match self.wait_until(deadline).await {
                Some(WakeReason::Changed) => {}
                // The API has not begun to answer, so it sends no heartbeat.
                Some(WakeReason::HeartbeatDue) => self.reset_heartbeat(),
                Some(WakeReason::Draining) | None if page.up_to_date => return Ok(page),
                Some(WakeReason::Draining) | None => return Err(Problem::database_away()),
            }
        }
    }

    /// Waits until there may be an event after the cursor, or returns `None` at the deadline.
    pub(super) async fn wait_until(&mut self, deadline: Instant) -> Option<WakeReason> {
        tokio::time::timeout_at(deadline, self.wait(self.cursor)).await.ok()
    }
}
