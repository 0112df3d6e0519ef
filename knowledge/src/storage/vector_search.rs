//! The search by meaning: the vectors of a collection, read once into memory and later only those of changed documents. Where
//! they have no room, [`super::embeddings`] searches them.

use std::{ops::Range, sync::Arc};

use chrono::{DateTime, Utc};
use holdfast_shared::database::{Error, args};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    Knowledge,
    vector_memory::{CollectionVectors, EmbeddedDocument, VectorKey, VectorRoom, VectorState, code},
};
use crate::passage::PassageId;

/// Passages whose vectors one statement reads, at most: with 4,096 dimensions 16 MiB.
const ROWS: u64 = 1000;

/// The condition for documents of the collection `$1` that searches find by vectors of the model `$2`.
macro_rules! with_vectors {
    () => {
        "collection_id = $1
          and vectors_model = $2
          and embedded > 0
          and indexed_at is not null
          and deleted_at is null"
    };
}
pub(super) use with_vectors;

holdfast_shared::statements! {
    /// Returns the number of documents with vectors, that of their vectors, and the time of the newest change.
    VECTOR_STATE = concat!("
        select count(*), cast(coalesce(sum(embedded), 0) as bigint), max(vectors_at)
        from documents
        where ", with_vectors!()),
    /// Returns these documents.
    WITH_VECTORS = concat!("
        select id, passages, vectors_at
        from documents
        where ", with_vectors!(), "
        order by id
    "),
    /// Returns the vectors of a range of passages of documents.
    VECTORS = "
        select document_id, number, vector
        from passage_vectors
        where document_id {in:$1}
          and model = $2
          and number >= $3
          and number < $4
          and vector is not null
    ",
    /// Returns the models by whose vectors searches find documents of collections, and how many each.
    MODELS = "
        select vectors_model, count(*)
        from documents
        where collection_id {in:$1}
          and embedded > 0
          and indexed_at is not null
          and deleted_at is null
        group by vectors_model
    ",
}

/// The vector of a question.
#[derive(Debug, Clone)]
pub struct QueryVector {
    /// The model, as the vectors of passages are stored under it.
    pub model: String,
    /// Of length 1.
    pub values: Vec<f32>,
}

/// Documents, and the passages of each, whose vectors one statement reads.
type VectorBatch = (Vec<EmbeddedDocument>, Range<u64>);

impl Knowledge {
    /// Returns the models by whose vectors searches find documents of these collections; that of most documents comes first.
    pub async fn models_of(&self, collections: &[Uuid]) -> Result<Vec<String>, Error> {
        let args = args![collections.to_vec()];
        let mut rows = self.database.fetch_all::<(String, i64)>("find the models of vectors", MODELS, args).await?;
        rows.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Returns the passages of a collection that are nearest to the question, best first. If their vectors have no room in memory,
    /// pgvector finds them, or only words do.
    pub(super) async fn best_by_vector(
        &self,
        collection: Uuid,
        question: &QueryVector,
        limit: usize,
    ) -> Result<Vec<(PassageId, f64)>, Error> {
        let vectors = self.vectors_of(&(collection, question.model.clone())).await?;
        let Some(vectors) = vectors.filter(|vectors| vectors.dimensions == question.values.len()) else {
            return Ok(Vec::new());
        };
        if vectors.is_too_large {
            return Ok(self.best_by_pgvector(collection, question, limit).await);
        }
        let code = code(&question.values);
        let best = spawn_blocking(move || vectors.nearest(&code, limit));
        Ok(best.await.expect("vectors are compared without a panic"))
    }

    /// Returns the vectors of a collection, with those of documents that are new since the last time, or the note that they have no
    /// room. `None` if there are none.
    async fn vectors_of(&self, key: &VectorKey) -> Result<Option<Arc<CollectionVectors>>, Error> {
        type State = (i64, i64, Option<DateTime<Utc>>);
        let args = args![key.0, key.1.as_str()];
        let state = self.database.fetch_optional::<State>("read the state of vectors", VECTOR_STATE, args).await?;
        let (documents, vectors, changed_at) = state.unwrap_or_default();
        if documents == 0 {
            return Ok(None);
        }
        let state = VectorState { documents: documents as u64, vectors: vectors as u64, changed_at };
        if let Some(known) = self.vectors.get(key).filter(|known| known.state == state) {
            return Ok(Some(known));
        }
        let _turn = self.vectors.turn(key).await;
        let known = self.vectors.get(key).unwrap_or_default();
        if known.state == state {
            return Ok(Some(known));
        }
        self.load(key, state, &known).await.map(Some)
    }

    /// Reads the vectors that are not known. As soon as it is clear that the collection has no room, the rest is not read, and no
    /// other collection leaves the memory for it.
    async fn load(
        &self,
        key: &VectorKey,
        state: VectorState,
        known: &CollectionVectors,
    ) -> Result<Arc<CollectionVectors>, Error> {
        type Row = (Uuid, i64, Option<DateTime<Utc>>);
        const DOING: &str = "read vectors";
        let args = args![key.0, key.1.as_str()];
        let rows = self.database.fetch_all::<Row>(DOING, WITH_VECTORS, args).await?;
        let document = |(id, passages, changed_at)| EmbeddedDocument { id, passages: passages as u64, changed_at };
        let documents: Vec<EmbeddedDocument> = rows.into_iter().map(document).collect();
        let (mut vectors, unread) = known.still_valid(&documents);
        let mut room = None;
        for (some, numbers) in batches(&unread) {
            // The first batch tells how long a vector is.
            if room.is_none() && vectors.dimensions > 0 {
                room = self.room_for(key, state, &vectors, known);
                if room.is_none() {
                    return Ok(without_room(state, &vectors));
                }
            }
            let ids: Vec<Uuid> = some.iter().map(|document| document.id).collect();
            let args = args![ids, key.1.as_str(), numbers.start as i64, numbers.end as i64];
            vectors.add(&some, &self.database.fetch_all::<(Uuid, i64, Vec<u8>)>(DOING, VECTORS, args).await?);
        }
        // The documents may have changed since their state was read.
        drop(room);
        let Some(_room) = self.room_for(key, state, &vectors, known) else {
            return Ok(without_room(state, &vectors));
        };
        vectors.state = state;
        let vectors = Arc::new(vectors);
        self.vectors.keep(key, Arc::clone(&vectors));
        Ok(vectors)
    }

    /// Makes room for all vectors of a collection. `None` without room for them, which the log says once.
    fn room_for(
        &self,
        key: &VectorKey,
        state: VectorState,
        vectors: &CollectionVectors,
        known: &CollectionVectors,
    ) -> Option<VectorRoom<'_>> {
        let bytes = (state.vectors as usize).saturating_mul(vectors.dimensions).max(vectors.bytes());
        if bytes > self.vectors.most_bytes {
            if !known.is_too_large {
                let others = if self.has_pgvector { "pgvector searches" } else { "words alone find" };
                tracing::warn!(
                    collection.id = %key.0,
                    bytes,
                    "the vectors of a collection have no room in HOLDFAST_VECTOR_BYTES; {others} its passages"
                );
            }
            self.vectors.keep(key, without_room(state, vectors));
            return None;
        }
        self.vectors.make_room(key, bytes)
    }
}

/// Returns the note that the vectors of a collection have no room.
fn without_room(state: VectorState, vectors: &CollectionVectors) -> Arc<CollectionVectors> {
    Arc::new(CollectionVectors::too_large(state, vectors.dimensions))
}

/// Returns which vectors each statement reads: of several short documents, or of a part of a long one.
fn batches(documents: &[EmbeddedDocument]) -> Vec<VectorBatch> {
    let mut batches: Vec<VectorBatch> = Vec::new();
    let mut short: Vec<EmbeddedDocument> = Vec::new();
    let mut passages = 0;
    for document in documents {
        if document.passages > ROWS {
            let starts = (0..document.passages).step_by(ROWS as usize);
            batches.extend(starts.map(|start| (vec![*document], start..start + ROWS)));
            continue;
        }
        if passages + document.passages > ROWS {
            batches.push((std::mem::take(&mut short), 0..ROWS));
            passages = 0;
        }
        passages += document.passages;
        short.push(*document);
    }
    if !short.is_empty() {
        batches.push((short, 0..ROWS));
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_more_than_its_rows() {
        let document = |(id, passages): (u128, &u64)| EmbeddedDocument {
            id: Uuid::from_u128(id),
            passages: *passages,
            changed_at: None,
        };
        let check = |passages: &[u64], expected: &[(usize, Range<u64>)]| {
            let documents: Vec<EmbeddedDocument> = (0..).zip(passages).map(document).collect();
            let batches = batches(&documents).into_iter().map(|(some, numbers)| (some.len(), numbers));
            assert_eq!(batches.collect::<Vec<_>>(), expected, "{passages:?}");
        };
        check(&[], &[]);
        check(&[400, 600, 1], &[(2, 0..1000), (1, 0..1000)]);
        check(&[2001, 5], &[(1, 0..1000), (1, 1000..2000), (1, 2000..3000), (1, 0..1000)]);
        check(&[1000, 1000], &[(1, 0..1000), (1, 0..1000)]);
    }
}
