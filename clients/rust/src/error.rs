//! Failures of calls and streams.

use std::{fmt, time::Duration};

use serde_json::Value;
use tokio::time::timeout;

use crate::event::EventId;

/// Longest time that the body of a refusal may take, and most of its bytes.
const BODY_TIME: Duration = Duration::from_secs(5);
const MOST_BYTES: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused a request.
    #[error("the server refused: {0}")]
    Refused(Box<Problem>),
    /// No connection was possible for as long as the client waits. A stream continues after its cursor.
    #[error("the server could not be reached for {waited:?}")]
    ConnectionLost { waited: Duration, cursor: Option<EventId> },
    /// Several connections in a row sent events that do not follow the cursor.
    #[error("event {event} does not follow {cursor}")]
    BrokenLog { event: EventId, cursor: EventId },
    /// A request failed, and a repetition could have a second effect.
    #[error("failed to send a request")]
    Request(#[from] reqwest::Error),
    /// A request was silent for too long, and a repetition could have a second effect.
    #[error("the server was silent")]
    Silent,
    /// Some page came instead of a stream of events.
    #[error("the answer is no stream of events")]
    NoStream,
    /// The server's answer is not as documented.
    #[error("failed to read the answer")]
    Answer(#[from] serde_json::Error),
}

/// A refusal of the server, as problem+json (RFC 9457).
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: u16,
    /// Stable and lower case, such as `conversation_busy`.
    pub code: String,
    pub detail: String,
    pub body: Value,
    /// How long the server asks the client to wait.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.status, self.code, self.detail)
    }
}

impl Problem {
    /// Whether a later request might succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self.status, 408 | 429) || self.status >= 500
    }

    /// Whether a request after at most this time might succeed.
    pub fn may_pass_within(&self, patience: Duration) -> bool {
        self.may_pass() && self.retry_after.unwrap_or_default() <= patience
    }

    /// Reads the problem of a response, also of one that a proxy wrote. A body that is long or does not end is cut,
    /// because the status alone is a problem, too.
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let text = start_of_body(response).await;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let field = |name: &str| body[name].as_str().map(str::to_owned);
        let code = field("code").unwrap_or_else(|| format!("http_{status}"));
        let detail = field("detail").unwrap_or_else(|| text.chars().take(200).collect());
        Self { status, code, detail, retry_after: seconds.map(Duration::from_secs), body }
    }
}

/// Returns the text that comes within some time, up to about `MOST_BYTES`.
async fn start_of_body(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while body.len() < MOST_BYTES
            && let Ok(Some(piece)) = response.chunk().await
        {
            body.extend_from_slice(&piece);
        }
    };
    // After the time-out, `body` has what came until then.
    let _ = timeout(BODY_TIME, read).await;
    String::from_utf8_lossy(&body).into_owned()
}
