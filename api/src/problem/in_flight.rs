//! Problems for callers that exceed a limit on bodies, answers, streams, reads or searches in flight.

use axum::http::StatusCode;

use super::{Problem, counted};

impl Problem {
    pub fn too_many_streams(holder: &str, most: usize) -> Self {
        let detail = format!(
            "{holder} may have {} or waits open at this server; close one, or try again later.",
            counted(most, "stream")
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", detail).retried_after(5)
    }

    pub fn too_many_bodies(most: usize) -> Self {
        let detail = format!(
            "The server reads at most {most} bytes of one caller's requests at a time; send fewer requests at once."
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_bodies", detail)
    }

    pub fn bodies_busy() -> Self {
        let detail =
            "The server is reading as many request bodies as it can; try again in a moment. Nothing was stored.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "bodies_busy", detail)
    }

    pub fn too_many_answers(most: usize) -> Self {
        let detail = format!("The server keeps at most {most} bytes of unread answers for a caller; read those first.");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_answers", detail)
    }

    pub fn answers_busy() -> Self {
        let detail = "The server keeps as many unread answers as it can; try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "answers_busy", detail)
    }

    pub fn too_many_restores() -> Self {
        let detail = "This request waited for another restoration or fork of this caller; wait for its answer first.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_restores", detail)
    }

    pub fn restore_busy() -> Self {
        let detail = "This request waited for other callers' restorations and forks; try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "restore_busy", detail)
    }

    pub fn too_many_changes() -> Self {
        let detail = "This request waited for another change of this caller's workspace; wait for its answer first.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_changes", detail)
    }

    pub fn workspace_busy() -> Self {
        let detail = "This request waited for changes of other callers' workspaces; try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "workspace_busy", detail)
    }

    pub fn too_many_reads() -> Self {
        let detail = "Your other reads of long threads are still running; wait for an answer before the next one.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_reads", detail)
    }

    /// For a read that waited too long for reads of other callers.
    pub fn reads_busy() -> Self {
        let detail = "The server is reading as many long threads as it can; try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "reads_busy", detail)
    }

    pub fn too_many_searches() -> Self {
        let detail = "Your other searches are still running; try again in a moment.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_searches", detail)
    }

    /// For a search that waited too long for searches of other callers.
    pub fn search_busy() -> Self {
        let detail = "The server is running as many searches as it can; try again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "search_busy", detail)
    }
}
