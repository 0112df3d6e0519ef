//! The end of a connection that its server wants, while a client reads an answer of it too slowly.

use std::sync::Arc;

use tokio::sync::Notify;

/// One connection, for those who may end it; in the extensions of each of its requests.
#[derive(Debug, Clone, Default)]
pub struct HangUp(Arc<Notify>);

impl HangUp {
    /// Ends the connection, with what the client has not read.
    pub fn now(&self) {
        self.0.notify_one();
    }

    /// Waits until the connection is to end.
    pub async fn wanted(&self) {
        self.0.notified().await;
    }
}
