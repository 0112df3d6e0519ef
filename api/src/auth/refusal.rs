//! What those are told who are turned away, or must wait, for who they are.

use std::time::Duration;

use axum::http::StatusCode;
use holdfast_shared::rate_limit::Rate;

use crate::problem::{Problem, counted};

impl Problem {
    pub fn unauthenticated() -> Self {
        let detail =
            "Say who you are: send a JWT, as Authorization: Bearer or as x-api-key. There are no anonymous users here.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    /// The reason never quotes the token.
    pub fn invalid_token(reason: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_token", format!("The token is refused: {reason}."))
    }

    pub fn development_identity() -> Self {
        let detail = "X-User names somebody in development mode only; here a JWT does, as Authorization: Bearer.";
        Self::new(StatusCode::UNAUTHORIZED, "development_identity", detail)
    }

    pub fn operator_needed() -> Self {
        let detail = "Agents belong to the deployment: only a token whose role is operator may write them.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn invalid_session(max_chars: usize) -> Self {
        let detail = format!("A session's name has 1 to {max_chars} characters and no control characters.");
        Self::new(StatusCode::BAD_REQUEST, "invalid_session", detail)
    }

    pub fn no_anonymous_users(reason: &str) -> Self {
        let detail = format!("There are no anonymous users here: {reason}.");
        Self::new(StatusCode::CONFLICT, "no_anonymous_users", detail)
    }

    pub fn rate_limited(rate: Rate, wait: Duration) -> Self {
        Self::too_often(
            &format!("{} per {} may be started", counted(rate.count.get() as usize, "run"), rate.period.as_str()),
            wait,
        )
    }

    pub fn writes_limited(rate: Rate, wait: Duration) -> Self {
        Self::too_often(
            &format!("{} per {} may be made", counted(rate.count.get() as usize, "change"), rate.period.as_str()),
            wait,
        )
    }

    fn too_often(what: &str, wait: Duration) -> Self {
        // Rounded up, so that the next request then passes.
        let seconds = wait.as_millis().div_ceil(1_000).max(1) as u64;
        let detail = format!("From one address, {what} without an account; try again in {seconds} s.");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail).retried_after(seconds)
    }
}
