//! The vectors of passages as pgvector compares them, for collections that have no room in memory.
//!
//! They are copies, where the database has the extension. A removed vector takes its copy with it (`on delete cascade`). A
//! document keeps the `vectors_at` of its copies, so a change of its vectors makes it one that lacks copies.

use chrono::{DateTime, Utc};
use holdfast_shared::database::{Error, args};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{
    Knowledge,
    vector_memory::scale,
    vector_search::{QueryVector, with_vectors},
};
use crate::passage::PassageId;

/// Vectors that one statement copies: with 4,096 dimensions about 5 MB of text.
const ROWS: usize = 100;

/// pgvector refuses longer vectors.
const MOST_DIMENSIONS: usize = 16_000;

holdfast_shared::statements! {
    /// Returns documents with vectors that lack copies.
    UNCOPIED_DOCUMENTS {
        postgres = "
            select id
            from documents
            where embedded > 0
              and deleted_at is null
              and embeddings_at is distinct from vectors_at
            order by id
            limit $1
        ",
    },
    /// Returns the model of a document whose vectors lack copies, and the time of their newest change.
    UNCOPIED {
        postgres = "
            select vectors_model, vectors_at
            from documents
            where id = $1
              and embedded > 0
              and deleted_at is null
              and embeddings_at is distinct from vectors_at
        ",
    },
    /// Returns vectors of a document without a copy, from a number on.
    UNCOPIED_VECTORS {
        postgres = "
            select v.number, v.vector
            from passage_vectors v
            where v.document_id = $1
              and v.model = $2
              and v.number >= $3
              and v.vector is not null
              and not exists (
                  select 1
                  from passage_embeddings e
                  where e.document_id = v.document_id
                    and e.model = v.model
                    and e.number = v.number
              )
            order by v.number
            limit $4
        ",
    },
    /// Stores copies of vectors. Another worker may store them too.
    INSERT_EMBEDDINGS {
        postgres = "
            insert into passage_embeddings (document_id, model, number, embedding)
            select $1, $2, cast(value->>'number' as bigint), embedding_of(value->>'vector')
            from {each:$3}
            on conflict (document_id, model, number) do nothing
            returning number
        ",
    },
    /// Notes that a document has the copies of its vectors as of a time.
    NOTE_COPIED {
        postgres = "
            update documents
            set embeddings_at = $2
            where id = $1
            returning id
        ",
    },
    /// Returns the passages of a collection that are nearest to a question, best first. The subquery reads the question
    /// once and not for each row.
    NEAREST {
        postgres = concat!("
            select e.document_id, e.number,
                embedding_product(e.embedding, (select embedding_of($3))) as similarity
            from documents d
            join passage_embeddings e on e.document_id = d.id
            where e.model = $2
              and e.dimensions = $4
              and ", with_vectors!(), "
            order by similarity desc, e.document_id, e.number
            limit $5
        "),
    },
}

impl Knowledge {
    /// Returns some documents whose vectors lack copies for pgvector; none without the extension.
    pub async fn documents_without_embeddings(&self, limit: usize) -> Result<Vec<Uuid>, Error> {
        if !self.has_pgvector {
            return Ok(Vec::new());
        }
        let rows = self.database.fetch_all::<(Uuid,)>("find vectors to copy", UNCOPIED_DOCUMENTS, args![limit]);
        Ok(rows.await?.into_iter().map(|row| row.0).collect())
    }

    /// Copies the vectors of a document for pgvector, if the database has it.
    pub async fn copy_vectors(&self, document_id: Uuid) -> Result<(), Error> {
        const DOING: &str = "copy vectors for pgvector";
        type Uncopied = (String, DateTime<Utc>);
        if !self.has_pgvector {
            return Ok(());
        }
        let uncopied = self.database.fetch_optional::<Uncopied>(DOING, UNCOPIED, args![document_id]).await?;
        let Some((model, changed_at)) = uncopied else { return Ok(()) };
        let mut from = 0;
        loop {
            let args = args![document_id, model.as_str(), from, ROWS];
            let vectors = self.database.fetch_all::<(i64, Vec<u8>)>(DOING, UNCOPIED_VECTORS, args).await?;
            let Some((last, _)) = vectors.last() else { break };
            from = last + 1;
            let texts = spawn_blocking(move || Value::Array(vectors.iter().filter_map(copy_of).collect()));
            let texts = texts.await.expect("vectors become texts without a panic");
            let args = args![document_id, model.as_str(), texts];
            self.database.write::<(i64,)>(DOING, INSERT_EMBEDDINGS, args).await?;
        }
        // Vectors that have changed since then have another time, so the document still lacks copies.
        let args = args![document_id, Some(changed_at)];
        self.database.write::<(Uuid,)>(DOING, NOTE_COPIED, args).await.map(drop)
    }

    /// Returns the passages of a collection that are nearest to a question, best first, with scores like those of vectors in
    /// memory. None without pgvector; and if it fails or takes too long, words alone find them.
    pub(super) async fn best_by_pgvector(
        &self,
        collection: Uuid,
        question: &QueryVector,
        limit: usize,
    ) -> Vec<(PassageId, f64)> {
        if !self.has_pgvector {
            return Vec::new();
        }
        let dimensions = question.values.len();
        let args = args![collection, question.model.as_str(), text_of(&question.values), dimensions, limit];
        let rows = self.database.fetch_all::<(Uuid, i64, f64)>("search vectors by pgvector", NEAREST, args).await;
        match rows {
            Ok(rows) => {
                let scale = f64::from(scale(dimensions));
                let passage = |(document_id, number, product): (Uuid, i64, f64)| {
                    (PassageId { document_id, number: number as u64 }, product * scale * scale)
                };
                rows.into_iter().map(passage).collect()
            }
            Err(error) => {
                tracing::warn!(
                    collection.id = %collection,
                    error = &error as &dyn std::error::Error,
                    "failed to search vectors by pgvector; words alone find passages of the collection"
                );
                Vec::new()
            }
        }
    }
}

/// Returns a vector as a value of `INSERT_EMBEDDINGS`; `None` for one that pgvector refuses.
fn copy_of((number, bytes): &(i64, Vec<u8>)) -> Option<Value> {
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let is_accepted = (1..=MOST_DIMENSIONS).contains(&values.len()) && values.iter().all(|x| x.is_finite());
    is_accepted.then(|| json!({"number": number, "vector": text_of(&values)}))
}

/// Returns a vector as pgvector reads it.
fn text_of(values: &[f32]) -> String {
    serde_json::to_string(values).expect("numbers are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_that_pgvector_refuses_is_not_copied() {
        let text = |values: &[f32]| {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            copy_of(&(7, bytes)).map(|value| value["vector"].as_str().map(str::to_owned))
        };
        assert_eq!(text(&[0.5, -1e-9]), Some(Some("[0.5,-1e-9]".to_owned())));
        for refused in [&[][..], &[0.5, f32::NAN], &[f32::INFINITY], &[0.0; MOST_DIMENSIONS + 1]] {
            assert_eq!(text(refused), None);
        }
    }
}
