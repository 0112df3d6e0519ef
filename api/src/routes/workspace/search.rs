//! `/v1/workspace/search`: entities by their names.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_workspace::{Found, Kind, Search};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{app::App, auth::Caller, extract::Query, problem::Problem, routes::conversations::checked_search};

/// Results of a search, where the request names no number, and at most.
const USUAL_RESULTS: usize = 20;
const MAX_RESULTS: usize = 50;

/// The words to look for.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSearchQuery {
    /// Words of names, at most 200 characters.
    q: String,
    /// Kinds, separated by commas; all by default.
    types: Option<String>,
    /// Only entities of this project.
    project_id: Option<Uuid>,
    /// Only entities in this state.
    state: Option<String>,
    /// Most results; 20 by default, at most 50.
    #[param(maximum = 50)]
    limit: Option<usize>,
}

/// The results of a search, best first.
#[derive(Serialize, utoipa::ToSchema)]
pub struct FoundEntities {
    items: Vec<Found>,
}

/// Find entities by words of their names, also with typing errors, best first.
#[utoipa::path(get, path = "/v1/workspace/search", operation_id = "search_workspace", tag = "workspace", params(WorkspaceSearchQuery), responses(
    (status = 200, body = FoundEntities),
    (status = 400, body = Problem, description = "invalid_query"),
    (status = 429, body = Problem, description = "too_many_changes: another search or change of this caller is under way")
))]
pub async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<WorkspaceSearchQuery>,
) -> Result<Json<FoundEntities>, Problem> {
    let words = checked_search(&query.q)?;
    let limit = query.limit.unwrap_or(USUAL_RESULTS);
    if !(1..=MAX_RESULTS).contains(&limit) {
        return Err(Problem::invalid_query(format!("limit is from 1 to {MAX_RESULTS}.")));
    }
    let kinds = kinds_of(query.types.as_deref())?;
    let search =
        Search { query: words, kinds: &kinds, project_id: query.project_id, state: query.state.as_deref(), limit };
    Ok(Json(FoundEntities { items: app.search_workspace(&caller, search).await? }))
}

fn kinds_of(types: Option<&str>) -> Result<Vec<Kind>, Problem> {
    let Some(types) = types else { return Ok(Kind::SEARCHED.to_vec()) };
    let kind = |name: &str| name.trim().parse().ok().filter(|kind| Kind::SEARCHED.contains(kind));
    let kinds: Option<Vec<Kind>> = types.split(',').map(kind).collect();
    let mut kinds = kinds.ok_or_else(|| {
        Problem::invalid_query(format!(
            "types has some of {}, separated by commas.",
            Kind::SEARCHED.map(Kind::as_str).join(", ")
        ))
    })?;
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}
