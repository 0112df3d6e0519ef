//! Lets the server close a connection whose client reads an answer too slowly.

use std::sync::Arc;

use tokio::sync::Notify;

/// A handle that closes its connection. The extensions of each request on the connection carry it.
#[derive(Debug, Clone, Default)]
pub struct HangUp(Arc<Notify>);

impl HangUp {
    /// Closes the connection and drops what the client has not read.
    pub fn now(&self) {
        self.0.notify_one();
    }

    /// Waits until `now` is called.
    pub async fn wanted(&self) {
        self.0.notified().await;
    }
}
