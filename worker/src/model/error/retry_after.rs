//! The pause that a provider requests: `retry-after-ms`, or `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or a
//! `RetryInfo` of Google in the body.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

pub(super) fn read(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = header("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let text = header(RETRY_AFTER.as_str())?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => until(text),
    }
}

/// Returns the pause of an error's details, such as `{"retryDelay": "17.3s"}`.
pub(super) fn of_details(error: &Value) -> Option<Duration> {
    let delays = error.get("details")?.as_array()?.iter().filter_map(|detail| detail.get("retryDelay")?.as_str());
    delays.filter_map(|delay| Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()).next()
}

/// Returns the time until a date: zero if the date is past, `None` if it is malformed.
fn until(date: &str) -> Option<Duration> {
    let date = DateTime::parse_from_rfc2822(date).ok()?;
    Some((date.with_timezone(&Utc) - Utc::now()).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn read_one(name: &'static str, value: &str) -> Option<Duration> {
        let value = HeaderValue::from_str(value).unwrap();
        read(&HeaderMap::from_iter([(HeaderName::from_static(name), value)]))
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_understood() {
        assert_eq!(read_one("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read_one("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read_one("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read_one("retry-after", "1.5"), Some(Duration::from_millis(1_500)));
        assert_eq!(read_one("retry-after", "-1"), None);
        assert_eq!(read_one("retry-after", "soon"), None);
        let details = serde_json::json!({"details": [{"@type": "x"}, {"retryDelay": "17.5s"}]});
        assert_eq!(of_details(&details), Some(Duration::from_millis(17_500)));
        assert_eq!(of_details(&serde_json::json!({"details": [{"retryDelay": "soon"}]})), None);
        let in_an_hour = (Utc::now() + Duration::from_secs(3600)).to_rfc2822();
        assert!(read_one("retry-after", &in_an_hour).unwrap() > Duration::from_secs(3590));
    }
}
