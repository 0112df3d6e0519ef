//! `/v1/runs/{id}/messages` and `/tool_calls`: all that the model of a run was told, said and called.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{tool::ToolCall, trace::TraceMessage};
use serde::Serialize;
use uuid::Uuid;

use crate::{app::App, auth::Caller, extract::RunId, problem::Problem};

/// The messages of a run's trace, in order.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Trace {
    items: Vec<TraceMessage>,
}

/// The tool calls of a run, in the order in which the model asked for them.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ToolCalls {
    items: Vec<ToolCall>,
}

/// Read what the model of a run was told and said.
#[utoipa::path(get, path = "/v1/runs/{id}/messages", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Trace), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn messages(State(app): State<Arc<App>>, caller: Caller, RunId(id): RunId) -> Result<Json<Trace>, Problem> {
    expect_run(&app, &caller, id).await?;
    Ok(Json(Trace { items: app.storage().trace(id).await? }))
}

/// Read which tools a run has called, with what, and what came back.
#[utoipa::path(get, path = "/v1/runs/{id}/tool_calls", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 200, body = ToolCalls), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn tool_calls(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
) -> Result<Json<ToolCalls>, Problem> {
    expect_run(&app, &caller, id).await?;
    Ok(Json(ToolCalls { items: app.storage().tool_calls(id).await? }))
}

async fn expect_run(app: &App, caller: &Caller, id: Uuid) -> Result<(), Problem> {
    app.storage().run_without_answer(&caller.owner, id).await?.map(drop).ok_or_else(|| Problem::run_not_found(id))
}
