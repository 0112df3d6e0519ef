//! The one spelling of times in JSON.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer;

/// Serializes a time as RFC 3339 with milliseconds, such as `2026-11-22T08:30:00.000Z`.
pub fn milliseconds<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*at))
}

/// The time as RFC 3339 with milliseconds.
pub fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serializes an optional time: as `milliseconds` does, or as null.
pub fn optional_milliseconds<S: Serializer>(at: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => milliseconds(at, serializer),
        None => serializer.serialize_none(),
    }
}
