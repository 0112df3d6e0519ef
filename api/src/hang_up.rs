//! Lets the server close a connection whose client reads an answer too slowly.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// A handle that closes its connection. The extensions of each request on the connection carry it.
#[derive(Debug, Clone, Default)]
pub struct HangUp(Arc<Notify>);

impl HangUp {
    /// Closes the connection and drops what the client has not read.
    pub fn now(&self) {
        self.0.notify_one();
    }

    /// Closes the connection after this time, unless the guard is dropped before.
    pub fn after(&self, time: Duration) -> AbortOnDropHandle<()> {
        let hang_up = self.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(time).await;
            hang_up.now();
        }))
    }

    /// Waits until `now` is called.
    pub async fn wanted(&self) {
        self.0.notified().await;
    }
}
