//! `/v1/plans/{id}` and the plans of runs and conversations.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use holdfast_shared::{
    page::Page,
    plan::{Plan, PlanEdit},
};

use crate::{
    anonymous_limits::AdmittedWriter,
    app::{App, EditedPlan},
    auth::Caller,
    extract::{ConversationId, JsonBody, PlanId, RunId},
    problem::Problem,
};

/// Read a plan with the states of its steps.
#[utoipa::path(get, path = "/v1/plans/{id}", operation_id = "read_plan", tag = "plans", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Plan), (status = 404, body = Problem, description = "plan_not_found")
))]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, PlanId(id): PlanId) -> Result<Json<Plan>, Problem> {
    app.plan(&caller.owner, id).await.map(Json)
}

/// Change steps of a plan that is executed. They run again, and the steps that need them.
#[utoipa::path(patch, path = "/v1/plans/{id}", operation_id = "edit_plan", tag = "plans", params(("id" = Uuid, Path)), request_body = PlanEdit, responses(
    (status = 200, body = Plan),
    (status = 202, body = Plan, description = "the plan as it will be: its planner works at the moment, and makes the change before its next steps"),
    (status = 400, body = Problem, description = "invalid_plan: the changed plan cannot be executed"),
    (status = 404, body = Problem, description = "plan_not_found"),
    (status = 409, body = Problem, description = "plan_not_executing: the plan waits for an approval, or has ended")
))]
pub async fn edit(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    PlanId(id): PlanId,
    JsonBody(edit): JsonBody<PlanEdit>,
) -> Result<(StatusCode, Json<Plan>), Problem> {
    Ok(match app.edit_plan(&caller.owner, id, edit).await? {
        EditedPlan::Changed(plan) => (StatusCode::OK, Json(plan)),
        EditedPlan::Accepted(plan) => (StatusCode::ACCEPTED, Json(plan)),
    })
}

/// List the plans of a run, newest first, at most 20.
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
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    Ok(Json(Page { items: app.storage().plans_of_run(id).await?, next: None }))
}

/// List the plans of a conversation, newest first, at most 20.
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
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    Ok(Json(Page { items: app.storage().plans_of_conversation(id).await?, next: None }))
}
