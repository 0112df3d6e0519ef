//! Problems with the event that a client has got last.

use axum::http::StatusCode;
use holdfast_shared::event_id;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn malformed_event_id(error: &event_id::MalformedEventId) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_event_id", format!("{error}."))
    }

    pub fn foreign_event_id(id: impl std::fmt::Display, run_id: Uuid) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_event_id", format!("Run {run_id} has no event {id}.")).about(run_id)
    }

    pub fn events_gone(run_id: Uuid) -> Self {
        Self::new(
            StatusCode::GONE,
            "events_gone",
            format!("The events of run {run_id} have expired; its result is at /v1/runs/{run_id}."),
        )
        .about(run_id)
    }
}
