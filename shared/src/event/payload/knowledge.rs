//! The events about documents: how far their ingestion is, and which passages an answer is made of.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::citation::{Citation, DropReason};

/// How far the ingestion of a document is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DocumentProgress {
    /// The document.
    pub document_id: Uuid,
    /// The step that is under way.
    pub stage: IngestionStage,
    /// The progress of the step: passages, or bytes of the file while the worker extracts its text.
    pub done: u64,
    /// The whole work of the step.
    pub total: u64,
}

/// A step of an ingestion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IngestionStage {
    /// Reads the text out of the file, and cuts it into passages.
    Extract,
    /// Asks for the vectors of the passages.
    Embed,
    /// Puts the words of the passages into the index.
    Index,
    /// A step of a later version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The model has passages of documents before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextRetrieved<'a> {
    /// The passages, in the order of their numbers.
    #[serde(borrow)]
    pub passages: Vec<RetrievedPassage<'a>>,
}

/// A passage before the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RetrievedPassage<'a> {
    /// The number by which the model cites it.
    pub number: u32,
    /// The document.
    pub document: Uuid,
    /// The number of the passage in the document, from 0.
    pub chunk: u64,
    /// The title of the document.
    #[serde(borrow)]
    pub title: Cow<'a, str>,
    /// The page on which it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// How well it fits, within one search.
    pub score: f64,
}

/// The answer cites a passage for the first time. The event follows the delta that has the mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CitationAdded {
    /// The number in the answer's text, as in `[1]`.
    pub number: u32,
    /// The passage.
    pub source: Citation,
}

/// The step of the model had a mark that is not in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CitationDropped {
    /// The number that the model wrote.
    pub number: u64,
    /// Why the mark was dropped.
    pub reason: DropReason,
}
