//! `/v1/approvals`: the approvals of all runs that wait for the caller. `answers` has the routes of one run.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{approval::PendingApproval, page::Page};

use crate::{app::App, auth::Caller, extract::Query, page_sizes::ListQuery, problem::Problem};

/// List the open approvals that the caller may decide, oldest first. They belong to the caller's own runs, and to runs
/// whose agent names the caller among its `approvers`.
#[utoipa::path(get, path = "/v1/approvals", operation_id = "list_approvals", tag = "runs", params(ListQuery), responses(
    (status = 200, body = Page<PendingApproval>),
    (status = 400, body = Problem, description = "invalid_query, invalid_cursor")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<PendingApproval>>, Problem> {
    let page = app.storage().open_approvals(caller.standing(), query.size(&app)?, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}
