//! Time zones of users, and the line that tells a model the date.
//!
//! The facts of a run make its line: its zone, and the time at which it began or resumed after a wait. So each request of the
//! run, and each later request that has its turn, has the same bytes. The table of zones is part of the program, so no host's
//! files change a line.

use std::{str::FromStr, sync::LazyLock};

use chrono::{DateTime, Utc};
use jiff::{Timestamp, tz};

static ZONES: LazyLock<tz::TimeZoneDatabase> = LazyLock::new(tz::TimeZoneDatabase::bundled);

/// A zone of the IANA database; UTC by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

/// No zone has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name of the IANA database, such as Europe/Copenhagen")]
pub struct UnknownTimeZone;

impl TimeZone {
    /// Returns the names that the database knows.
    pub fn names() -> impl Iterator<Item = String> {
        ZONES.available().map(|name| name.as_str().to_owned()).filter(|name| name.parse::<Self>().is_ok())
    }

    /// Returns the zone's name, as the database spells it.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self(tz::TimeZone::UTC)
    }
}

impl FromStr for TimeZone {
    type Err = UnknownTimeZone;

    fn from_str(name: &str) -> Result<Self, UnknownTimeZone> {
        let zone = ZONES.get(name).map_err(|_| UnknownTimeZone)?;
        // `Etc/Unknown` is the name that hosts without a zone give.
        if zone.is_unknown() { Err(UnknownTimeZone) } else { Ok(Self(zone)) }
    }
}

/// The zone of a new run: that of its request, or else of its owner's profile, or else the deployment's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunZone {
    /// The zone that the request names.
    pub named: Option<TimeZone>,
    /// The zone of a run without another.
    pub otherwise: TimeZone,
}

/// The date of a run, where its user is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDate {
    /// Time at which the run began, or resumed after its newest wait, by the database's clock.
    pub at: DateTime<Utc>,
    /// The run's zone.
    pub zone: TimeZone,
}

/// How each line begins.
const OPENING: &str = "[Today is ";

impl RunDate {
    /// Returns the date of a run's row. A zone that this version does not know counts as UTC.
    pub fn of_row(at: DateTime<Utc>, zone: Option<&str>) -> Self {
        Self { at, zone: zone.and_then(|name| name.parse().ok()).unwrap_or_default() }
    }

    /// Returns the line for a model.
    pub fn line(&self) -> String {
        let at = Timestamp::from_second(self.at.timestamp()).unwrap_or_default();
        let today = self.zone.0.to_datetime(at).date().strftime("%A, %-d %B %Y");
        format!("{OPENING}{today}; the user's time zone is {}.]", self.zone.name())
    }

    /// Returns a user's text after the line.
    pub fn before(&self, text: &str) -> String {
        format!("{}\n\n{text}", self.line())
    }
}

/// Returns a text without the line before it.
pub fn without_line(text: &str) -> &str {
    let rest = text.strip_prefix(OPENING).and_then(|line| line.split_once(".]"));
    rest.map_or(text, |(_, rest)| rest.trim_start_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: &str, zone: &str) -> String {
        RunDate { at: at.parse().unwrap(), zone: zone.parse().unwrap() }.line()
    }

    #[test]
    fn the_line_has_the_date_where_the_user_is() {
        let check = |at: &str, zone: &str, day: &str| {
            assert_eq!(line(at, zone), format!("[Today is {day}; the user's time zone is {zone}.]"));
        };
        check("2026-11-29T12:00:00Z", "Europe/Copenhagen", "Sunday, 29 November 2026");
        check("2026-11-29T22:59:59Z", "Europe/Copenhagen", "Sunday, 29 November 2026");
        check("2026-11-29T23:00:00Z", "Europe/Copenhagen", "Monday, 30 November 2026");
        check("2026-06-30T21:59:59Z", "Europe/Copenhagen", "Tuesday, 30 June 2026");
        check("2026-06-30T22:00:00Z", "Europe/Copenhagen", "Wednesday, 1 July 2026");
        check("2026-01-01T07:00:00Z", "America/Los_Angeles", "Wednesday, 31 December 2025");
        check("2028-02-29T00:00:00Z", "UTC", "Tuesday, 29 February 2028");
        check("2026-01-01T18:15:00Z", "Asia/Kathmandu", "Friday, 2 January 2026");
    }

    #[test]
    fn times_of_one_day_give_the_same_line() {
        let zone = "Pacific/Auckland";
        assert_eq!(line("2026-11-28T11:00:00Z", zone), line("2026-11-29T10:59:59Z", zone));
        assert_ne!(line("2026-11-28T11:00:00Z", zone), line("2026-11-29T11:00:00Z", zone));
    }

    #[test]
    fn a_zone_has_the_name_of_the_database_or_is_refused() {
        let name = |name: &str| name.parse::<TimeZone>().map(|zone| zone.name().to_owned());
        for known in ["UTC", "Etc/UTC", "Europe/Copenhagen", "Asia/Calcutta", "America/Argentina/Buenos_Aires"] {
            assert_eq!(name(known).as_deref(), Ok(known));
        }
        assert_eq!(name("europe/copenhagen").as_deref(), Ok("Europe/Copenhagen"));
        for unknown in ["", " ", "Mars/Olympus", "+02:00", "../etc/passwd", "Etc/Unknown", "Europe/Copenhagen]"] {
            assert_eq!(name(unknown), Err(UnknownTimeZone), "{unknown}");
        }
    }

    #[test]
    fn a_row_without_a_known_zone_counts_as_one_in_utc() {
        let at = DateTime::UNIX_EPOCH;
        for zone in [None, Some("Mars/Olympus"), Some("UTC")] {
            assert_eq!(RunDate::of_row(at, zone), RunDate { at, zone: TimeZone::default() });
        }
        assert_eq!(TimeZone::default().name(), "UTC");
    }

    #[test]
    fn the_line_can_be_taken_off_again() {
        let date = RunDate::of_row(DateTime::UNIX_EPOCH, Some("Asia/Tokyo"));
        for text in ["hi", "", "[tokens=3] hi.]", "[Today is not a line]", "two\n\nparagraphs"] {
            assert_eq!(without_line(&date.before(text)), text);
            assert_eq!(without_line(text), text);
        }
    }
}
