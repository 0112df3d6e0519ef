//! What an owner has too much of.

use axum::http::StatusCode;

use super::Problem;

impl Problem {
    pub fn too_many_runs(max: usize) -> Self {
        let detail = format!(
            "You have {max} runs that have not ended; wait for one of them, cancel it, or answer what it asks."
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", detail)
    }
}
