//! Documents, whose status is that of their ingestion.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A document of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Document {
    /// UUIDv7.
    pub id: Uuid,
    /// Its collection.
    pub collection_id: Uuid,
    /// Its name for people.
    pub title: String,
    /// The file of which it is made; null for a reader who is not the owner.
    pub file_id: Option<Uuid>,
    /// The media type of the file.
    pub media_type: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// How far its ingestion is.
    pub status: DocumentStatus,
    /// Why the ingestion failed; null for a reader who is not the owner.
    pub error: Option<DocumentError>,
    /// The newest run of its ingestion, whose events tell the progress; null for a reader who is not the owner.
    pub run_id: Option<Uuid>,
    /// Unicode scalar values of its text, once it is extracted.
    pub chars: Option<u64>,
    /// Passages that a search can find.
    pub passages: u64,
    /// Which passages a search finds by their meaning too.
    pub vectors: VectorCoverage,
    /// The model of these vectors, as `<provider>/<name>`.
    pub vectors_model: Option<String>,
    /// Why passages lack vectors; null for a reader who is not the owner.
    pub vectors_error: Option<DocumentError>,
    /// Time of the database.
    #[serde(serialize_with = "holdfast_shared::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time at which searches began to find it.
    #[serde(serialize_with = "holdfast_shared::timestamp::optional_milliseconds")]
    pub indexed_at: Option<DateTime<Utc>>,
}

/// How far the ingestion of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocumentStatus {
    /// Its run waits for a worker.
    Queued,
    /// A worker extracts, cuts or indexes it.
    Processing,
    /// Searches find it, at least by its words.
    Ready,
    /// Its run failed; `error` says why.
    Failed,
    /// Its run was cancelled.
    Cancelled,
}

impl DocumentStatus {
    /// Returns the status of a document, from its place in the search and the status of its newest run.
    pub fn of(is_indexed: bool, run: Option<&str>) -> Self {
        match run {
            _ if is_indexed => Self::Ready,
            Some("queued") => Self::Queued,
            Some("running" | "waiting") => Self::Processing,
            Some("cancelled") => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

/// The passages of a document that have a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VectorCoverage {
    /// All of them.
    Complete,
    /// Some of them.
    Partial,
    /// None of them: searches find the document by its words alone.
    None,
}

impl VectorCoverage {
    /// Returns the coverage of a document with so many passages, of which some have a vector.
    pub const fn of(passages: u64, embedded: u64) -> Self {
        match embedded {
            0 => Self::None,
            embedded if embedded < passages => Self::Partial,
            _ => Self::Complete,
        }
    }
}

/// Why an ingestion failed, or why passages lack vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DocumentError {
    /// A code such as `malformed_document`.
    pub code: String,
    /// The reason, for people.
    pub message: String,
}
