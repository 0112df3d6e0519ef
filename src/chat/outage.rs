//! The server's absence: when the reader is told of it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A shorter absence of the server is not worth a word.
const MOMENT: Duration = Duration::from_secs(1);

/// Whether the server is away.
pub enum Outage {
    None,
    /// Since a moment ago, and for what reason; to be told at this time.
    Unannounced(Instant, String),
    /// It is told once, until events come again.
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

    /// Whether the reader knows of it.
    pub fn is_announced(&self) -> bool {
        matches!(self, Self::Announced)
    }

    /// The server has answered; whether it stays is seen with the next event.
    pub fn interrupted(&mut self) {
        if matches!(self, Self::Unannounced(..)) {
            *self = Self::None;
        }
    }

    /// Waits until it has lasted for more than a moment.
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
