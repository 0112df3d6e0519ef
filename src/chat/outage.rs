//! The state of an outage of the server, and when the chat reports it to the reader.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The chat reports no shorter outage.
const MOMENT: Duration = Duration::from_secs(1);

/// An outage of the server, if there is one.
pub enum Outage {
    None,
    /// The server is away for this reason. The chat reports the outage at this time.
    Unannounced(Instant, String),
    /// The chat has reported the outage. It reports the next one after another event.
    Announced,
}

impl Outage {
    pub fn begin(&mut self, reason: String) {
        match self {
            Self::None => *self = Self::Unannounced(Instant::now() + MOMENT, reason),
            Self::Unannounced(_, last) => *last = reason,
            Self::Announced => {}
        }
    }

    /// Returns whether the chat has reported the outage.
    pub fn is_announced(&self) -> bool {
        matches!(self, Self::Announced)
    }

    /// Ends an unreported outage when the server responds. Only the next event ends a reported one.
    pub fn interrupted(&mut self) {
        if matches!(self, Self::Unannounced(..)) {
            *self = Self::None;
        }
    }

    /// Waits until the outage is long enough to report, and returns its reason.
    pub async fn lasts(&self) -> String {
        match self {
            Self::Unannounced(at, reason) => {
                sleep_until(*at).await;
                reason.clone()
            }
            Self::None | Self::Announced => std::future::pending().await,
        }
    }
}
