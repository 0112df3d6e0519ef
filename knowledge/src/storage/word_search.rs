//! The search by words in one collection: PostgreSQL's full text or SQLite's FTS5 finds and ranks the passages.
//!
//! A word of a collection is a word of its own in the index, so a search costs what its collection has. Words that many
//! passages have cost most and tell least. So a sample of the passages says which words these are, and a search needs only
//! the rarer ones; two common words together count as one rare.

use std::collections::{HashMap, HashSet};

use holdfast_shared::database::{Error, Json, Value as Parameter, args};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Knowledge,
    ingestion::term,
    word_query::{CANDIDATES, Term, UNRANKED, WordQuery},
};
use crate::passage::PassageId;

/// Passages of a word that are counted one by one; a word of more has about as many as the sample says.
const COUNTED: usize = 300;

/// Passages of a sample, and the number of passages from which a collection needs one.
pub const SAMPLE: usize = 1000;

/// The share of the sample from which a word is common.
const COMMON: f64 = 0.01;

/// A collection for a search.
#[derive(Debug, Clone)]
pub struct SearchedCollection {
    /// The number in its words.
    pub number: i64,
    /// The number of its passages, roughly.
    pub passages: u64,
    /// Common words, with the share of the passages that have them.
    pub common_words: HashMap<String, f64>,
}

/// The common words of a collection, as its row has them.
pub type CommonWords = Option<Json<HashMap<String, f64>>>;

const DOING: &str = "sample the words of a collection";

holdfast_shared::statements! {
    /// Counts the passages of each word, up to `$2`. Those that searches do not find count for nothing.
    COUNT_PASSAGES {
        postgres = "
            select value->>'term',
                (
                    select count(*)
                    from (
                        select 1
                        from passages p
                        join documents d on d.id = p.document_id
                        where p.words @@ cast(value->>'term' as tsquery)
                          and d.indexed_at is not null
                          and d.deleted_at is null
                        limit $2
                    ) counted
                )
            from jsonb_array_elements($1) as each(value)
        ",
        sqlite = "
            select value->>'term',
                (
                    select count(*)
                    from (
                        select 1
                        from passage_words w
                        cross join passages p on p.id = w.rowid
                        cross join documents d on d.id = p.document_id
                        where passage_words match value->>'term'
                          and d.indexed_at is not null
                          and d.deleted_at is null
                        limit $2
                    )
                )
            from json_each($1) as each
        ",
    },
    /// Returns the best passages of a query. `$1` is the query in the database's form, `$2` has the weights of the words
    /// for PostgreSQL, `$3` is the most passages, and `$4` the most that are ranked.
    ///
    /// PostgreSQL's index says quickly which passages have a word, but to rank a passage, PostgreSQL unpacks its words once
    /// for each word of the query. So the statement first adds up the weights of the words by which it finds a passage, and
    /// ranks only the best by all words: fewer if there are many words. `words || ''` is an unpacked copy.
    ///
    /// SQLite's index ranks by itself. With the joins in this order, it reads the rows of the best passages only.
    BEST_PASSAGES {
        postgres = "
            with found as materialized (
                select p.document_id, p.number,
                    sum(cast(value->>'weight' as double precision)) as weight
                from {each:$1}
                cross join lateral (
                    select p.document_id, p.number
                    from passages p
                    join documents d on d.id = p.document_id
                    where p.words @@ cast(value->>'query' as tsquery)
                      and d.indexed_at is not null
                      and d.deleted_at is null
                    limit $4
                ) p
                group by p.document_id, p.number
                order by weight desc, p.document_id, p.number
                limit greatest(200, least(1000, 4000 / jsonb_array_length($2)))
            ),
            candidates as materialized (
                select f.document_id, f.number, p.words || '' as words
                from found f
                join passages p on p.document_id = f.document_id and p.number = f.number
            )
            select c.document_id, c.number,
                sum(w.weight * ts_rank(c.words, w.word)) as score
            from candidates c
            join (
                select cast(value->>'word' as tsquery) as word,
                    cast(value->>'weight' as double precision) as weight
                from {each:$2}
            ) w on c.words @@ w.word
            group by c.document_id, c.number
            order by score desc, c.document_id, c.number
            limit $3
        ",
        sqlite = "
            select p.document_id, p.number, -w.rank as score
            from passage_words w
            cross join passages p on p.id = w.rowid
            cross join documents d on d.id = p.document_id
            where passage_words match $1
              and d.indexed_at is not null
              and d.deleted_at is null
              and $2 is not null
            order by w.rank
            limit min($3, $4)
        ",
    },
    /// Returns the shortest of the first `$3` passages of a query that very many passages fit: to rank them all, SQLite's index
    /// would read the length of each.
    SHORTEST_PASSAGES {
        sqlite = "
            select document_id, number, 1.0 / chars as score
            from (
                select p.document_id, p.number, length(p.words) as chars
                from passage_words w
                cross join passages p on p.id = w.rowid
                cross join documents d on d.id = p.document_id
                where passage_words match $1
                  and d.indexed_at is not null
                  and d.deleted_at is null
                limit $3
            )
            order by chars, document_id, number
            limit $2
        ",
    },
    /// Returns the words of some passages of a collection, one in `$2`. The primes mix the numbers, because documents with equal
    /// numbers of passages would otherwise give the sample the same part of each.
    SAMPLE_WORDS {
        postgres = "
            select array_to_string(tsvector_to_array(p.words), ' ')
            from documents d
            join passages p on p.document_id = d.id
            where d.collection_id = $1
              and d.indexed_at is not null
              and d.deleted_at is null
              and p.words is not null
              and p.id * 7919 % 104729 % $2 = 0
            limit $3
        ",
        sqlite = "
            select p.words
            from documents d
            join passages p on p.document_id = d.id
            where d.collection_id = $1
              and d.indexed_at is not null
              and d.deleted_at is null
              and p.words is not null
              and p.id * 7919 % 104729 % $2 = 0
            limit $3
        ",
    },
    /// Counts the passages of a collection, and returns the number at the time of its sample.
    PASSAGES_OF_COLLECTION = "
        select c.number, c.sampled_passages, cast(coalesce(sum(d.passages), 0) as bigint)
        from collections c
        left join documents d
            on d.collection_id = c.id and d.indexed_at is not null and d.deleted_at is null
        where c.id = $1
        group by c.number, c.sampled_passages
    ",
    /// Stores the common words of a collection.
    STORE_COMMON_WORDS = "
        update collections
        set common_words = $2,
            sampled_passages = $3
        where id = $1
        returning id
    ",
    /// Returns the collection of a document.
    COLLECTION_OF = "
        select collection_id
        from documents
        where id = $1
    ",
}

impl Knowledge {
    /// Returns the passages of a collection that fit the words, best first.
    pub(super) async fn best_by_words(
        &self,
        collection: &SearchedCollection,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<(PassageId, f64)>, Error> {
        const DOING: &str = "search passages by words";
        let terms = self.weighted(collection, words).await?;
        let all = collection.passages.max(1) as f64;
        let Some(query) = WordQuery::of(&terms, all) else { return Ok(Vec::new()) };
        let weights: Vec<Value> = terms.iter().map(|term| json!({"word": term.term, "weight": term.weight})).collect();
        let is_postgres = self.database.is_postgres();
        let (statement, args) = if !is_postgres && query.fits > UNRANKED {
            (SHORTEST_PASSAGES, args![query.text(), limit, CANDIDATES * 2])
        } else {
            let query: Parameter = if is_postgres { query.alternatives().into() } else { query.text().into() };
            (BEST_PASSAGES, args![query, Value::Array(weights), limit, CANDIDATES * 2])
        };
        let rows = self.database.fetch_all::<(Uuid, i64, f64)>(DOING, statement, args).await?;
        let found =
            |(document_id, number, score)| (PassageId { document_id, number: i64::cast_unsigned(number) }, score);
        Ok(rows.into_iter().map(found).collect())
    }

    /// Returns the words that the collection has, the rarest first, with their weights.
    async fn weighted(&self, collection: &SearchedCollection, words: &[String]) -> Result<Vec<Term>, Error> {
        let all = collection.passages.max(1) as f64;
        let share = |word: &String| collection.common_words.get(word).copied();
        let rare: Vec<Value> = words
            .iter()
            .filter(|word| share(word).is_none())
            .map(|word| json!({"term": term(collection.number, word)}))
            .collect();
        let counts = if rare.is_empty() {
            Vec::new()
        } else {
            let args = args![Value::Array(rare), COUNTED];
            self.database.fetch_all::<(String, i64)>("count the passages of words", COUNT_PASSAGES, args).await?
        };
        let common = words.iter().filter_map(|word| Some((term(collection.number, word), share(word)? * all)));
        let counted = counts.into_iter().filter(|(_, passages)| *passages > 0);
        let counted = counted.map(|(term, passages)| (term, passages as f64));
        let weighted =
            common.chain(counted).map(|(term, passages)| Term { term, passages, weight: weight(all, passages) });
        let mut terms: Vec<Term> = weighted.collect();
        terms.sort_by(|one, other| one.passages.total_cmp(&other.passages));
        Ok(terms)
    }

    /// Takes a new sample of the collection of a document, if the collection has grown by half.
    pub async fn sample_collection_of(&self, document_id: Uuid) -> Result<(), Error> {
        let collection = self.database.fetch_optional::<(Uuid,)>(DOING, COLLECTION_OF, args![document_id]).await?;
        let Some((collection,)) = collection else { return Ok(()) };
        let counted = self.database.fetch_optional::<(i64, i64, i64)>(DOING, PASSAGES_OF_COLLECTION, args![collection]);
        let Some((number, sampled, passages)) = counted.await? else { return Ok(()) };
        if passages < SAMPLE as i64 || passages < sampled + sampled / 2 {
            return Ok(());
        }
        self.sample(collection, number, passages).await
    }

    /// Replaces the sample of a collection that has lost a document, because the sample has its words.
    pub(super) async fn sample_again(&self, collection: Uuid) -> Result<(), Error> {
        let counted = self.database.fetch_optional::<(i64, i64, i64)>(DOING, PASSAGES_OF_COLLECTION, args![collection]);
        let Some((number, _, passages)) = counted.await? else { return Ok(()) };
        if passages >= SAMPLE as i64 {
            return self.sample(collection, number, passages).await;
        }
        let none = args![collection, json!({}), 0_i64];
        self.database.write::<(Uuid,)>(DOING, STORE_COMMON_WORDS, none).await.map(drop)
    }

    /// Samples the passages of a collection, and stores the words that many of them have.
    async fn sample(&self, collection: Uuid, number: i64, passages: i64) -> Result<(), Error> {
        let every = (passages / SAMPLE as i64).max(1);
        let args = args![collection, every, SAMPLE];
        let rows = self.database.fetch_all::<(String,)>(DOING, SAMPLE_WORDS, args).await?;
        let common = tokio::task::spawn_blocking(move || common_words(number, &rows));
        let common = common.await.expect("words are counted without a panic");
        self.database
            .write::<(Uuid,)>(DOING, STORE_COMMON_WORDS, args![collection, json!(common), passages])
            .await
            .map(drop)
    }
}

/// Returns how much a word tells of the passages that have it, as in BM25.
fn weight(all: f64, passages: f64) -> f64 {
    (1.0 + (all - passages + 0.5).max(0.0) / (passages + 0.5)).ln()
}

/// Returns the common words among the rows of a sample, each with its share.
fn common_words(collection: i64, rows: &[(String,)]) -> HashMap<String, f64> {
    let prefix = term(collection, "");
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (words,) in rows {
        let words: HashSet<&str> = words.split(' ').filter_map(|word| word.strip_prefix(&prefix)).collect();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let share = |count: usize| count as f64 / rows.len().max(1) as f64;
    let common = counts.into_iter().filter(|(_, count)| share(*count) >= COMMON);
    common.map(|(word, count)| (word.to_owned(), share(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_those_of_one_passage_in_a_hundred() {
        let mut rows: Vec<(String,)> = (0..200).map(|n| (format!("c3zthe c3zw{n} c3zthe"),)).collect();
        rows[0].0.push_str(" c3zrun");
        rows[1].0.push_str(" c3zrun");
        let common = common_words(3, &rows);
        assert_eq!(common, HashMap::from([("the".to_owned(), 1.0), ("run".to_owned(), 0.01)]));
    }

    #[test]
    fn a_rarer_word_weighs_more() {
        assert!(weight(1000.0, 1.0) > weight(1000.0, 10.0));
        assert!(weight(1000.0, 1000.0) > 0.0);
    }
}
