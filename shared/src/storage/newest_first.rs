//! Cursors of lists that have the newest item first: `<unix ms>.<id>`. The id orders items of equal times.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The item after which the page begins; `None` at the start of the list.
pub(super) struct NewestFirst(Option<(DateTime<Utc>, Uuid)>);

/// No page returned this cursor.
pub(super) struct UnknownCursor;

impl NewestFirst {
    pub fn parse(cursor: Option<&str>) -> Result<Self, UnknownCursor> {
        cursor.map(|text| position(text).ok_or(UnknownCursor)).transpose().map(Self)
    }

    /// Returns the cursor of the page after this item.
    pub fn cursor_after(at: DateTime<Utc>, id: Uuid) -> String {
        format!("{}.{}", at.timestamp_millis(), id.simple())
    }

    pub fn at(&self) -> Option<DateTime<Utc>> {
        self.0.map(|position| position.0)
    }

    pub fn id(&self) -> Option<Uuid> {
        self.0.map(|position| position.1)
    }
}

fn position(text: &str) -> Option<(DateTime<Utc>, Uuid)> {
    let (at, id) = text.split_once('.')?;
    let at = DateTime::from_timestamp_millis(at.parse().ok()?)?;
    // Both databases store only these years.
    let known = DateTime::from_timestamp_millis(EARLIEST_MS)?..=DateTime::from_timestamp_millis(LATEST_MS)?;
    known.contains(&at).then_some((at, id.parse().ok()?))
}

/// The years 1 to 9999, in which texts of dates sort like dates.
const EARLIEST_MS: i64 = -62_135_596_800_000;
const LATEST_MS: i64 = 253_402_300_799_999;
