//! Live frames: one page of a run's log after the other, for a protocol whose connections end before the run does.

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::time::Instant;

use super::{
    stream_page::StreamPage,
    subscriber::{StreamGauge, Subscriber, TruncatedStream, WakeReason},
};
use crate::wire;

/// A connection that receives pages of events.
pub struct LiveFrames {
    subscriber: Subscriber,
    deadline: Instant,
    /// Whether the client knows that it has all events so far.
    reported_up_to_date: bool,
    is_finished: bool,
    _gauge: StreamGauge,
}

impl LiveFrames {
    /// Streams until `deadline`, or to the end of the run.
    pub fn new(subscriber: Subscriber, deadline: Instant) -> Self {
        Self { subscriber, deadline, reported_up_to_date: false, is_finished: false, _gauge: StreamGauge::new() }
    }

    /// Returns the frames of the pages. Unlike other streams, this one ends cleanly in mid-run, between two pages. Its
    /// clients accept only `streamClosed` as the end, and reconnect by themselves.
    pub fn into_stream(
        self,
        encode: impl Fn(&StreamPage) -> Bytes,
    ) -> impl Stream<Item = Result<Bytes, TruncatedStream>> {
        stream::unfold((self, encode), async |(mut live, encode)| {
            let frames = live.next(&encode).await?;
            Some((frames, (live, encode)))
        })
    }

    async fn next(&mut self, encode: impl Fn(&StreamPage) -> Bytes) -> Option<Result<Bytes, TruncatedStream>> {
        while !self.is_finished {
            let page = match self.subscriber.next_page().await {
                Ok(page) => page,
                Err(aborted) => {
                    self.is_finished = true;
                    return Some(Err(aborted));
                }
            };
            let is_news = !page.events.is_empty() || page.closed || page.up_to_date && !self.reported_up_to_date;
            if is_news {
                self.reported_up_to_date = page.up_to_date;
                self.is_finished = page.closed || Instant::now() >= self.deadline;
                self.subscriber.reset_heartbeat();
                return Some(Ok(encode(&page)));
            }
            match self.subscriber.wait_until(self.deadline).await {
                Some(WakeReason::Changed) => {}
                Some(WakeReason::HeartbeatDue) => {
                    self.subscriber.reset_heartbeat();
                    return Some(Ok(Bytes::from_static(wire::HEARTBEAT)));
                }
                Some(WakeReason::Draining) | None => return None,
            }
        }
        None
    }
}
