//! Problems with a plan.

use std::fmt::Display;

use axum::http::StatusCode;

use super::Problem;

impl Problem {
    pub fn plan_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "plan_not_found", format!("There is no plan {id}."))
    }

    /// Refuses a change of a plan that is not executed.
    pub fn plan_not_executing(id: impl Display) -> Self {
        let detail = format!(
            "Plan {id} is not being executed: it has ended, its run has ended, or it waits for an approval, with which its steps can be changed."
        );
        Self::new(StatusCode::CONFLICT, "plan_not_executing", detail)
    }

    /// Refuses a plan that cannot be executed.
    pub fn invalid_plan(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_plan", format!("{problem}."))
    }
}
