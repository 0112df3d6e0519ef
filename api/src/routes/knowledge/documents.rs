//! `/v1/documents`: add documents to a collection, follow their ingestion, read their texts.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use holdfast_knowledge::Document;
use holdfast_shared::{
    file::UserContent,
    hidden::{is_visible, without_hidden},
    page::Page,
    run::Run,
    storable::storable,
    storage::{MessageInput, RunOptions, Target},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::collections::MAX_NAME_CHARS;
use crate::{
    anonymous_limits::AdmittedWriter,
    app::{App, Posting, SubmittedDocument},
    auth::Caller,
    extract::{CollectionId, DocumentId, JsonBody, Query, idempotency_key},
    page_sizes::ListQuery,
    problem::Problem,
};

/// Characters of a text that one answer has, at most.
const MAX_TEXT_CHARS: u64 = 1 << 20;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDocumentBody {
    /// A file of the caller.
    file_id: Uuid,
    /// 1 to 200 characters; the name of the file by default.
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
}

/// A document with the run that makes it ready.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AcceptedDocument {
    document: Document,
    run: Run,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct TextQuery {
    /// The place of the first character, in Unicode scalar values; 0 by default.
    #[serde(default)]
    from: u64,
    /// The place after the last character; at most 1,048,576 after `from`, which is the default.
    to: Option<u64>,
}

/// Add a document to a collection. Its ingestion is a run, whose events tell the progress.
#[utoipa::path(post, path = "/v1/collections/{id}/documents", tag = "knowledge", operation_id = "create_document", request_body = NewDocumentBody,
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same document.")),
    responses(
        (status = 202, body = AcceptedDocument, description = "Committed; `Location` names the document."),
        (status = 400, body = Problem, description = "invalid_title, invalid_idempotency_key"),
        (status = 403, body = Problem, description = "too_many_documents, quota_exceeded"),
        (status = 404, body = Problem, description = "collection_not_found, file_not_found"),
        (status = 415, body = Problem, description = "document_type_refused"),
        (status = 422, body = Problem, description = "idempotency_key_reused"),
        (status = 429, body = Problem, description = "too_many_runs")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    CollectionId(collection): CollectionId,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewDocumentBody>,
) -> Result<Response, Problem> {
    let title = body.title.map(|title| storable(without_hidden(&title).trim().to_owned()));
    if title.as_ref().is_some_and(|title| !is_visible(title) || title.chars().count() > MAX_NAME_CHARS) {
        return Err(Problem::invalid_title(MAX_NAME_CHARS));
    }
    let (collection_text, file_text) = (collection.to_string(), body.file_id.to_string());
    let fingerprint = ["document", &collection_text, &file_text, title.as_deref().unwrap_or_default()];
    let key = idempotency_key(&headers, &fingerprint, &RunOptions::default())?;
    let target = Target::New { agent_id: None };
    let posting = Posting { key, ..Posting::new(target, MessageInput::New(UserContent::default())) };
    app.submit_document(&caller, collection, body.file_id, title, posting).await.map(accepted)
}

/// List the documents of a collection, newest first.
#[utoipa::path(get, path = "/v1/collections/{id}/documents", tag = "knowledge", operation_id = "list_documents", params(("id" = Uuid, Path), ListQuery), responses(
    (status = 200, body = Page<Document>), (status = 404, body = Problem, description = "collection_not_found")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    CollectionId(id): CollectionId,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Document>>, Problem> {
    let knowledge = app.knowledge();
    knowledge.collection(&caller.owner, id).await?.ok_or_else(|| Problem::collection_not_found(id))?;
    let page = knowledge.documents(&caller.owner, id, query.size(&app)?, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a document, with its status.
#[utoipa::path(get, path = "/v1/documents/{id}", tag = "knowledge", operation_id = "read_document", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Document), (status = 404, body = Problem, description = "document_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    DocumentId(id): DocumentId,
) -> Result<Json<Document>, Problem> {
    let document = app.knowledge().document(&caller.owner, id).await?;
    document.map(Json).ok_or_else(|| Problem::document_not_found(id))
}

/// Read the text that was extracted from a document, or a part of it. Citations name places in this text.
#[utoipa::path(get, path = "/v1/documents/{id}/text", tag = "knowledge", operation_id = "read_text", params(("id" = Uuid, Path), TextQuery), responses(
    (status = 200, content_type = "text/plain", body = String, description = "The part of the text; empty if it is not extracted."),
    (status = 404, body = Problem, description = "document_not_found")
))]
pub async fn text(
    State(app): State<Arc<App>>,
    caller: Caller,
    DocumentId(id): DocumentId,
    Query(query): Query<TextQuery>,
) -> Result<Response, Problem> {
    let knowledge = app.knowledge();
    knowledge.document(&caller.owner, id).await?.ok_or_else(|| Problem::document_not_found(id))?;
    let most = query.from.saturating_add(MAX_TEXT_CHARS);
    let to = query.to.unwrap_or(most);
    if to < query.from || to > most {
        return Err(Problem::invalid_query(format!("to is a place from `from` to {MAX_TEXT_CHARS} after it.")));
    }
    let _assembled = app.unread_answers().assemble(&caller, (to - query.from) as usize * 2)?;
    let part = knowledge.text(&caller.owner, id, query.from..to).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    Ok((headers, part.text).into_response())
}

/// Try the ingestion of a document again that failed or was cancelled, or that is ready without vectors of the server's model.
#[utoipa::path(post, path = "/v1/documents/{id}/retry", tag = "knowledge", operation_id = "retry_document", params(("id" = Uuid, Path)), responses(
    (status = 202, body = AcceptedDocument), (status = 404, body = Problem, description = "document_not_found, file_not_found"),
    (status = 409, body = Problem, description = "nothing_to_retry"),
    (status = 429, body = Problem, description = "too_many_runs")
))]
pub async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    DocumentId(id): DocumentId,
) -> Result<Response, Problem> {
    app.retry_document(&caller, id).await.map(accepted)
}

/// Delete a document. The server cancels its run, and no search finds it any more.
#[utoipa::path(delete, path = "/v1/documents/{id}", tag = "knowledge", operation_id = "delete_document", params(("id" = Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "document_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    DocumentId(id): DocumentId,
) -> Result<StatusCode, Problem> {
    app.delete_document(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn accepted(SubmittedDocument { document, run }: SubmittedDocument) -> Response {
    let location = format!("/v1/documents/{}", document.id);
    (StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(AcceptedDocument { document, run })).into_response()
}
