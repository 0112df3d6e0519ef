//! `/v1/plans/{id}` and the plans of runs and conversations.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{page::Page, plan::Plan};

use crate::{
    app::App,
    auth::Caller,
    extract::{ConversationId, PlanId, RunId},
    problem::Problem,
};

/// Read a plan with the states of its steps.
#[utoipa::path(get, path = "/v1/plans/{id}", operation_id = "read_plan", tag = "plans", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Plan), (status = 404, body = Problem, description = "plan_not_found")
))]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, PlanId(id): PlanId) -> Result<Json<Plan>, Problem> {
    let plan = app.storage().plan(id).await?.ok_or_else(|| Problem::plan_not_found(id))?;
    let run = app.storage().run_without_answer(&caller.owner, plan.run_id).await?;
    run.map(|_| Json(plan)).ok_or_else(|| Problem::plan_not_found(id))
}

/// List the plans of a run, newest first, at most 100.
#[utoipa::path(get, path = "/v1/runs/{id}/plans", operation_id = "list_plans_of_run", tag = "plans", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Page<Plan>), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn of_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
) -> Result<Json<Page<Plan>>, Problem> {
    let run = app.storage().run_without_answer(&caller.owner, id).await?;
    run.ok_or_else(|| Problem::run_not_found(id))?;
    Ok(Json(Page { items: app.storage().plans_of_run(id).await?, next: None }))
}

/// List the plans of a conversation, newest first, at most 100.
#[utoipa::path(get, path = "/v1/conversations/{id}/plans", operation_id = "list_plans_of_conversation", tag = "plans", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Page<Plan>), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn of_conversation(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<Page<Plan>>, Problem> {
    let conversation = app.storage().conversation(&caller.owner, id).await?;
    conversation.ok_or_else(|| Problem::conversation_not_found(id))?;
    Ok(Json(Page { items: app.storage().plans_of_conversation(id).await?, next: None }))
}
