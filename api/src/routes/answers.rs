//! `/v1/runs/{id}/approvals` and `/tool_results`: the open questions of a waiting run, and the answers to them.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{
    approval::{Approval, Decision},
    page::Page,
    run::Run,
    storable::has_nul,
    storage::ClientResult,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    app::App,
    auth::Caller,
    extract::{self, JsonBody, PartOf, Query, RunId},
    page_sizes::{ListQuery, page_size},
    problem::Problem,
};

/// A page of a run's approvals, in order.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Approvals {
    /// Whether the caller may decide them.
    may_decide: bool,
    items: Vec<Approval>,
    /// The cursor of the next page, null at the end.
    next: Option<String>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionBody {
    decision: DecisionChoice,
    /// For the model and the record.
    reason: Option<String>,
    /// Arguments that replace the model's.
    edited_input: Option<Value>,
}

#[derive(Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Verdict)]
pub enum DecisionChoice {
    Approve,
    Deny,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The tool's output: a text or any JSON, null included.
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    /// The reason why the tool has no output.
    error: Option<String>,
}

/// Reads a present field as `Some`, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// List the approvals of a run, in order, for the run's owner with those of the runs below it.
#[utoipa::path(get, path = "/v1/runs/{id}/approvals", tag = "runs", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Approvals), (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn approvals(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Approvals>, Problem> {
    let size = page_size(&app, query.limit.or(Some(app.config().max_page)))?;
    let (asked, may_decide) = app.asked_run(&caller, id).await?;
    let page = app.storage().approvals_page(id, size, query.cursor.as_deref()).await?;
    let Page { mut items, next } = page.ok_or_else(Problem::invalid_cursor)?;
    // The approvers of this run's agent may not see what the agents of runs below ask.
    items.retain(|approval| approval.run_id == id || asked.owner == caller.owner);
    Ok(Json(Approvals { may_decide, items, next }))
}

/// Approve or deny a call. The first decision counts. The run continues when no other question is open.
#[utoipa::path(post, path = "/v1/runs/{id}/approvals/{approval_id}", tag = "runs", request_body = DecisionBody,
    params(("id" = Uuid, Path), ("approval_id" = Uuid, Path)), responses(
    (status = 200, body = Run),
    (status = 400, body = Problem, description = "invalid_input: edited_input breaks the tool's schema; content_too_long: the reason or edited_input; invalid_content, invalid_body"),
    (status = 403, body = Problem, description = "approver_needed: the agent names other users as approvers"),
    (status = 404, body = Problem, description = "run_not_found, approval_not_found"),
    (status = 409, body = Problem, description = "already_decided (with the first decision), expired, run_not_waiting")
))]
pub async fn decide(
    State(app): State<Arc<App>>,
    caller: Caller,
    PartOf(RunId(id), approval_id): PartOf<RunId>,
    JsonBody(body): JsonBody<DecisionBody>,
) -> Result<Json<Run>, Problem> {
    let approval_id = extract::id(&approval_id).map_err(|text| Problem::approval_not_found(text, id))?;
    let texts = [body.edited_input.as_ref().map(has_nul), body.reason.as_ref().map(|reason| reason.contains('\0'))];
    if texts.contains(&Some(true)) {
        return Err(Problem::invalid_content());
    }
    let decision = match body.decision {
        DecisionChoice::Approve => Decision::Approve { edited_input: body.edited_input, reason: body.reason },
        DecisionChoice::Deny if body.edited_input.is_some() => {
            return Err(Problem::invalid_body("A denial must not have edited_input."));
        }
        DecisionChoice::Deny => Decision::Deny { reason: body.reason },
    };
    app.decide(&caller, id, approval_id, decision).await.map(Json)
}

/// Submit the result of a call that the client has executed. The first result counts.
#[utoipa::path(post, path = "/v1/runs/{id}/tool_results/{call_id}", tag = "runs", request_body = ToolResult,
    params(("id" = Uuid, Path), ("call_id" = String, Path)), responses(
    (status = 200, body = Run),
    (status = 400, body = Problem, description = "invalid_content, invalid_body"),
    (status = 404, body = Problem, description = "run_not_found, call_not_found"),
    (status = 409, body = Problem, description = "already_completed, expired, run_not_waiting")
))]
pub async fn complete(
    State(app): State<Arc<App>>,
    caller: Caller,
    PartOf(RunId(id), call_id): PartOf<RunId>,
    JsonBody(body): JsonBody<ToolResult>,
) -> Result<Json<Run>, Problem> {
    if body.output.as_ref().is_some_and(has_nul) || body.error.as_ref().is_some_and(|error| error.contains('\0')) {
        return Err(Problem::invalid_content());
    }
    let result = match (body.output, body.error) {
        (Some(Value::String(text)), None) => ClientResult::Output(text),
        (Some(output), None) => ClientResult::Output(output.to_string()),
        (None, Some(error)) => ClientResult::Error(error),
        _ => return Err(Problem::invalid_body("A result must have either an output or an error.")),
    };
    app.complete_client_call(&caller.owner, id, call_id, result).await.map(Json)
}
