//! Pages of a run's log. A client asks for one after the other, or receives them on a connection that ends before the
//! run does.

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::{event_id::EventId, run::Run};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    app::App,
    problem::Problem,
    protocols::durable_streams::wire::DurablePage,
    relay::{Next, ReadError, StreamGauge, Subscriber, TruncatedStream, WakeReason},
    wire,
};

/// Returns the page of events after a cursor.
pub async fn page_after(app: &App, run_id: Uuid, cursor: EventId) -> Result<DurablePage, Problem> {
    let (mut page, mut log) = (DurablePage::empty_after(cursor), app.relay().pages(run_id, cursor));
    while let Some(events) = log.next().await? {
        for event in events {
            if page.is_full() {
                return Ok(page);
            }
            page.push(event);
        }
    }
    Ok(DurablePage { up_to_date: true, closed: log.has_ended, ..page })
}

/// Returns the empty page after the newest event. It does not read the events that the database knew of with the run.
pub async fn tail(app: &App, run: &Run) -> Result<DurablePage, Problem> {
    let mut log = app.relay().pages(run.id, run.last_event_id);
    while log.next().await?.is_some() {}
    Ok(DurablePage { up_to_date: true, closed: log.has_ended, ..DurablePage::empty_after(log.last) })
}

/// One client's pages of a run.
pub struct LivePages {
    subscriber: Subscriber,
    deadline: Instant,
    heartbeat_at: Instant,
    /// Whether the client knows that it has all events so far.
    reported_up_to_date: bool,
    is_finished: bool,
    _gauge: StreamGauge,
}

impl LivePages {
    /// Starts at the subscriber's position, and ends at `deadline` or with the run.
    pub fn new(subscriber: Subscriber, deadline: Instant) -> Self {
        let (heartbeat_at, _gauge) = (subscriber.next_heartbeat(), StreamGauge::new());
        Self { subscriber, deadline, heartbeat_at, reported_up_to_date: false, is_finished: false, _gauge }
    }

    /// Returns the next page that is not empty; waits for it until the deadline.
    pub async fn next_page(mut self, app: &App) -> Result<DurablePage, Problem> {
        loop {
            let Ok(page) = self.available().await else {
                // Waiting cannot help, and the database knows the reason.
                return page_after(app, self.subscriber.topic.run_id, self.subscriber.position().id).await;
            };
            if !page.is_unchanged() {
                return Ok(page);
            }
            match self.subscriber.wait(self.deadline).await {
                WakeReason::Changed => {}
                WakeReason::TimedOut | WakeReason::Draining if page.up_to_date => return Ok(page),
                WakeReason::TimedOut | WakeReason::Draining => return Err(Problem::database_away()),
            }
        }
    }

    /// Returns the frames of the pages. Unlike other streams, this one ends cleanly in mid-run, between two pages. Its
    /// clients accept only `streamClosed` as the end, and reconnect by themselves.
    pub fn into_frames(
        self,
        encode: impl Fn(&DurablePage) -> Vec<u8>,
    ) -> impl Stream<Item = Result<Bytes, TruncatedStream>> {
        stream::unfold((self, encode), async |(mut pages, encode)| {
            let frames = pages.next_frames(&encode).await?;
            Some((frames, (pages, encode)))
        })
    }

    async fn next_frames(
        &mut self,
        encode: impl Fn(&DurablePage) -> Vec<u8>,
    ) -> Option<Result<Bytes, TruncatedStream>> {
        while !self.is_finished {
            let page = match self.available().await {
                Ok(page) => page,
                Err(truncated) => {
                    self.is_finished = true;
                    return Some(Err(truncated));
                }
            };
            if !page.is_unchanged() || page.up_to_date && !self.reported_up_to_date {
                self.reported_up_to_date = page.up_to_date;
                self.is_finished = page.closed || Instant::now() >= self.deadline;
                self.heartbeat_at = self.subscriber.next_heartbeat();
                return Some(Ok(encode(&page).into()));
            }
            match self.subscriber.wait(self.heartbeat_at.min(self.deadline)).await {
                WakeReason::Changed => {}
                WakeReason::TimedOut if Instant::now() >= self.deadline => return None,
                WakeReason::TimedOut => {
                    self.heartbeat_at = self.subscriber.next_heartbeat();
                    return Some(Ok(Bytes::from_static(wire::HEARTBEAT)));
                }
                WakeReason::Draining => return None,
            }
        }
        None
    }

    /// Returns the events that are there already. Fails if the run or its events were deleted.
    async fn available(&mut self) -> Result<DurablePage, TruncatedStream> {
        let mut page = DurablePage::empty_after(self.subscriber.position().id);
        while !page.is_full() && !page.closed {
            match self.subscriber.next().await {
                Ok(Next::Events(slice)) => slice.events().cloned().for_each(|event| page.push(event)),
                Ok(Next::CaughtUp) => {
                    page.up_to_date = true;
                    break;
                }
                Ok(Next::Ended) => (page.up_to_date, page.closed) = (true, true),
                // The database is away, so the page cannot tell whether further events exist.
                Err(ReadError::Storage(_)) => break,
                Err(_) if page.is_unchanged() => return Err(TruncatedStream),
                Err(_) => break,
            }
        }
        self.subscriber.note_sent(page.events.len());
        Ok(page)
    }
}
