//! Problems of callers who have too much in flight: bodies, answers, streams and searches.

use axum::http::StatusCode;

use super::{Problem, counted};

impl Problem {
    pub fn too_many_streams(holder: &str, most: usize) -> Self {
        let detail = format!(
            "{holder} may hold {} or waits open at this server; close one, or try again later.",
            counted(most, "stream")
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", detail).retried_after(5)
    }

    pub fn too_many_bodies(most: usize) -> Self {
        let detail =
            format!("The server reads at most {most} bytes of one caller's requests at a time; send fewer at once.");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_bodies", detail)
    }

    pub fn bodies_busy() -> Self {
        let detail = "The server is reading as many requests as it can; try again in a moment. Nothing was stored.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "bodies_busy", detail)
    }

    pub fn too_many_answers(most: usize) -> Self {
        let detail = format!(
            "The server keeps at most {most} bytes of answers for a caller who has not read them; read those first."
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_answers", detail)
    }

    pub fn answers_busy() -> Self {
        let detail = "The server keeps as many unread answers as it can; try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "answers_busy", detail)
    }

    pub fn too_many_searches() -> Self {
        let detail = "Your other searches are still running, and this one found no time: try again in a moment.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_searches", detail)
    }

    /// Other callers' searches take all the time that there is.
    pub fn search_busy() -> Self {
        let detail = "Other searches are running, and this one found no time: try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "search_busy", detail)
    }
}
