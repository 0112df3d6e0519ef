//! `/v1/files`: upload, list, read and delete files.

mod download;
mod name;
mod upload;

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use holdfast_shared::{file::StoredFile, page::Page};
use uuid::Uuid;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{FileId, Query},
    page_sizes::ListQuery,
    problem::Problem,
};

/// Upload a file. The body is the file's bytes with its name in `content-disposition`, or `multipart/form-data` with the field
/// `file`. A body of which `content-range` says that it is the beginning of a larger file gets 202, and PATCH brings the rest.
#[utoipa::path(post, path = "/v1/files", tag = "files", operation_id = "create",
    params(
        ("content-disposition" = Option<String>, Header, description = "The name, as in `attachment; filename=\"report.pdf\"`."),
        ("content-range" = Option<String>, Header, description = "The part of the file that the body is, as in `bytes 0-1048575/5242880`."),
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same file."),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, body = StoredFile, description = "The file is stored; `Location` names it."),
        (status = 202, body = StoredFile, description = "The upload continues from `received`."),
        (status = 400, body = Problem, description = "empty_file, invalid_upload, upload_broken, invalid_idempotency_key"),
        (status = 403, body = Problem, description = "too_many_files, file_quota_exceeded"),
        (status = 408, body = Problem, description = "body_timeout"),
        (status = 413, body = Problem, description = "file_too_large"),
        (status = 415, body = Problem, description = "file_type_refused"),
        (status = 422, body = Problem, description = "idempotency_key_reused"),
        (status = 429, body = Problem, description = "too_many_bodies"),
        (status = 503, body = Problem, description = "files_unavailable, bodies_busy")
    )
)]
pub async fn create(State(app): State<Arc<App>>, caller: Caller, request: Request) -> Result<Response, Problem> {
    upload_whole(&app, &caller, request).await.map(stored)
}

/// Stores the file of a request, or its beginning.
pub async fn upload_whole(app: &Arc<App>, caller: &Caller, request: Request) -> Result<StoredFile, Problem> {
    // An upload costs an anonymous caller as much as a run.
    app.anonymous_limits().admit(caller).await?;
    let in_flight = app.bodies().begin_upload(caller)?;
    upload::create(app, caller, in_flight, request).await
}

/// Continue an upload. `content-range` begins at the file's `received`, and has the file's size.
#[utoipa::path(patch, path = "/v1/files/{id}", tag = "files", operation_id = "resume",
    params(("id" = uuid::Uuid, Path), ("content-range" = String, Header, description = "As in `bytes 1048576-2097151/5242880`.")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, body = StoredFile, description = "The file is stored."),
        (status = 202, body = StoredFile, description = "The upload continues from `received`."),
        (status = 400, body = Problem, description = "empty_file, invalid_upload, upload_broken"),
        (status = 403, body = Problem, description = "file_quota_exceeded: the upload has rested, and other files have taken its room"),
        (status = 404, body = Problem, description = "file_not_found"),
        (status = 408, body = Problem, description = "body_timeout"),
        (status = 409, body = Problem, description = "upload_offset: the range begins elsewhere; upload_ended: the file has other bytes there"),
        (status = 413, body = Problem, description = "file_too_large"),
        (status = 415, body = Problem, description = "file_type_refused"),
        (status = 429, body = Problem, description = "too_many_bodies"),
        (status = 503, body = Problem, description = "files_unavailable, bodies_busy")
    )
)]
pub async fn resume(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    FileId(id): FileId,
    request: Request,
) -> Result<Response, Problem> {
    let in_flight = app.bodies().begin_upload(&caller)?;
    upload::resume(&app, &caller, id, in_flight, request).await.map(stored)
}

/// List files, newest first.
#[utoipa::path(get, path = "/v1/files", tag = "files", params(ListQuery), responses((status = 200, body = Page<StoredFile>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<StoredFile>>, Problem> {
    let page = app.storage().files(&caller.owner, query.size(&app)?, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a file, or the part of it that `range` names. HEAD says how far an upload is.
#[utoipa::path(get, path = "/v1/files/{id}", tag = "files",
    params(("id" = uuid::Uuid, Path), ("range" = Option<String>, Header, description = "As in `bytes=0-1023`.")),
    responses(
        (status = 200, description = "The file's bytes, under its own media type.", content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "*/*"))),
        (status = 206, description = "The part of them.", content((Vec<u8> = "application/octet-stream"), (Vec<u8> = "*/*"))),
        (status = 304, description = "The client has it already."),
        (status = 404, body = Problem, description = "file_not_found"),
        (status = 409, body = Problem, description = "upload_unfinished: `upload-offset` says how many bytes are there"),
        (status = 416, body = Problem, description = "range_not_satisfiable"),
        (status = 429, body = Problem, description = "too_many_answers")
    )
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    FileId(id): FileId,
    request: Parts,
) -> Result<Response, Problem> {
    contents(&app, &caller, id, &request).await
}

/// Returns the contents of a file, as the request wants them.
pub async fn contents(app: &Arc<App>, caller: &Caller, id: Uuid, request: &Parts) -> Result<Response, Problem> {
    let file = app.file(caller, id).await?;
    download::respond(app, caller, file, request).await
}

/// Delete a file. Messages keep its name.
#[utoipa::path(delete, path = "/v1/files/{id}", tag = "files", params(("id" = uuid::Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "file_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    FileId(id): FileId,
) -> Result<StatusCode, Problem> {
    if app.storage().delete_file(&caller.owner, id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::file_not_found(id))
}

fn stored(file: StoredFile) -> Response {
    let status = if file.is_complete() { StatusCode::CREATED } else { StatusCode::ACCEPTED };
    (status, [(header::LOCATION, format!("/v1/files/{}", file.id))], Json(file)).into_response()
}
