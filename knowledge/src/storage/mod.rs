//! Knowledge in the database. Every function works for one owner, and shows nothing that this owner may not read.

mod collections;
mod documents;
mod embeddings;
mod extracted;
mod ingestion;
mod removal;
mod search;
mod texts;
mod vector_memory;
mod vector_search;
mod vectors;
mod word_query;
mod word_search;

use std::sync::Arc;

use holdfast_shared::{
    database::{Database, Sql},
    quotas::KnowledgeLimits,
    storage::{BackEnd, Pgvector, Storage},
};

use vector_memory::VectorMemory;

pub use ingestion::{Hold, Ingested, StoreOutcome};
pub use search::SearchScope;
pub use texts::{PIECE_CHARS, TextRange};
pub use vector_search::QueryVector;
pub use vectors::{UnembeddedDocument, UnembeddedPassage};

/// The knowledge of a deployment; cheap to clone.
#[derive(Clone)]
pub struct Knowledge {
    database: Database,
    limits: KnowledgeLimits,
    vectors: Arc<VectorMemory>,
    has_pgvector: bool,
}

impl Knowledge {
    /// Returns the knowledge in the database of `storage`. All clones together have at most `vector_bytes` of vectors in
    /// memory.
    pub fn new(storage: &Storage, limits: KnowledgeLimits, vector_bytes: usize) -> Self {
        let vectors = Arc::new(VectorMemory::new(vector_bytes));
        let has_pgvector = storage.pgvector() == Pgvector::Ready;
        Self { database: storage.database().clone(), limits, vectors, has_pgvector }
    }
}

/// The condition that the owner of this parameter may read the collection `c`.
macro_rules! may_read {
    ($owner:literal) => {
        concat!("c.deleted_at is null and (c.owner_id = ", $owner, " or c.readable_by = 'everyone')")
    };
}
use may_read;

/// Returns the name of each statement, with its text for the database, which must be able to prepare it.
pub fn statement_texts(storage: &Storage) -> Vec<(&'static str, String)> {
    const FILES: &[&[Sql]] = &[
        collections::STATEMENTS,
        documents::STATEMENTS,
        extracted::STATEMENTS,
        ingestion::STATEMENTS,
        removal::STATEMENTS,
        search::STATEMENTS,
        texts::STATEMENTS,
        vector_search::STATEMENTS,
        vectors::STATEMENTS,
        word_search::STATEMENTS,
    ];
    let of_pgvector = Some(embeddings::STATEMENTS).filter(|_| storage.pgvector() == Pgvector::Ready);
    let all = FILES.iter().copied().chain(of_pgvector).flatten().copied();
    match storage.back_end() {
        BackEnd::Postgres => {
            all.filter(|sql| sql.is_for_postgres()).map(|sql| (sql.name(), sql.for_postgres())).collect()
        }
        BackEnd::Sqlite | BackEnd::Memory => {
            all.filter(|sql| sql.is_for_sqlite()).map(|sql| (sql.name(), sql.for_sqlite())).collect()
        }
    }
}
