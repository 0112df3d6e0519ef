//! `/v1/collections`: create, list, read, search and delete collections.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use holdfast_knowledge::{Collection, FoundPassage, NewCollection, Readers};
use holdfast_shared::{citation::Citation, hidden::is_visible, page::Page, storable::storable};
use serde::{Deserialize, Serialize};

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{CollectionId, JsonBody, Query},
    page_sizes::{ListQuery, page_size},
    problem::Problem,
};

/// Longest name of a collection, and longest title of a document.
pub const MAX_NAME_CHARS: usize = 200;

/// Longest description of a collection.
const MAX_DESCRIPTION_CHARS: usize = 2000;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCollectionBody {
    /// 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// At most 2,000 characters.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Only an operator may say `everyone`.
    #[serde(default)]
    readable_by: Readers,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct PassageQuery {
    /// Words or a question.
    query: String,
    /// Most passages; 50 by default. A search finds no more than 50.
    limit: Option<usize>,
}

/// The passages that fit a question, best first.
#[derive(Serialize, utoipa::ToSchema)]
pub struct FoundPassages {
    items: Vec<PassageItem>,
}

/// A passage with its text.
#[derive(Serialize, utoipa::ToSchema)]
pub struct PassageItem {
    #[serde(flatten)]
    place: Citation,
    /// The text.
    text: String,
}

impl From<FoundPassage> for PassageItem {
    fn from(found: FoundPassage) -> Self {
        let FoundPassage { id, title, place, text, score } = found;
        let (start, end, page) = (place.start, place.end, place.page);
        Self { place: Citation { id: id.document_id, chunk: id.number, title, page, start, end, score }, text }
    }
}

/// Create a collection of documents.
#[utoipa::path(post, path = "/v1/collections", tag = "knowledge", operation_id = "create_collection", request_body = NewCollectionBody, responses(
    (status = 201, body = Collection, description = "`Location` names it."),
    (status = 400, body = Problem, description = "invalid_collection"),
    (status = 403, body = Problem, description = "too_many_collections, operator_needed")
))]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    JsonBody(body): JsonBody<NewCollectionBody>,
) -> Result<impl IntoResponse, Problem> {
    let name = storable(body.name.trim().to_owned());
    if !is_visible(&name) || name.chars().count() > MAX_NAME_CHARS {
        return Err(Problem::invalid_collection("A collection has a name of 1 to 200 characters, one of them visible"));
    }
    let description = body.description.map(storable);
    if description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        return Err(Problem::invalid_collection("A description has at most 2,000 characters"));
    }
    let new = NewCollection { name, description, readable_by: body.readable_by };
    let collection = app.create_collection(&caller, new).await?;
    let location = format!("/v1/collections/{}", collection.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(collection)))
}

/// List the caller's collections, newest first.
#[utoipa::path(get, path = "/v1/collections", tag = "knowledge", operation_id = "list_collections", params(ListQuery), responses((status = 200, body = Page<Collection>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Collection>>, Problem> {
    let page = app.knowledge().collections(&caller.owner, query.size(&app)?, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a collection.
#[utoipa::path(get, path = "/v1/collections/{id}", tag = "knowledge", operation_id = "read_collection", params(("id" = uuid::Uuid, Path)), responses(
    (status = 200, body = Collection), (status = 404, body = Problem, description = "collection_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    CollectionId(id): CollectionId,
) -> Result<Json<Collection>, Problem> {
    let collection = app.knowledge().collection(&caller.owner, id).await?;
    collection.map(Json).ok_or_else(|| Problem::collection_not_found(id))
}

/// Delete a collection with its documents. The server cancels their runs.
#[utoipa::path(delete, path = "/v1/collections/{id}", tag = "knowledge", operation_id = "delete_collection", params(("id" = uuid::Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "collection_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    CollectionId(id): CollectionId,
) -> Result<StatusCode, Problem> {
    app.delete_collection(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Search the passages of a collection's documents, best first.
#[utoipa::path(get, path = "/v1/collections/{id}/search", tag = "knowledge", operation_id = "search_collection", params(("id" = uuid::Uuid, Path), PassageQuery), responses(
    (status = 200, body = FoundPassages), (status = 404, body = Problem, description = "collection_not_found"),
    (status = 429, body = Problem, description = "too_many_searches")
))]
pub async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    CollectionId(id): CollectionId,
    Query(query): Query<PassageQuery>,
) -> Result<Json<FoundPassages>, Problem> {
    let limit = page_size(&app, query.limit)?.items;
    let found = app.search_collection(&caller, id, &query.query, limit).await?;
    Ok(Json(FoundPassages { items: found.into_iter().map(PassageItem::from).collect() }))
}
