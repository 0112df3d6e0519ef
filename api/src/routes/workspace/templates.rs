//! The templates that users request, for operators.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use holdfast_shared::page::Page;
use holdfast_workspace::{Entity, Kind, Patch};
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::WorkspaceEntity;
use crate::{
    app::App,
    auth::{Caller, Operator},
    extract::{JsonBody, Query},
    page_sizes::page_size,
    problem::Problem,
};

/// The page of requested templates that an operator reads.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct TemplatesQuery {
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<Uuid>,
}

/// List the templates that users have requested, newest first, for operators.
#[utoipa::path(get, path = "/v1/workspace/template_requests", operation_id = "list_template_requests", tag = "workspace", params(TemplatesQuery), responses(
    (status = 200, body = Page<WorkspaceEntity>), (status = 403, body = Problem, description = "operator_needed")
))]
pub async fn requested(
    State(app): State<Arc<App>>,
    _: Operator,
    caller: Caller,
    Query(query): Query<TemplatesQuery>,
) -> Result<Json<Page<Entity>>, Problem> {
    let size = page_size(&app, query.limit)?;
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    Ok(Json(app.workspace().requested_templates(query.cursor, size).await?))
}

/// Publish a requested template for all users, with these fields, for operators. The reason and the wishes of the request are
/// removed.
#[utoipa::path(post, path = "/v1/workspace/template_requests/{id}/publish", operation_id = "publish_template", tag = "workspace", params(("id" = Uuid, Path)), request_body = ref("#/components/schemas/PublishedTemplate"), responses(
    (status = 200, body = WorkspaceEntity),
    (status = 400, body = Problem, description = "invalid_entity"),
    (status = 403, body = Problem, description = "operator_needed"),
    (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn publish(
    State(app): State<Arc<App>>,
    _: Operator,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(mut input): JsonBody<Map<String, Value>>,
) -> Result<Json<Entity>, Problem> {
    let id = id.parse().map_err(|_| Problem::entity_not_found(Kind::Template, &id))?;
    let owner = app.workspace().owner_of_template(id).await?;
    owner.ok_or_else(|| Problem::entity_not_found(Kind::Template, id))?;
    // All users read the template, so the words of the request stay with its author.
    input.entry("description").or_insert(Value::Null);
    input.insert("props".to_owned(), Value::Null);
    input.insert("state".to_owned(), Value::from("published"));
    let patch = Patch::read(Kind::Template, input).map_err(|invalid| Problem::invalid_entity(&invalid))?;
    app.change_template(&caller, id, patch).await.map(Json)
}

/// Withdraw a requested or published template for operators: it becomes a draft of its owner, which others do not see.
#[utoipa::path(delete, path = "/v1/workspace/template_requests/{id}", operation_id = "withdraw_template", tag = "workspace", params(("id" = Uuid, Path)), responses(
    (status = 204),
    (status = 403, body = Problem, description = "operator_needed"),
    (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn withdraw(
    State(app): State<Arc<App>>,
    _: Operator,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let id = id.parse().map_err(|_| Problem::entity_not_found(Kind::Template, &id))?;
    let draft = Map::from_iter([("state".to_owned(), Value::from("draft"))]);
    let patch = Patch::read(Kind::Template, draft).map_err(|invalid| Problem::invalid_entity(&invalid))?;
    app.change_template(&caller, id, patch).await.map(|_| StatusCode::NO_CONTENT)
}
