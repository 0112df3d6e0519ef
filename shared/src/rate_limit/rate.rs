//! Rates such as `10/minute`.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

/// A count per period. A caller that was quiet for a period may take the whole count at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// From 1; at most 100,000 if the rate is a setting.
    pub count: NonZeroU32,
    /// Time in which the bucket refills completely.
    pub period: Period,
}

/// The unit of a rate's period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Period {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds.
    Day,
}

/// The text is no rate; the message names the accepted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number from 1 to {MOST} per second, minute, hour or day, such as 10/minute, or 0 for no limit")]
pub struct InvalidRate;

/// Largest count. A larger one would limit no caller.
const MOST: u32 = 100_000;

/// Bytes that a bucket of bytes counts as one.
pub const KIBIBYTE: usize = 1024;

/// Most kibibytes per hour, 1 TB. The bucket gets one back in whole microseconds.
const MOST_KIBIBYTES: u32 = 1_000_000_000;

impl Rate {
    /// Returns the time in which the bucket gets one back, in whole microseconds.
    pub fn interval(self) -> Duration {
        Duration::from_micros(self.period.duration().as_micros() as u64 / u64::from(self.count.get()))
    }

    /// Returns a rate of kibibytes per hour, rounded up.
    pub fn of_hourly_bytes(bytes: NonZeroUsize) -> Self {
        let kibibytes = u32::try_from(bytes.get().div_ceil(KIBIBYTE)).unwrap_or(u32::MAX).min(MOST_KIBIBYTES);
        Self { count: NonZeroU32::new(kibibytes).expect("a byte is a kibibyte, rounded up"), period: Period::Hour }
    }

    /// Parses a rate. `None` for a count of 0.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidRate> {
        if text.trim() == "0" {
            return Ok(None);
        }
        let (count, period) = text.split_once('/').ok_or(InvalidRate)?;
        let count: u32 = count.trim().parse().map_err(|_| InvalidRate)?;
        let period = period.trim().parse().map_err(|_| InvalidRate)?;
        match NonZeroU32::new(count) {
            None => Ok(None),
            Some(count) if count.get() <= MOST => Ok(Some(Self { count, period })),
            Some(_) => Err(InvalidRate),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.count, self.period.as_str())
    }
}

impl Period {
    /// Returns the spelling, such as `minute`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    const fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_per_period() {
        let check = |text: &str, shown: Option<&str>, micros: u128| {
            let rate = Rate::parse(text).unwrap();
            assert_eq!(rate.map(|rate| rate.to_string()).as_deref(), shown, "{text}");
            assert_eq!(rate.map_or(0, |rate| rate.interval().as_micros()), micros, "{text}");
        };
        check("10/minute", Some("10/minute"), 6_000_000);
        check(" 3 / second ", Some("3/second"), 333_333);
        check("1/day", Some("1/day"), 86_400_000_000);
        check("100000/second", Some("100000/second"), 10);
        check("0", None, 0);
        check("0/hour", None, 0);
    }

    #[test]
    fn bytes_per_hour_are_counted_in_kibibytes() {
        let check = |bytes: usize, count: u32| {
            let rate = Rate::of_hourly_bytes(NonZeroUsize::new(bytes).unwrap());
            assert_eq!((rate.count.get(), rate.period), (count, Period::Hour), "{bytes}");
            assert!(rate.interval() >= Duration::from_micros(1), "{bytes}");
        };
        check(1, 1);
        check(1024, 1);
        check(1025, 2);
        check(64 << 20, 65_536);
        check(usize::MAX, MOST_KIBIBYTES);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "ten", "10", "10/", "/minute", "-1/minute", "10/fortnight", "1.5/minute", "100001/hour"] {
            assert_eq!(Rate::parse(text), Err(InvalidRate), "{text}");
        }
    }
}
