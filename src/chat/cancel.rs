//! The reader's wish that a run ends.

use std::time::Duration;

use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    client::{ChatClient, RequestFailure},
    stream::Backoff,
};

#[derive(Default)]
pub enum Cancel {
    #[default]
    Unwanted,
    /// The run is not known yet.
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

    /// Sends the wish, if there is one and the run is known.
    pub fn send(&mut self, client: &ChatClient, run: Option<Uuid>) {
        if let (Self::Wanted, Some(run)) = (&self, run) {
            *self = Self::Sent(tokio::spawn(send(client.clone(), run)));
        }
    }

    /// Leaves the request the time that it needs to get out.
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

/// Asks for the end of the run until the server has heard it. What it says to that comes with the run's events.
async fn send(client: ChatClient, run: Uuid) {
    let mut backoff = Backoff::default();
    while let Err(RequestFailure::Away(_)) = client.cancel(run).await {
        tokio::time::sleep(backoff.next_pause()).await;
    }
}
