//! `/v1/runs/{id}/messages` and `/tool_calls`: the input and output of a run's model, and its tool calls.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{page::Page, tool::ToolCall, trace::TraceMessage};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    extract::{Query, RunId},
    page_sizes::{ListQuery, page_size},
    problem::Problem,
};

/// List the messages to and from a run's model, in order.
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

/// List the tool calls of a run with their inputs and results, in the order in which the model requested them.
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

/// Returns a trace as the caller may see it. Only operators see the instructions, because they belong to the agent's
/// definition.
pub fn visible_to(caller: &Caller, trace: Vec<TraceMessage>) -> Vec<TraceMessage> {
    if caller.is_operator { trace } else { trace.into_iter().map(TraceMessage::without_instructions).collect() }
}

async fn expect_run(app: &App, caller: &Caller, id: Uuid) -> Result<(), Problem> {
    app.storage().run_without_answer(&caller.owner, id).await?.map(drop).ok_or_else(|| Problem::run_not_found(id))
}
