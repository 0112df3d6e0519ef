//! SEARCH: the passages of some collections that fit a question, by words and, where there are vectors, by meaning.

use std::{collections::HashMap, ops::Range};

use futures::future::try_join;
use holdfast_shared::{
    agent::MAX_COLLECTIONS,
    database::{Error, args},
    storage::ToldPassage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Knowledge, may_read,
    texts::{PIECE_CHARS, part_of, piece_chars},
    vector_search::QueryVector,
    word_search::{CommonWords, SearchedCollection},
};
use crate::{
    passage::{FoundPassage, NewPassage, PassageId},
    ranking::fuse,
    words::query_words,
};

/// Passages of each search that are put together.
const EACH: usize = 50;

/// Most collections of one search: those of an agent and those of a conversation.
const COLLECTIONS: usize = 2 * MAX_COLLECTIONS;

holdfast_shared::statements! {
    /// Returns those of the collections that an owner may read.
    SEARCHED = concat!("
        select c.id, c.number, c.common_words,
            case
                when c.sampled_passages > 0 then c.sampled_passages
                else (
                    select cast(coalesce(sum(d.passages), 0) as bigint)
                    from documents d
                    where d.collection_id = c.id
                      and d.indexed_at is not null
                      and d.deleted_at is null
                )
            end as passages
        from collections c
        where c.id {in:$2}
          and ", may_read!("$1")),
    /// Returns the passages that a run has before it, in the order of their numbers.
    TOLD = "
        select number, document_id, passage, score, call_id
        from run_passages
        where run_id = $1
        order by number
    ",
    /// Returns the numbers of a document's passages that are at least in part between two places.
    BETWEEN = "
        select p.number
        from passages p
        join documents d on d.id = p.document_id
        where p.document_id = $1
          and d.collection_id {in:$2}
          and p.end_at > $3
          and p.start_at < $4
        order by p.number
        limit $5
    ",
    /// Returns passages that an owner may read, each with the pieces of the text that it is in.
    PASSAGES = concat!("
        select p.document_id, p.number, p.start_at, p.end_at, p.page, p.heading, d.title, t.number,
            t.body
        from {each:$2}
        join passages p
            on p.document_id = {uuid:value->>'document_id'}
            and p.number = cast(value->>'number' as bigint)
        join documents d on d.id = p.document_id
        join collections c on c.id = d.collection_id
        join document_texts t
            on t.document_id = p.document_id
            and t.number >= p.start_at / ", piece_chars!(), "
            and t.number <= (p.end_at - 1) / ", piece_chars!(), "
        where d.indexed_at is not null
          and d.deleted_at is null
          and ", may_read!("$1"), "
        order by p.document_id, p.number, t.number
    "),
}

/// A row of `PASSAGES`.
type PassageRow = (Uuid, i64, i64, i64, Option<i64>, Option<String>, String, i64, String);

/// The documents of a search, and their reader.
#[derive(Debug, Clone, Copy)]
pub struct SearchScope<'a> {
    /// The reader.
    pub owner: &'a str,
    /// The collections; those that the reader may not read are left out.
    pub collections: &'a [Uuid],
}

impl Knowledge {
    /// Returns the passages that fit the question, best first. Each vector finds the passages of its model; without
    /// one they are found by words alone.
    pub async fn search(
        &self,
        scope: SearchScope<'_>,
        question: &str,
        vectors: &[QueryVector],
        limit: usize,
    ) -> Result<Vec<FoundPassage>, Error> {
        let ids: Vec<Uuid> = scope.collections.iter().copied().take(COLLECTIONS).collect();
        type Row = (Uuid, i64, CommonWords, i64);
        let args = args![scope.owner, ids];
        let rows = self.database.fetch_all::<Row>("find collections to search", SEARCHED, args).await?;
        let words = query_words(question);
        let (mut by_words, mut by_vector) = (Vec::new(), vec![Vec::new(); vectors.len()]);
        for (id, number, common_words, passages) in rows {
            let common_words = common_words.map(|common| common.0).unwrap_or_default();
            let collection = SearchedCollection { number, passages: passages as u64, common_words };
            // Order matters: a document moves to the model that comes last, and is found by one of the two.
            let of_vectors = async {
                let mut found = Vec::with_capacity(vectors.len());
                for vector in vectors {
                    found.push(self.best_by_vector(id, vector, EACH).await?);
                }
                Ok(found)
            };
            let of_words = self.best_by_words(&collection, &words, EACH);
            let (of_words, of_vectors) = try_join(of_words, of_vectors).await?;
            by_words.extend(of_words);
            by_vector.iter_mut().zip(of_vectors).for_each(|(found, of_vector)| found.extend(of_vector));
        }
        let by_vector: Vec<Vec<PassageId>> = by_vector.into_iter().map(best).collect();
        let ranked = fuse(&best(by_words), &by_vector, limit);
        let scores: HashMap<PassageId, f64> = ranked.iter().copied().collect();
        let mut found = self.passages(scope.owner, ranked.iter().map(|(id, _)| *id)).await?;
        for passage in &mut found {
            passage.score = scores.get(&passage.id).copied().unwrap_or_default();
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.id.cmp(&other.id)));
        Ok(found)
    }

    /// Returns the passages that a run has before it, in the order of their numbers.
    pub async fn told(&self, run_id: Uuid) -> Result<Vec<ToldPassage>, Error> {
        type Row = (i64, Uuid, i64, f64, Option<String>);
        let rows = self.database.fetch_all::<Row>("read the passages of a run", TOLD, args![run_id]).await?;
        let told = |(number, document_id, passage, score, call_id): Row| ToldPassage {
            number: number as u32,
            document_id,
            passage: passage as u64,
            score,
            call_id,
        };
        Ok(rows.into_iter().map(told).collect())
    }

    /// Returns the passages of a document that are at least in part in the range, in their order.
    pub async fn passages_between(
        &self,
        scope: SearchScope<'_>,
        document_id: Uuid,
        range: Range<u64>,
    ) -> Result<Vec<FoundPassage>, Error> {
        let Range { start, end } = range;
        let args = args![document_id, scope.collections.to_vec(), start as i64, end as i64, EACH];
        let rows = self.database.fetch_all::<(i64,)>("find passages by their places", BETWEEN, args).await?;
        self.passages(scope.owner, rows.into_iter().map(|row| PassageId { document_id, number: row.0 as u64 })).await
    }

    /// Returns those of the passages that the owner may read now, with their texts and without scores.
    pub async fn passages(
        &self,
        owner: &str,
        ids: impl IntoIterator<Item = PassageId>,
    ) -> Result<Vec<FoundPassage>, Error> {
        let wanted = |id: PassageId| json!({"document_id": id.document_id.simple().to_string(), "number": id.number});
        let wanted: Vec<Value> = ids.into_iter().map(wanted).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let args = args![owner, Value::Array(wanted)];
        let rows = self.database.fetch_all::<PassageRow>("read passages", PASSAGES, args).await?;
        let mut found: Vec<FoundPassage> = Vec::new();
        for (document_id, number, start, end, page, heading, title, piece, body) in rows {
            let id = PassageId { document_id, number: number as u64 };
            let range = start as u64..end as u64;
            let part = part_of(piece as u64 * PIECE_CHARS, &body, &range);
            match found.last_mut().filter(|last| last.id == id) {
                Some(last) => last.text.push_str(part),
                None => found.push(FoundPassage {
                    id,
                    title,
                    place: NewPassage {
                        number: id.number,
                        start: range.start,
                        end: range.end,
                        page: page.map(|page| page as u32),
                        heading,
                    },
                    text: part.to_owned(),
                    score: 0.0,
                }),
            }
        }
        Ok(found)
    }
}

/// Returns the best of what a search has found in several collections, whose scores can be compared.
fn best(mut found: Vec<(PassageId, f64)>) -> Vec<PassageId> {
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    found.into_iter().take(EACH).map(|(id, _)| id).collect()
}
