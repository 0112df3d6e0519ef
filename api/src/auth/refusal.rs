//! Problems that the caller's identity causes: missing credentials, missing roles and rate limits.

use std::time::Duration;

use axum::http::StatusCode;
use holdfast_shared::{rate_limit::Rate, time_zone::UnknownTimeZone};

use crate::problem::{Problem, counted};

impl Problem {
    pub fn unauthenticated() -> Self {
        let detail =
            "Send a JWT as Authorization: Bearer or as x-api-key. This server does not accept anonymous users.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    /// The reason never quotes the token.
    pub fn invalid_token(reason: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_token", format!("The server refused the token: {reason}."))
    }

    pub fn development_identity() -> Self {
        let detail = "X-User names the user in development mode only; send a JWT as Authorization: Bearer instead.";
        Self::new(StatusCode::UNAUTHORIZED, "development_identity", detail)
    }

    pub fn foreign_origin() -> Self {
        let detail = "The browser sent this change for a page of another origin. Send an Authorization header, or let the operator list the page's origin in HOLDFAST_CORS_ORIGINS with HOLDFAST_CORS_CREDENTIALS=true.";
        Self::new(StatusCode::FORBIDDEN, "foreign_origin", detail)
    }

    pub fn foreign_page() -> Self {
        let detail = "The browser sent this for a page of another origin. Let the operator list the page's origin in HOLDFAST_CORS_ORIGINS.";
        Self::new(StatusCode::FORBIDDEN, "foreign_origin", detail)
    }

    pub fn operator_needed() -> Self {
        let detail =
            "This belongs to the deployment, as agents do; only a token with the role operator may use this route.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn invalid_session(max_chars: usize) -> Self {
        let detail = format!(
            "A session's name has 1 to {max_chars} characters, one of them visible, and no control characters."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_session", detail)
    }

    pub fn unknown_time_zone() -> Self {
        let detail = format!("There is no time zone of this name. Send {UnknownTimeZone}.");
        Self::new(StatusCode::BAD_REQUEST, "unknown_time_zone", detail)
    }

    pub fn no_anonymous_users(reason: &str) -> Self {
        let detail = format!("This server does not accept anonymous users: {reason}.");
        Self::new(StatusCode::CONFLICT, "no_anonymous_users", detail)
    }

    pub fn rate_limited(rate: Rate, wait: Duration) -> Self {
        Self::too_often(
            &format!("start {} per {}", counted(rate.count.get() as usize, "run"), rate.period.as_str()),
            wait,
        )
    }

    pub fn writes_limited(rate: Rate, wait: Duration) -> Self {
        Self::too_often(
            &format!("make {} per {}", counted(rate.count.get() as usize, "change"), rate.period.as_str()),
            wait,
        )
    }

    pub fn reads_limited(rate: Rate, wait: Duration) -> Self {
        Self::too_often(
            &format!("make {} per {}", counted(rate.count.get() as usize, "read"), rate.period.as_str()),
            wait,
        )
    }

    pub fn bytes_limited(rate: Rate, wait: Duration) -> Self {
        let seconds = seconds_of(wait);
        let detail = format!(
            "Callers without an account may store {} KiB per {} from one address; send less, or try again in {seconds} s.",
            rate.count,
            rate.period.as_str()
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "byte_rate_limited", detail).retried_after(seconds)
    }

    pub fn anonymous_data_full(most: u64) -> Self {
        let detail = format!(
            "This server keeps {most} bytes of users without an account, and stores nothing new of them now; sign in, or try again another day."
        );
        Self::new(StatusCode::FORBIDDEN, "anonymous_data_full", detail)
    }

    fn too_often(what: &str, wait: Duration) -> Self {
        let seconds = seconds_of(wait);
        let detail = format!("Callers without an account may {what} from one address; try again in {seconds} s.");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail).retried_after(seconds)
    }
}

/// Rounds a wait up, so that the next request passes after it.
fn seconds_of(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}
