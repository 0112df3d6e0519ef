//! The knowledge of an owner: collections of documents, and the search in their passages.
//!
//! Reading order: [`collection`] and [`document`] are what the API shows. [`words`] makes the words of a text, which the
//! database indexes. [`ranking`] puts together what several searches have found. [`storage`] keeps all of it. Nothing here
//! knows HTTP, files or models.

mod collection;
mod document;
mod passage;
mod ranking;
mod storage;
mod words;

pub use collection::{Collection, NewCollection, Readers};
pub use document::{Document, DocumentError, DocumentStatus, VectorCoverage};
pub use passage::{FoundPassage, NewPassage, PassageId};
pub use ranking::fuse;
pub use storage::{
    Hold, Ingested, Knowledge, PIECE_CHARS, QueryVector, SearchScope, StoreOutcome, TextRange, UnembeddedDocument,
    UnembeddedPassage, statement_texts,
};
pub use words::words_of;
