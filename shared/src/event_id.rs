//! The id of an event: `<attempt>-<n>`. The database numbers the attempts, and n counts from 1 within one.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The position of an event in its run's log, ordered by attempt and then n. A client's cursor is the id of its last
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventId {
    /// The attempt that wrote the event; 0 for the event that the submit wrote.
    pub attempt: u32,
    /// Counts 1, 2, 3 … within the attempt.
    pub n: u32,
}

impl EventId {
    /// The position before the first event of any run: `0-0`.
    pub const ORIGIN: Self = Self::new(0, 0);

    /// Returns the id `<attempt>-<n>`.
    pub const fn new(attempt: u32, n: u32) -> Self {
        Self { attempt, n }
    }

    /// Returns the id of an attempt's first event.
    pub const fn first_of(attempt: u32) -> Self {
        Self::new(attempt, 1)
    }

    /// Returns the next id of the same attempt.
    pub const fn next(self) -> Self {
        Self::new(self.attempt, self.n + 1)
    }

    /// Returns the previous id of the same attempt, also before its first event.
    pub const fn before(self) -> Self {
        Self::new(self.attempt, self.n.saturating_sub(1))
    }

    /// Returns the id as one number with the same order, for the database. The attempt is in its upper half.
    pub const fn packed(self) -> i64 {
        ((self.attempt as i64) << 32) | self.n as i64
    }
}

impl From<i64> for EventId {
    fn from(packed: i64) -> Self {
        Self::new((packed >> 32) as u32, packed as u32)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.attempt, self.n)
    }
}

/// A text that cannot be an event id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event id looks like 1-17 (attempt, dash, number), not {0:?}")]
pub struct MalformedEventId(String);

impl FromStr for EventId {
    type Err = MalformedEventId;

    fn from_str(text: &str) -> Result<Self, MalformedEventId> {
        let malformed = || MalformedEventId(text.chars().take(64).collect());
        let (attempt, n) = text.split_once('-').ok_or_else(malformed)?;
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
            digits.parse().ok().filter(|number| plain && *number <= i32::MAX as u32).ok_or_else(malformed)
        };
        Ok(Self::new(number(attempt)?, number(n)?))
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for EventId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("Position in a run's log: attempt, dash, number."))
            .pattern(Some("^\\d+-\\d+$"))
            .examples(["1-17"])
            .into()
    }
}

impl utoipa::ToSchema for EventId {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_and_number_convert_back_to_the_id(attempt in 0..=i32::MAX as u32, n in 0..=i32::MAX as u32) {
            let id = EventId::new(attempt, n);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(EventId::from(id.packed()), id);
        }

        #[test]
        fn packed_ids_order_like_ids(a in any::<(u16, u16)>(), b in any::<(u16, u16)>()) {
            let (a, b) = (EventId::new(a.0.into(), a.1.into()), EventId::new(b.0.into(), b.1.into()));
            prop_assert_eq!(a.cmp(&b), a.packed().cmp(&b.packed()));
        }
    }

    #[test]
    fn only_one_spelling_names_an_event() {
        for text in
            ["", "1", "-", "1-", "-1", "1-1-1", "+1-1", "1-+1", "01-1", "1-01", " 1-1", "1-99999999999", "a-b", "1-1\n"]
        {
            assert!(text.parse::<EventId>().is_err(), "{text:?} was accepted");
        }
        assert_eq!("0-0".parse(), Ok(EventId::ORIGIN));
    }
}
