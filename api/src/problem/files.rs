//! Problems with files, and with messages that have them.

use std::fmt::Display;

use axum::http::StatusCode;
use holdfast_shared::file_store;
use uuid::Uuid;

use super::{Problem, counted};

impl Problem {
    pub fn file_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "file_not_found", format!("There is no file {id}."))
    }

    pub fn file_too_large(most: u64) -> Self {
        let detail = format!("The file is larger than {most} bytes, or than its request has said.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", detail)
    }

    pub fn file_type_refused(media_type: &str) -> Self {
        let detail = format!("The contents of the file are {media_type}, which HOLDFAST_FILE_TYPES does not allow.");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "file_type_refused", detail)
    }

    pub fn empty_file() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "empty_file", "The file has no bytes.")
    }

    pub fn invalid_upload(problem: impl Display) -> Self {
        let detail = format!(
            "{problem}. Send the file's bytes with its name in content-disposition, or multipart/form-data with the field file."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_upload", detail)
    }

    pub fn no_upload_range(id: Uuid) -> Self {
        let detail = format!(
            "content-range is missing; it names the bytes that follow, such as bytes 1048576-2097151/5000000. HEAD /v1/files/{id} says from where the upload continues."
        );
        Self::new(StatusCode::BAD_REQUEST, "invalid_upload", detail)
    }

    pub fn upload_broken() -> Self {
        let detail = "The request's body ended too early; HEAD /v1/files/{id} says from where an upload with content-range continues.";
        Self::new(StatusCode::BAD_REQUEST, "upload_broken", detail)
    }

    pub fn upload_offset(id: Uuid, received: u64, bytes: u64) -> Self {
        let detail = format!(
            "The upload of file {id} continues with content-range: bytes {received}-{}/{bytes}.",
            bytes.saturating_sub(1)
        );
        Self::new(StatusCode::CONFLICT, "upload_offset", detail)
    }

    pub fn upload_ended(id: Uuid) -> Self {
        let detail = format!("The upload of file {id} has ended with other bytes; upload another file.");
        Self::new(StatusCode::CONFLICT, "upload_ended", detail)
    }

    pub fn upload_taken(id: Uuid) -> Self {
        let detail = format!("The file {id} was deleted, or another request brings its bytes.");
        Self::new(StatusCode::CONFLICT, "upload_taken", detail)
    }

    pub fn upload_unfinished(id: Uuid) -> Self {
        let detail = format!("The upload of file {id} has not ended.");
        Self::new(StatusCode::CONFLICT, "upload_unfinished", detail)
    }

    pub fn range_not_satisfiable(bytes: u64) -> Self {
        let detail = format!("The file has {}.", counted(bytes as usize, "byte"));
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail)
    }

    pub fn too_many_files(most: usize) -> Self {
        let detail = format!("An owner may have {}; delete one first.", counted(most, "file"));
        Self::new(StatusCode::FORBIDDEN, "too_many_files", detail)
    }

    pub fn file_quota_exceeded(most: u64) -> Self {
        let detail = format!("Your files would have more than {most} bytes together; delete one first.");
        Self::new(StatusCode::FORBIDDEN, "file_quota_exceeded", detail)
    }

    pub fn too_many_attachments(most: usize) -> Self {
        let detail = format!("A message may have {}.", counted(most, "file"));
        Self::new(StatusCode::BAD_REQUEST, "too_many_attachments", detail)
    }

    pub fn attachment_not_taken(name: &str, media_type: &str, model: &str) -> Self {
        let detail = format!(
            "The model {model} takes no files of type {media_type}, so {name:?} was not sent; leave it out, or choose another model."
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "attachment_not_taken", detail)
    }
}

impl From<file_store::Error> for Problem {
    fn from(error: file_store::Error) -> Self {
        match error {
            file_store::Error::Database(error) => error.into(),
            error => {
                tracing::error!(error = &error as &dyn std::error::Error, "failed to use the store of files");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "files_unavailable",
                    "The store of files does not answer; try again.",
                )
            }
        }
    }
}
