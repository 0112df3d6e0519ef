//! Lists in pages: `{items, next}`, with `limit` and `cursor`; and the one spelling of times in JSON.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// Part of a list. `next` is the cursor of the part after it, absent at the end.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page of at most `limit` items out of a query for one more than that.
    pub fn of(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}

/// Serialises a time as RFC 3339 with milliseconds, such as `2026-11-22T08:30:00.000Z`.
pub fn milliseconds<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The same for a time that may be absent.
pub fn optional_milliseconds<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => milliseconds(at, serializer),
        None => serializer.serialize_none(),
    }
}
