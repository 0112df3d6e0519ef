//! Problems with collections and their documents.

use std::fmt::Display;

use axum::http::StatusCode;
use uuid::Uuid;

use super::{Problem, counted};

impl Problem {
    pub fn collection_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "collection_not_found", format!("There is no collection {id}."))
    }

    pub fn document_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "document_not_found", format!("There is no document {id}."))
    }

    pub fn invalid_collection(problem: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_collection", format!("{problem}."))
    }

    pub fn operator_needed_for_everyone() -> Self {
        let detail = "Only a token with the role operator may let everyone read a collection.";
        Self::new(StatusCode::FORBIDDEN, "operator_needed", detail)
    }

    pub fn too_many_collections(most: usize) -> Self {
        let detail = format!("An owner may have {}; delete one first.", counted(most, "collection"));
        Self::new(StatusCode::FORBIDDEN, "too_many_collections", detail)
    }

    pub fn too_many_documents(most: usize) -> Self {
        let detail = format!("An owner may have {}; delete one first.", counted(most, "document"));
        Self::new(StatusCode::FORBIDDEN, "too_many_documents", detail)
    }

    pub fn too_much_text(most: u64) -> Self {
        let detail =
            format!("The texts of an owner's documents may have {most} bytes together; delete documents first.");
        Self::new(StatusCode::FORBIDDEN, "too_much_text", detail)
    }

    pub fn document_type_refused(media_type: &str) -> Self {
        let detail = format!("No text can be extracted from a file of type {media_type}.");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "document_type_refused", detail)
    }

    pub fn nothing_to_retry(id: Uuid) -> Self {
        let detail = format!("The document {id} is ready and lacks no vectors, or its run has not ended.");
        Self::new(StatusCode::CONFLICT, "nothing_to_retry", detail)
    }

    pub fn invalid_knowledge(most: usize) -> Self {
        let detail = format!("knowledge is a list of ids of at most {}.", counted(most, "collection"));
        Self::new(StatusCode::BAD_REQUEST, "invalid_knowledge", detail)
    }
}
