//! `/v1/runs/{id}/messages` and `/tool_calls`: all that the model of a run was told, said and called.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{page::Page, tool::ToolCall, trace::TraceMessage};
use uuid::Uuid;

use super::{ListQuery, page_size};
use crate::{
    app::App,
    auth::Caller,
    extract::{Query, RunId},
    problem::Problem,
};

/// List what the model of a run was told and said, in order.
#[utoipa::path(get, path = "/v1/runs/{id}/messages", tag = "runs", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Page<TraceMessage>), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn messages(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<TraceMessage>>, Problem> {
    let size = page_size(&app, query.limit.or(Some(app.config().max_page)))?;
    expect_run(&app, &caller, id).await?;
    let page = app.storage().trace_page(id, size, query.cursor.as_deref()).await?;
    let Page { items, next } = page.ok_or_else(Problem::invalid_cursor)?;
    Ok(Json(Page { items: visible_to(&caller, items), next }))
}

/// List which tools a run has called, with what, and what came back, in the order in which the model asked for them.
#[utoipa::path(get, path = "/v1/runs/{id}/tool_calls", tag = "runs", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Page<ToolCall>), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn tool_calls(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<ToolCall>>, Problem> {
    let size = page_size(&app, query.limit.or(Some(app.config().max_page)))?;
    expect_run(&app, &caller, id).await?;
    let page = app.storage().tool_calls_page(id, size, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// A trace as the caller may see it: the instructions belong to the agent's definition, which only operators see.
pub fn visible_to(caller: &Caller, trace: Vec<TraceMessage>) -> Vec<TraceMessage> {
    match caller.is_operator {
        true => trace,
        false => trace.into_iter().map(TraceMessage::without_instructions).collect(),
    }
}

async fn expect_run(app: &App, caller: &Caller, id: Uuid) -> Result<(), Problem> {
    app.storage().run_without_answer(&caller.owner, id).await?.map(drop).ok_or_else(|| Problem::run_not_found(id))
}
