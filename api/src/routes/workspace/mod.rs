//! `/v1/workspace`: projects, tasks, plans, goals, documents and outputs, their history, and the undo of changes.

pub mod search;
pub mod templates;

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, header, request::Parts},
    response::IntoResponse,
};
use holdfast_shared::page::Page;
use holdfast_workspace::{Change, Entity, Filter, Kind, NewEntity, Patch, TaskOrder, Undone};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::{App, UndoneChanges},
    auth::Caller,
    extract::{JsonBody, Query, RunId},
    page_sizes::page_size,
    problem::Problem,
};

/// An entity of any kind. The document has the entities of each kind (`document_workspace.rs`).
#[derive(Serialize, utoipa::ToSchema)]
#[schema(value_type = Object)]
#[allow(dead_code)]
pub struct WorkspaceEntity(Map<String, Value>);

/// The kind in the path, as a plural.
pub struct KindInPath(Kind);

/// The kind and the id of an entity in the path.
pub struct EntityInPath(Kind, Uuid);

/// The entities that a list has.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct EntityQuery {
    /// Those of this project.
    project_id: Option<Uuid>,
    /// Of edges: those that have this entity as an end.
    entity_id: Option<Uuid>,
    /// Those in this state, or in one of these, with commas between them.
    state: Option<String>,
    /// Of tasks: `newest`, the default; `priority`, the most important first; or `due`, those that are due first.
    order: Option<String>,
    /// Of tasks: those of this priority.
    priority: Option<i64>,
    /// Of tasks: those that are due before this time.
    due_before: Option<String>,
    /// Of tasks: those of this plan.
    plan_id: Option<Uuid>,
    /// Of tasks: those of this goal.
    goal_id: Option<Uuid>,
    /// Of documents: those of this type.
    #[serde(rename = "type")]
    document_type: Option<String>,
    /// Of projects: those of this type.
    type_key: Option<String>,
    /// Of edges: those of this relation.
    relation: Option<String>,
    /// Of templates: the one with this key.
    key: Option<String>,
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<Uuid>,
}

/// The page of changes that the client requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ChangesQuery {
    /// Most items of the page; 20 by default, and at most.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<Uuid>,
}

/// How an undo treats entities that were changed again.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct UndoQuery {
    /// True: such entities stay as they are. False: nothing is undone if there is one.
    #[serde(default)]
    force: bool,
}

/// List entities of a kind, newest first. Bodies of documents and outputs are left out.
#[utoipa::path(get, path = "/v1/workspace/{kind}", operation_id = "list_entities", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), EntityQuery), responses(
    (status = 200, body = Page<WorkspaceEntity>), (status = 404, body = Problem, description = "kind_not_found")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    KindInPath(kind): KindInPath,
    Query(query): Query<EntityQuery>,
) -> Result<Json<Page<Entity>>, Problem> {
    let size = page_size(&app, query.limit)?;
    let (filter, order) = (query.filter(kind)?, query.order(kind)?);
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    let workspace = app.workspace();
    if kind == Kind::Template {
        let (state, key) = (query.state.as_deref(), query.key.as_deref());
        return Ok(Json(workspace.templates(&caller.owner, state, key, query.cursor, size).await?));
    }
    Ok(Json(match order {
        Some(order) => workspace.ordered_tasks(&caller.owner, order, &filter, query.cursor, size).await?,
        None => workspace.list(&caller.owner, kind, &filter, query.cursor, size).await?,
    }))
}

/// Create an entity.
#[utoipa::path(post, path = "/v1/workspace/{kind}", operation_id = "create_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$")), request_body = WorkspaceEntity, responses(
    (status = 201, body = WorkspaceEntity),
    (status = 400, body = Problem, description = "invalid_entity: also if the workspace lacks what a field names, or only an operator publishes"),
    (status = 403, body = Problem, description = "workspace_full"),
    (status = 404, body = Problem, description = "kind_not_found")
))]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    KindInPath(kind): KindInPath,
    JsonBody(input): JsonBody<Map<String, Value>>,
) -> Result<impl IntoResponse, Problem> {
    let new = NewEntity::read(kind, input).map_err(|invalid| Problem::invalid_entity(&invalid))?;
    let entity = app.create_entity(&caller, new).await?;
    let location = format!("/v1/workspace/{}/{}", kind.plural(), entity.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(entity)))
}

/// Read an entity.
#[utoipa::path(get, path = "/v1/workspace/{kind}/{id}", operation_id = "read_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), ("id" = Uuid, Path)), responses(
    (status = 200, body = WorkspaceEntity), (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    EntityInPath(kind, id): EntityInPath,
) -> Result<Json<Entity>, Problem> {
    let entity = app.workspace().get(&caller.owner, kind, id).await?;
    entity.map(Json).ok_or_else(|| Problem::entity_not_found(kind, id))
}

/// Change fields of an entity. With `version`, only if the entity still has it.
#[utoipa::path(patch, path = "/v1/workspace/{kind}/{id}", operation_id = "change_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), ("id" = Uuid, Path)), request_body = WorkspaceEntity, responses(
    (status = 200, body = WorkspaceEntity),
    (status = 400, body = Problem, description = "invalid_entity"),
    (status = 403, body = Problem, description = "workspace_full"),
    (status = 404, body = Problem, description = "entity_not_found"),
    (status = 409, body = Problem, description = "version_conflict")
))]
pub async fn change(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    EntityInPath(kind, id): EntityInPath,
    JsonBody(input): JsonBody<Map<String, Value>>,
) -> Result<Json<Entity>, Problem> {
    match Patch::read(kind, input) {
        Ok(patch) => app.change_entity(&caller, id, patch).await.map(Json),
        Err(invalid) => {
            let entity = app.workspace().get(&caller.owner, kind, id).await?;
            entity.ok_or_else(|| Problem::entity_not_found(kind, id))?;
            Err(Problem::invalid_entity(&invalid))
        }
    }
}

/// Delete an entity with all that belongs to it. It can be restored for 30 days.
#[utoipa::path(delete, path = "/v1/workspace/{kind}/{id}", operation_id = "delete_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), ("id" = Uuid, Path)), responses(
    (status = 204),
    (status = 403, body = Problem, description = "workspace_full; change_too_large: the project has too much for one change"),
    (status = 400, body = Problem, description = "invalid_entity: only an operator deletes a published template"),
    (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    EntityInPath(kind, id): EntityInPath,
) -> Result<StatusCode, Problem> {
    app.delete_entity(&caller, kind, id).await.map(|()| StatusCode::NO_CONTENT)
}

/// Restore a deleted entity with all that was deleted with it.
#[utoipa::path(post, path = "/v1/workspace/{kind}/{id}/restore", operation_id = "restore_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), ("id" = Uuid, Path)), responses(
    (status = 200, body = WorkspaceEntity),
    (status = 403, body = Problem, description = "workspace_full; change_too_large: the project has too much for one change"),
    (status = 400, body = Problem, description = "invalid_entity: the project is deleted"),
    (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn restore(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    EntityInPath(kind, id): EntityInPath,
) -> Result<Json<Entity>, Problem> {
    app.restore_entity(&caller, kind, id).await.map(Json)
}

/// List the changes of an entity, newest first, at most 20 a page.
#[utoipa::path(get, path = "/v1/workspace/{kind}/{id}/changes", operation_id = "list_changes_of_entity", tag = "workspace", params(("kind" = String, Path, pattern = "^(projects|tasks|plans|goals|documents|outputs|edges|templates)$"), ("id" = Uuid, Path), ChangesQuery), responses(
    (status = 200, body = Page<Change>), (status = 404, body = Problem, description = "entity_not_found")
))]
pub async fn changes_of(
    State(app): State<Arc<App>>,
    caller: Caller,
    EntityInPath(kind, id): EntityInPath,
    Query(query): Query<ChangesQuery>,
) -> Result<Json<Page<Change>>, Problem> {
    let page = changes_page(&app, &caller, Some((kind, id)), &query).await?;
    // The changes of an entity are forgotten before the entity.
    if page.items.is_empty() && app.workspace().get(&caller.owner, kind, id).await?.is_none() {
        return Err(Problem::entity_not_found(kind, id));
    }
    Ok(Json(page))
}

/// List all changes of the caller's workspace, newest first, at most 20 a page.
#[utoipa::path(get, path = "/v1/workspace/changes", operation_id = "list_changes", tag = "workspace", params(ChangesQuery), responses((status = 200, body = Page<Change>)))]
pub async fn changes(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ChangesQuery>,
) -> Result<Json<Page<Change>>, Problem> {
    changes_page(&app, &caller, None, &query).await.map(Json)
}

/// Undo a set of changes, unless an entity was changed again since. Undoing the set of the answer takes the undo back.
#[utoipa::path(post, path = "/v1/workspace/change_sets/{id}/undo", operation_id = "undo_changes", tag = "workspace", params(("id" = Uuid, Path), UndoQuery), responses(
    (status = 200, body = UndoneChanges),
    (status = 403, body = Problem, description = "workspace_full; change_too_large: the set has too much for one undo"),
    (status = 404, body = Problem, description = "change_set_not_found"),
    (status = 409, body = Problem, description = "already_undone; changed_since, which lists the entities")
))]
pub async fn undo(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(id): Path<String>,
    Query(query): Query<UndoQuery>,
) -> Result<Json<UndoneChanges>, Problem> {
    let set = id.parse().map_err(|_| Problem::change_set_not_found(&id))?;
    app.undo_changes(&caller, Undone::Set(set), query.force).await.map(Json)
}

/// Undo all that a run and the runs below it have changed in the workspace, as for a set of changes.
#[utoipa::path(post, path = "/v1/runs/{id}/undo", operation_id = "undo_run", tag = "workspace", params(("id" = Uuid, Path), UndoQuery), responses(
    (status = 200, body = UndoneChanges),
    (status = 403, body = Problem, description = "workspace_full; change_too_large: the run has changed too much for one undo"),
    (status = 404, body = Problem, description = "run_not_found; change_set_not_found: the run has changed nothing"),
    (status = 409, body = Problem, description = "run_live; already_undone; changed_since, which lists the entities")
))]
pub async fn undo_run(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    RunId(id): RunId,
    Query(query): Query<UndoQuery>,
) -> Result<Json<UndoneChanges>, Problem> {
    let run = app.storage().run_without_answer(&caller.owner, id).await?;
    run.ok_or_else(|| Problem::run_not_found(id))?;
    app.undo_changes(&caller, Undone::Run(id), query.force).await.map(Json)
}

/// The undo of what a run has changed.
#[derive(Serialize, utoipa::ToSchema)]
pub struct UndoState {
    /// The set of changes that has undone them; null if they are not undone, or the undo was taken back.
    change_set_id: Option<Uuid>,
}

/// Read whether what a run has changed is undone.
#[utoipa::path(get, path = "/v1/runs/{id}/undo", operation_id = "read_undo_of_run", tag = "workspace", params(("id" = Uuid, Path)), responses(
    (status = 200, body = UndoState),
    (status = 404, body = Problem, description = "run_not_found")
))]
pub async fn read_undo_of_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
) -> Result<Json<UndoState>, Problem> {
    let run = app.storage().run_without_answer(&caller.owner, id).await?;
    run.ok_or_else(|| Problem::run_not_found(id))?;
    Ok(Json(UndoState { change_set_id: app.undo_of_run(&caller, id).await? }))
}

impl EntityQuery {
    /// Returns the order of the list; `None` for the newest first.
    fn order(&self, kind: Kind) -> Result<Option<TaskOrder>, Problem> {
        match self.order.as_deref() {
            None | Some("newest") => Ok(None),
            Some(_) if kind != Kind::Task => Err(Problem::invalid_query("Only tasks have an order.")),
            Some(order) => {
                let known = TaskOrder::parse(order).map(Some);
                known.ok_or_else(|| Problem::invalid_query("order is newest, priority or due."))
            }
        }
    }

    /// Returns the filter of a list of a kind.
    fn filter(&self, kind: Kind) -> Result<Filter, Problem> {
        let values = [
            ("project_id", json!(self.project_id)),
            ("entity_id", json!(self.entity_id)),
            ("state", json!(self.state)),
            ("priority", json!(self.priority)),
            ("due_before", json!(self.due_before)),
            ("plan_id", json!(self.plan_id)),
            ("goal_id", json!(self.goal_id)),
            ("type", json!(self.document_type)),
            ("type_key", json!(self.type_key)),
            ("relation", json!(self.relation)),
            ("key", json!(self.key)),
        ];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Filter::read(kind, values).map_err(|invalid| Problem::invalid_query(format!("{invalid}.")))
    }
}

async fn changes_page(
    app: &App,
    caller: &Caller,
    entity: Option<(Kind, Uuid)>,
    query: &ChangesQuery,
) -> Result<Page<Change>, Problem> {
    let size = page_size(app, query.limit)?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    Ok(app.workspace().changes(&caller.owner, entity, query.cursor, size).await?)
}

impl<S: Send + Sync> FromRequestParts<S> for KindInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(plural) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| Problem::kind_not_found(""))?;
        Kind::of_plural(&plural).map(Self).ok_or_else(|| Problem::kind_not_found(&plural))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EntityInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((plural, id)) = path.map_err(|_| Problem::kind_not_found(""))?;
        let kind = Kind::of_plural(&plural).ok_or_else(|| Problem::kind_not_found(&plural))?;
        id.parse().map(|id| Self(kind, id)).map_err(|_| Problem::entity_not_found(kind, id))
    }
}
