//! Problems of the routes for clients of LangGraph.

use axum::http::StatusCode;

use super::Problem;

impl Problem {
    /// For a field whose effect this server does not have.
    pub fn field_not_supported(field: &str, advice: &str) -> Self {
        let detail = format!("This server does not support {field}: {advice}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "not_supported", detail)
    }

    /// For a route whose function this server does not have.
    pub fn not_implemented(detail: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", detail)
    }

    pub fn thread_exists(id: &str) -> Self {
        let detail = format!("Thread {id} exists; send if_exists: \"do_nothing\" to get it.");
        Self::new(StatusCode::CONFLICT, "thread_exists", detail)
    }

    pub fn thread_of_another_agent(id: &str) -> Self {
        let detail = format!("Thread {id} has another assistant, which answered in it before; create another thread.");
        Self::new(StatusCode::CONFLICT, "thread_of_another_agent", detail)
    }
}
