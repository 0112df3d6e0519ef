//! Ends a run whose client has disconnected before the end of its response.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use holdfast_shared::config::OnDisconnect;
use uuid::Uuid;

use crate::{app::App, relay::TruncatedStream};

/// The time between the disconnect of a wire's client and the cancel of its run, in which the client may come back.
pub const GRACE: Duration = Duration::from_secs(2);

/// Cancels a run when it is dropped, unless the response has ended.
pub struct DisconnectGuard(Option<GuardedRun>);

struct GuardedRun {
    app: Arc<App>,
    owner: String,
    run_id: Uuid,
    /// The time between the disconnect and the cancel.
    grace: Duration,
}

impl DisconnectGuard {
    pub fn new(app: &Arc<App>, owner: &str, run_id: Uuid, grace: Duration) -> Self {
        Self(Some(GuardedRun { app: Arc::clone(app), owner: owner.to_owned(), run_id, grace }))
    }

    /// Returns the guard of a wire whose setting says so.
    pub fn of_wire(app: &Arc<App>, owner: &str, run_id: Uuid, setting: OnDisconnect) -> Option<Self> {
        (setting == OnDisconnect::Cancel).then(|| Self::new(app, owner, run_id, GRACE))
    }

    /// Notes that the response has ended.
    pub fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        // A server that shuts down closes the connections itself.
        let Some(GuardedRun { app, owner, run_id, grace }) = self.0.take().filter(|run| !run.app.relay().is_draining())
        else {
            return;
        };
        app.cancel_abandoned(owner, run_id, grace);
    }
}

/// The frames of a client that may cancel its run by disconnecting, and what must live as long.
pub struct GuardedFrames<S, H> {
    frames: Pin<Box<S>>,
    guard: Option<DisconnectGuard>,
    _held: H,
}

impl<S, H> GuardedFrames<S, H> {
    pub fn new(frames: S, guard: Option<DisconnectGuard>, held: H) -> Self {
        Self { frames: Box::pin(frames), guard, _held: held }
    }
}

impl<S, H> Stream for GuardedFrames<S, H>
where
    S: Stream<Item = Result<Bytes, TruncatedStream>>,
    H: Unpin,
{
    type Item = Result<Bytes, TruncatedStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.frames.as_mut().poll_next(context);
        // The end of the stream, or a truncation by the server, is no disconnect of the client.
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.guard.iter_mut().for_each(DisconnectGuard::disarm);
        }
        polled
    }
}
