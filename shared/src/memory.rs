//! Facts that agents remember of a user, beyond a conversation.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::storable::storable;

/// A memory, as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct StoredMemory {
    /// The id, which the first call of it decides.
    pub id: Uuid,
    /// The name of the agent that wrote it.
    pub agent: String,
    /// The agents that recall it.
    pub scope: MemoryScope,
    /// The text.
    pub text: String,
    /// Counts the writes, from 1.
    pub version: u32,
    /// The last writer.
    pub writer: MemoryWriter,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at the newest version.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub updated_at: DateTime<Utc>,
    /// From this time on no agent recalls it, and the sweeper removes it; null for never.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Where it comes from.
    pub source: MemorySource,
}

/// The source of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct MemorySource {
    /// The run that wrote it.
    pub run_id: Uuid,
    /// The user's message that the run, or the run above it, has answered.
    pub message_id: Uuid,
    /// The conversation of that message; null if it was deleted.
    pub conversation_id: Option<Uuid>,
}

/// The agents that recall a memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MemoryScope {
    /// The agent that wrote it.
    #[default]
    Agent,
    /// All agents of its user.
    User,
}

/// The writer of a version of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MemoryWriter {
    /// An agent, in a run.
    Agent,
    /// The user.
    User,
}

crate::text_enum!(MemoryScope, MemoryWriter);

/// A version of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct MemoryVersion {
    /// From 1.
    pub version: u32,
    /// The text.
    pub text: String,
    /// The expiry of this version; null for none.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Its writer.
    pub writer: MemoryWriter,
    /// The run that wrote it; null for a user.
    pub run_id: Option<Uuid>,
    /// Time of the database.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub written_at: DateTime<Utc>,
}

/// A memory with its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct MemoryWithVersions {
    /// The newest version; its fields stand beside those below.
    #[serde(flatten)]
    pub memory: StoredMemory,
    /// The kept versions, oldest first.
    pub versions: Vec<MemoryVersion>,
}

/// A version of a memory, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemoryReference {
    /// The memory.
    pub id: Uuid,
    /// Its version.
    pub version: u32,
}

/// The text of a version of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryText {
    /// The memory and its version.
    pub reference: MemoryReference,
    /// The text.
    pub text: String,
    /// Time of the database at this version.
    pub written_at: DateTime<Utc>,
}

/// A text or an expiry that no memory can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMemory {
    /// The text is empty, or longer than this number of characters.
    #[error("text has 1 to {0} characters")]
    Text(usize),
    /// The expiry is neither a time nor a date.
    #[error("{0} is an RFC 3339 time such as 2027-01-31T12:00:00Z, or a date such as 2027-01-31")]
    Expiry(&'static str),
    /// The expiry is in the past.
    #[error("{0} is a time in the future")]
    Past(&'static str),
}

/// Returns the text of a memory as it is stored. Fails if it is empty or has more than `most` characters.
pub fn checked_text(text: &str, most: usize) -> Result<String, InvalidMemory> {
    let text = storable(text.trim().to_owned());
    if text.is_empty() || text.chars().count() > most { Err(InvalidMemory::Text(most)) } else { Ok(text) }
}

/// Reads an expiry: a time, or a date with whose end (UTC) the memory expires. `field` names it in the error.
pub fn parse_expiry(text: &str, field: &'static str) -> Result<DateTime<Utc>, InvalidMemory> {
    let at = DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc());
    let end_of_day = || {
        let day = text.parse::<NaiveDate>().ok()?.checked_add_signed(TimeDelta::days(1))?;
        Some(day.and_time(NaiveTime::MIN).and_utc())
    };
    // Both databases store whole milliseconds of these years.
    let storable = |at: DateTime<Utc>| DateTime::from_timestamp_millis(at.timestamp_millis().clamp(EARLIEST, LATEST));
    at.or_else(end_of_day).and_then(storable).ok_or(InvalidMemory::Expiry(field))
}

/// The years 1 to 9999, in milliseconds.
const EARLIEST: i64 = -62_135_596_800_000;
const LATEST: i64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp;

    #[test]
    fn a_text_has_a_character_and_at_most_as_many_as_the_limit() {
        assert_eq!(checked_text("  tea\0 ", 4).unwrap(), "tea\u{fffd}");
        assert_eq!(checked_text("éééé", 4).unwrap(), "éééé");
        for refused in ["ééééé", "", " \n "] {
            assert_eq!(checked_text(refused, 4), Err(InvalidMemory::Text(4)), "{refused:?}");
        }
    }

    #[test]
    fn an_expiry_is_a_time_or_the_end_of_a_day() {
        let check = |text: &str, expected: Option<&str>| {
            let read = parse_expiry(text, "expires").ok().map(timestamp::text);
            assert_eq!(read.as_deref(), expected, "{text}");
        };
        check("2027-01-31T12:00:00.0004+01:00", Some("2027-01-31T11:00:00.000Z"));
        check("2027-12-31", Some("2028-01-01T00:00:00.000Z"));
        check("9999-12-31", Some("9999-12-31T23:59:59.999Z"));
        check("tomorrow", None);
        check("2027-02-30", None);
        check("", None);
    }
}
