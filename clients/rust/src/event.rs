//! Events and their ids.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::wire::RunEvent;

/// A position in a run's log: attempt and number, in the order of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventId {
    pub attempt: u64,
    pub n: u64,
}

impl EventId {
    /// The position before every event.
    pub const ORIGIN: Self = Self { attempt: 0, n: 0 };

    /// Whether the event with this id and base continues the log after the cursor without a gap.
    pub(crate) fn follows(self, cursor: Self, base: Option<Self>) -> bool {
        let begins = self.n == 1 && base.is_some_and(|base| cursor >= base);
        self > cursor && (begins || (self.attempt == cursor.attempt && self.n == cursor.n + 1))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.attempt, self.n)
    }
}

/// The text is no id of an event.
#[derive(Debug, thiserror::Error)]
#[error("an event's id is two numbers with a dash between them")]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let (attempt, n) = text.split_once('-').ok_or(InvalidEventId)?;
        let number = |text: &str| text.parse().map_err(|_| InvalidEventId);
        Ok(Self { attempt: number(attempt)?, n: number(n)? })
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// An event of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    pub id: EventId,
    /// On the first event of an attempt: it supersedes all events after its base.
    pub base: Option<EventId>,
    /// The type, such as `message.delta`.
    pub kind: String,
    /// `RunEvent::Unknown` for a type of a later server.
    pub body: RunEvent,
    /// The event as the server sent it.
    pub json: Value,
}

/// The fields that the order of events needs.
#[derive(Deserialize)]
struct Head {
    id: EventId,
    base: Option<EventId>,
    #[serde(rename = "type")]
    kind: String,
}

impl Event {
    pub(crate) fn read(data: &str) -> serde_json::Result<Self> {
        let json: Value = serde_json::from_str(data)?;
        let Head { id, base, kind } = Head::deserialize(&json)?;
        let body = RunEvent::deserialize(&json).unwrap_or(RunEvent::Unknown);
        Ok(Self { id, base, kind, body, json })
    }

    /// Whether the run ends with this event.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind.as_str(), "run.completed" | "run.failed" | "run.cancelled")
    }
}
