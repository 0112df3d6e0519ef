//! A follower: one client's cursor in a run, and the stream of frames that it is sent.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::{agent::StreamMode, event::Event, event_id::EventId};
use tokio::{sync::watch, time::Instant};

use super::{Relay, Watch, feed::Next, replay::Replayed};
use crate::wire::{self, native};

/// Frames that are encoded at a time while a client catches up, in bytes.
const REPLAY_BYTES: usize = 64 * 1024;

/// The stream is broken off on purpose, so that the client comes back: a clean end would mean that the run has ended.
#[derive(Debug, thiserror::Error)]
#[error("the stream is broken off; resume it with the last event id")]
pub struct Aborted;

/// A client that follows a run.
pub struct Follower {
    relay: Arc<Relay>,
    watch: Watch,
    changes: watch::Receiver<u64>,
    cursor: EventId,
    /// Replayed events that are to be sent first.
    replayed: std::vec::IntoIter<Event>,
    finished: bool,
    /// When a heartbeat is due, unless something else is sent before.
    heartbeat_at: Instant,
}

impl Follower {
    pub(super) fn new(relay: Arc<Relay>, watch: Watch, cursor: EventId, replayed: Vec<Event>) -> Self {
        let changes = watch.feed.changes();
        let heartbeat_at = Instant::now() + relay.heartbeat;
        Self { relay, watch, changes, cursor, replayed: replayed.into_iter(), finished: false, heartbeat_at }
    }

    /// The frames of the native wire, from the cursor on. Ends cleanly only after the terminal event.
    pub fn into_frames(self, mode: StreamMode) -> impl Stream<Item = Result<Bytes, Aborted>> + Send {
        let counted = Counted::new();
        let first = stream::iter([Ok(Bytes::from_static(wire::RETRY))]);
        let rest = stream::unfold((self, counted), move |(mut follower, counted)| async move {
            let frames = follower.next_shown(mode).await?;
            follower.heartbeat_at = Instant::now() + follower.relay.heartbeat;
            Some((frames, (follower, counted)))
        });
        futures::StreamExt::chain(first, rest)
    }

    /// Waits for the end of the run, at most `patience`.
    pub async fn ended(mut self, patience: Duration) {
        let end = async { while let Some(Ok(_)) = self.next_frames().await {} };
        // At the end of the patience the run is shown as it is.
        let _ = tokio::time::timeout(patience, end).await;
    }

    /// The next frames that this mode shows.
    async fn next_shown(&mut self, mode: StreamMode) -> Option<Result<Bytes, Aborted>> {
        loop {
            let frames = match self.next_frames().await? {
                Ok(frames) => frames,
                Err(aborted) => return Some(Err(aborted)),
            };
            if mode == StreamMode::Events || frames == wire::HEARTBEAT {
                return Some(Ok(frames));
            }
            let shown = native::only_messages(&frames);
            if !shown.is_empty() {
                return Some(Ok(shown));
            }
        }
    }

    async fn next_frames(&mut self) -> Option<Result<Bytes, Aborted>> {
        loop {
            if self.finished {
                return None;
            }
            if let Some(frames) = self.replayed_frames() {
                return Some(Ok(frames));
            }
            // Order matters: what changes from here on wakes the wait below.
            let version = *self.changes.borrow_and_update();
            match self.watch.feed.after(self.cursor) {
                Next::Frames { frames, last, events, ended } => {
                    self.cursor = last;
                    self.finished = ended;
                    metrics::counter!("holdfast_events_relayed_total").increment(events as u64);
                    return Some(Ok(frames));
                }
                Next::Ended => return None,
                Next::CaughtUp => {}
                Next::Elsewhere => match self.relay.replay(self.watch.feed.run_id, self.cursor).await {
                    Ok(Replayed::Events(events)) => {
                        self.replayed = events.into_iter();
                        continue;
                    }
                    Ok(Replayed::Nothing) => self.watch.feed.anchor(self.cursor, version),
                    Ok(Replayed::Finished) => return None,
                    // The run, or its events, were removed under the client.
                    Ok(Replayed::NeverIssued | Replayed::Removed | Replayed::NoSuchRun) => {
                        return Some(self.abort().await);
                    }
                    Err(error) => {
                        tracing::debug!(run.id = %self.watch.feed.run_id, error = &error as &dyn Error, "a stream waits for the database");
                    }
                },
            }
            if let Some(frames) = self.wait().await {
                return Some(frames);
            }
        }
    }

    /// Waits for a change; gives a heartbeat when there is none for long.
    async fn wait(&mut self) -> Option<Result<Bytes, Aborted>> {
        let drain = self.relay.drain.clone();
        // A follower that the feed does not serve must look by itself.
        let look = match self.watch.feed.tail() == Some(self.cursor) {
            true => self.heartbeat_at,
            false => self.heartbeat_at.min(Instant::now() + self.relay.look),
        };
        tokio::select! {
            _ = self.changes.changed() => None,
            () = tokio::time::sleep_until(look) => (Instant::now() >= self.heartbeat_at).then(|| Ok(Bytes::from_static(wire::HEARTBEAT))),
            () = drain.cancelled() => Some(self.abort().await),
        }
    }

    async fn abort(&mut self) -> Result<Bytes, Aborted> {
        self.finished = true;
        // Frames of the poll that yields an error are discarded, so let them out first.
        tokio::task::yield_now().await;
        Err(Aborted)
    }

    fn replayed_frames(&mut self) -> Option<Bytes> {
        let mut frames = Vec::new();
        let mut count = 0;
        for event in self.replayed.by_ref() {
            native::frame(&mut frames, self.watch.feed.run_id, &event);
            self.cursor = event.id;
            self.finished |= event.is_terminal();
            count += 1;
            if frames.len() >= REPLAY_BYTES {
                break;
            }
        }
        metrics::counter!("holdfast_events_relayed_total").increment(count);
        (!frames.is_empty()).then(|| frames.into())
    }
}

/// Counts a stream as open.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!("holdfast_streams_open").increment(1);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_streams_open").decrement(1);
    }
}
