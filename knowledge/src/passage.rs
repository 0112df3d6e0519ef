//! Passages: the parts of a document that a search finds, and that citations name.

use serde::Serialize;
use uuid::Uuid;

/// A passage of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageId {
    /// The document.
    pub document_id: Uuid,
    /// The number of the passage in it, from 0.
    pub number: u64,
}

/// A passage before it is stored. Places are in Unicode scalar values of the document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewPassage {
    /// The number of the passage in the document, from 0.
    pub number: u64,
    /// The place of its first character.
    pub start: u64,
    /// The place after its last character.
    pub end: u64,
    /// The page on which it begins.
    pub page: Option<u32>,
    /// The headings above it.
    pub heading: Option<String>,
}

/// A passage that a search has found, with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPassage {
    /// The passage.
    pub id: PassageId,
    /// The title of its document.
    pub title: String,
    /// Where it is.
    pub place: NewPassage,
    /// Its text.
    pub text: String,
    /// How well it fits, above 0; comparable within one search only.
    pub score: f64,
}
