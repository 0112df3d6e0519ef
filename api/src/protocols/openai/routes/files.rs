//! `/openai/v1/files`: the files of the native API, as OpenAI has them. The id of a file is the same on both.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State},
    http::request::Parts,
    response::Response,
};
use holdfast_shared::{file::StoredFile, page::PageSize};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{self, Query},
    problem::Problem,
    routes::files,
};

/// Most files of a page.
const MAX_PAGE: usize = 100;

/// The query of a list of files, which ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct FilesQuery {
    /// Most files, from 1 to 100; 20 by default.
    limit: Option<usize>,
    /// The id of the file after which the page begins.
    after: Option<String>,
}

/// The form of an upload.
#[derive(utoipa::ToSchema)]
#[schema(as = OpenAiUpload)]
#[allow(dead_code)]
pub struct UploadForm {
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Upload a file: `multipart/form-data` with the field `file`. `purpose` has no effect.
#[utoipa::path(post, path = "/openai/v1/files", operation_id = "create_file", tag = "openai",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = Object, description = "The file."),
        (status = 400, body = Object, description = "empty_file, invalid_upload, upload_broken"),
        (status = 403, body = Object, description = "too_many_files, file_quota_exceeded"),
        (status = 413, body = Object, description = "file_too_large"),
        (status = 415, body = Object, description = "file_type_refused"),
        (status = 429, body = Object, description = "too_many_bodies")
    )
)]
pub async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Json<Value>, Problem> {
    files::upload_whole(&app, &caller, request).await.map(|file| Json(json_of(&file)))
}

/// List files, newest first.
#[utoipa::path(get, path = "/openai/v1/files", operation_id = "list_files", tag = "openai", params(FilesQuery),
    responses((status = 200, body = Object, description = "The list of files."))
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<FilesQuery>,
) -> Result<Json<Value>, Problem> {
    let size = PageSize { items: query.limit.unwrap_or(20).clamp(1, MAX_PAGE), bytes: app.config().max_page_bytes };
    let page = app.storage().files(&caller.owner, size, query.after.as_deref()).await?;
    let page = page.ok_or_else(Problem::invalid_cursor)?;
    let data: Vec<Value> = page.items.iter().map(json_of).collect();
    let id = |file: Option<&Value>| file.map_or(Value::Null, |file| file["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    Ok(Json(json!({
        "object": "list", "data": data, "first_id": first, "last_id": last, "has_more": page.next.is_some()
    })))
}

/// Read what is known of a file.
#[utoipa::path(get, path = "/openai/v1/files/{id}", operation_id = "read_file", tag = "openai",
    params(("id" = String, Path, description = "The id of a file.")),
    responses((status = 200, body = Object, description = "The file."), (status = 404, body = Object, description = "file_not_found"))
)]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    Ok(Json(json_of(&app.file(&caller, file_id(&id)?).await?)))
}

/// Read the contents of a file.
#[utoipa::path(get, path = "/openai/v1/files/{id}/content", operation_id = "read_file_content", tag = "openai",
    params(("id" = String, Path, description = "The id of a file.")),
    responses(
        (status = 200, description = "The file's bytes, under its own media type.", content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "*/*"))),
        (status = 404, body = Object, description = "file_not_found"),
        (status = 409, body = Object, description = "upload_unfinished")
    )
)]
pub async fn content(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Parts,
) -> Result<Response, Problem> {
    files::contents(&app, &caller, file_id(&id)?, &request).await
}

/// Delete a file. Messages keep its name.
#[utoipa::path(delete, path = "/openai/v1/files/{id}", operation_id = "delete_file", tag = "openai",
    params(("id" = String, Path, description = "The id of a file.")),
    responses((status = 200, body = Object, description = "The file is deleted."), (status = 404, body = Object, description = "file_not_found"))
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let file_id = file_id(&id)?;
    if !app.storage().delete_file(&caller.owner, file_id).await? {
        return Err(Problem::file_not_found(file_id));
    }
    Ok(Json(json!({"id": id, "object": "file", "deleted": true})))
}

fn file_id(id: &str) -> Result<Uuid, Problem> {
    extract::id(id).map_err(Problem::file_not_found)
}

fn json_of(file: &StoredFile) -> Value {
    let status = if file.is_complete() { "processed" } else { "uploaded" };
    json!({
        "id": file.id, "object": "file", "bytes": file.bytes, "created_at": file.created_at.timestamp(),
        "filename": file.name, "purpose": "user_data", "status": status
    })
}
