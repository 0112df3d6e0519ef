//! The state of a cancel request of the reader.

use std::time::Duration;

use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    client::{ChatClient, RequestFailure},
    stream::reconnections,
};

#[derive(Default)]
pub enum Cancel {
    #[default]
    Unwanted,
    /// The reader wants to cancel, but the run's id has not arrived.
    Wanted,
    Sent(JoinHandle<()>),
}

impl Cancel {
    pub fn is_wanted(&self) -> bool {
        !matches!(self, Self::Unwanted)
    }

    pub fn is_sent(&self) -> bool {
        matches!(self, Self::Sent(_))
    }

    /// Sends the cancel request, if the reader wants one and the run's id is known.
    pub fn send(&mut self, client: &ChatClient, run: Option<Uuid>) {
        if let (Self::Wanted, Some(run)) = (&self, run) {
            *self = Self::Sent(tokio::spawn(send(client.clone(), run)));
        }
    }

    /// Waits up to `time` until the request has been sent.
    pub async fn wait_until_sent(&mut self, time: Duration) {
        if let Self::Sent(task) = self {
            let _ = tokio::time::timeout(time, task).await;
        }
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        if let Self::Sent(task) = self {
            task.abort();
        }
    }
}

/// Sends the cancel request, and retries while the server is away. The run's events report the result.
async fn send(client: ChatClient, run: Uuid) {
    let mut backoff = reconnections();
    while let Err(RequestFailure::Away(_)) = client.cancel(run).await {
        backoff.pause().await;
    }
}
