//! Live frames: stretch after stretch of a run, for a protocol whose connections end before the run does.

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::time::Instant;

use super::{
    follower::{Aborted, Counted, Follower, Woken},
    stretch::Stretch,
};
use crate::wire;

/// A connection that is sent stretches.
pub struct LiveFrames {
    follower: Follower,
    until: Instant,
    /// Whether the client knows that it has everything.
    told: bool,
    over: bool,
    _counted: Counted,
}

impl LiveFrames {
    /// Goes on until then, or to the end of the run.
    pub fn new(follower: Follower, until: Instant) -> Self {
        Self { follower, until, told: false, over: false, _counted: Counted::new() }
    }

    /// The frames of the stretches. Unlike other streams it ends cleanly in mid-run, between two stretches: its clients
    /// take nothing but `streamClosed` for the end, and come back by themselves.
    pub fn into_stream(self, encode: impl Fn(&Stretch) -> Bytes) -> impl Stream<Item = Result<Bytes, Aborted>> {
        stream::unfold((self, encode), async |(mut live, encode)| {
            let frames = live.next(&encode).await?;
            Some((frames, (live, encode)))
        })
    }

    async fn next(&mut self, encode: impl Fn(&Stretch) -> Bytes) -> Option<Result<Bytes, Aborted>> {
        while !self.over {
            let stretch = match self.follower.read_on().await {
                Ok(stretch) => stretch,
                Err(aborted) => {
                    self.over = true;
                    return Some(Err(aborted));
                }
            };
            let is_news = !stretch.events.is_empty() || stretch.closed || stretch.up_to_date && !self.told;
            if is_news {
                self.told = stretch.up_to_date;
                self.over = stretch.closed || Instant::now() >= self.until;
                self.follower.beaten();
                return Some(Ok(encode(&stretch)));
            }
            match self.follower.wait_by(self.until).await {
                Some(Woken::ToLook) => {}
                Some(Woken::HeartbeatDue) => {
                    self.follower.beaten();
                    return Some(Ok(Bytes::from_static(wire::HEARTBEAT)));
                }
                Some(Woken::Draining) | None => return None,
            }
        }
        None
    }
}
