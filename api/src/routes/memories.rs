//! `/v1/users/me/memories`: what agents remember of the caller.

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use chrono::{DateTime, Utc};
use futures::stream;
use holdfast_shared::{
    memory::{InvalidMemory, MemoryVersion, MemoryWithVersions, StoredMemory, checked_text, parse_expiry},
    page::{Page, PageSize},
    storage::{self, MemoryChange, MemoryChanged},
};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::{App, time_at_least_rate},
    auth::Caller,
    extract::{JsonBody, MemoryId, Query},
    hang_up::HangUp,
    page_sizes::page_size,
    problem::Problem,
};

/// The memories that a list has.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct MemoryQuery {
    /// Those that the agent of this name wrote.
    agent: Option<String>,
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// The fields of a memory that change; an absent field stays.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryPatch {
    /// The new text.
    text: Option<String>,
    /// The new expiry: an RFC 3339 time, or a date with whose end (UTC) the memory expires. Null: never.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    expires_at: Option<Option<String>>,
    /// The version that the client has read; with another one the change is refused.
    version: Option<u32>,
}

/// Returns a field that the body has; null is `Some(None)`.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// List what agents remember of the caller, newest first.
#[utoipa::path(get, path = "/v1/users/me/memories", operation_id = "list_memories", tag = "memories", params(MemoryQuery), responses(
    (status = 200, body = Page<StoredMemory>), (status = 400, body = Problem, description = "invalid_cursor")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Page<StoredMemory>>, Problem> {
    let size = page_size(&app, query.limit)?;
    let (agent, cursor) = (query.agent.as_deref(), query.cursor.as_deref());
    // No agent has such a name, and PostgreSQL refuses it.
    if agent.is_some_and(|agent| agent.contains('\0')) {
        return Ok(Json(Page { items: Vec::new(), next: None }));
    }
    let page = app.storage().memories(&caller.owner, agent, size, cursor).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a memory with its versions.
#[utoipa::path(get, path = "/v1/users/me/memories/{id}", operation_id = "read_memory", tag = "memories", params(("id" = Uuid, Path)), responses(
    (status = 200, body = MemoryWithVersions), (status = 404, body = Problem, description = "memory_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    MemoryId(id): MemoryId,
) -> Result<Json<MemoryWithVersions>, Problem> {
    let memory = app.storage().memory(&caller.owner, id).await?.ok_or_else(|| Problem::memory_not_found(id))?;
    let versions = app.storage().memory_versions(&caller.owner, vec![id]).await?;
    let versions: Vec<MemoryVersion> = versions.into_iter().map(|(_, version)| version).collect();
    Ok(Json(MemoryWithVersions { memory, versions }))
}

/// Change the text or the expiry of a memory. With `version`, only if the memory still has it.
#[utoipa::path(patch, path = "/v1/users/me/memories/{id}", operation_id = "change_memory", tag = "memories", params(("id" = Uuid, Path)), request_body = MemoryPatch, responses(
    (status = 200, body = StoredMemory),
    (status = 400, body = Problem, description = "invalid_memory"),
    (status = 404, body = Problem, description = "memory_not_found"),
    (status = 409, body = Problem, description = "version_conflict")
))]
pub async fn change(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    MemoryId(id): MemoryId,
    JsonBody(patch): JsonBody<MemoryPatch>,
) -> Result<Json<StoredMemory>, Problem> {
    let change = patch.checked(app.memory_limits().max_chars).map_err(|invalid| Problem::invalid_memory(&invalid))?;
    match app.storage().change_memory(&caller.owner, id, &change).await? {
        MemoryChanged::Changed(memory) => Ok(Json(memory)),
        MemoryChanged::NotFound => Err(Problem::memory_not_found(id)),
        MemoryChanged::Conflict(version) => Err(Problem::memory_conflict(id, version)),
        MemoryChanged::Past => Err(Problem::invalid_memory(&InvalidMemory::Past("expires_at"))),
    }
}

/// Delete a memory with all its versions.
#[utoipa::path(delete, path = "/v1/users/me/memories/{id}", operation_id = "delete_memory", tag = "memories", params(("id" = Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "memory_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    MemoryId(id): MemoryId,
) -> Result<StatusCode, Problem> {
    if app.storage().delete_memory(&caller.owner, id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::memory_not_found(id))
    }
}

/// Delete all that agents remember of the caller.
#[utoipa::path(delete, path = "/v1/users/me/memories", operation_id = "delete_memories", tag = "memories", responses((status = 204)))]
pub async fn delete_all(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
) -> Result<StatusCode, Problem> {
    app.storage().delete_all_memories(&caller.owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Memories that the export has in memory at a time, and the texts of each: the newest one, and those of its versions.
const EXPORTED_AT_A_TIME: usize = 10;
const TEXTS: usize = 21;

/// Most bytes of the export; a slower client than for these is hung up on.
const EXPORTED_BYTES: u64 = 32 << 20;

/// Download all that agents remember of the caller, with all versions: a JSON object in each line.
#[utoipa::path(get, path = "/v1/users/me/memories/export", operation_id = "export_memories", tag = "memories", responses(
    (status = 200, content_type = "application/x-ndjson", body = String, description = "A memory as `GET /v1/users/me/memories/{id}` returns it in each line, newest first.")
))]
pub async fn export(
    State(app): State<Arc<App>>,
    caller: Caller,
    hang_up: Option<Extension<HangUp>>,
) -> Result<impl IntoResponse, Problem> {
    let memory = app
        .unread_answers()
        .hold(&caller, EXPORTED_AT_A_TIME * TEXTS * app.memory_limits().max_chars * char::MAX.len_utf8())?;
    let longest = app.config().answer_timeout + time_at_least_rate(EXPORTED_BYTES);
    let deadline = hang_up.map(|Extension(hang_up)| hang_up.after(longest));
    // The first page is read before the answer begins, so that a failure is a problem and no broken download.
    let first = exported_page(&app, &caller.owner, None).await?;
    let guards = (memory, deadline);
    let pages = stream::try_unfold((Some(first), guards), move |(page, guards)| {
        let (app, owner) = (Arc::clone(&app), caller.owner.clone());
        async move {
            let Some((lines, next)) = page else { return Ok::<_, storage::Error>(None) };
            let following = match next {
                Some(next) => Some(exported_page(&app, &owner, Some(next)).await?),
                None => None,
            };
            Ok(Some((lines, (following, guards))))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"memories.ndjson\""),
    ];
    Ok((headers, Body::from_stream(pages)))
}

/// Returns the lines of a page, and the cursor of the next one.
async fn exported_page(
    app: &App,
    owner: &str,
    cursor: Option<String>,
) -> Result<(Bytes, Option<String>), storage::Error> {
    let size = PageSize { items: EXPORTED_AT_A_TIME, bytes: app.config().max_page_bytes };
    let page = app.storage().memories(owner, None, size, cursor.as_deref()).await?;
    let Page { items, next } = page.expect("the cursor is that of a page");
    let mut versions = app.storage().memory_versions(owner, items.iter().map(|memory| memory.id).collect()).await?;
    let mut lines = String::new();
    for memory in items {
        let own = versions.extract_if(.., |(id, _)| *id == memory.id).map(|(_, version)| version).collect();
        lines.push_str(&json!(MemoryWithVersions { memory, versions: own }).to_string());
        lines.push('\n');
    }
    Ok((lines.into(), next))
}

impl MemoryPatch {
    fn checked(self, most: usize) -> Result<MemoryChange, InvalidMemory> {
        let text = self.text.map(|text| checked_text(&text, most)).transpose()?;
        let expiry = |text: String| -> Result<DateTime<Utc>, InvalidMemory> { parse_expiry(&text, "expires_at") };
        let expires_at = self.expires_at.map(|text| text.map(expiry).transpose()).transpose()?;
        Ok(MemoryChange { text, expires_at, version: self.version })
    }
}
