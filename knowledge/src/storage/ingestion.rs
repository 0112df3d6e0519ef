//! The steps of an ingestion. Each is stored as it is done, so a later attempt continues after it.
//!
//! Invariant: each write is fenced: the attempt holds its run, and the document is not deleted.

use std::{collections::BTreeMap, ops::Range};

use holdfast_shared::database::{Commit, Error, Piece, RollBack, Sql, Tx, Value as Parameter, args};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Knowledge, texts::PIECE_CHARS};
use crate::words::words_of;

/// The right to write a document: an attempt at its run.
#[derive(Debug, Clone, Copy)]
pub struct Hold {
    /// The document.
    pub document_id: Uuid,
    /// The run.
    pub run_id: Uuid,
    /// The attempt.
    pub attempt: u32,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreOutcome {
    /// It is stored.
    Stored,
    /// The attempt does not hold its run any more, or the document was deleted.
    Fenced,
    /// The texts of the owner's documents would have more bytes than this together. Nothing is stored.
    TooMuchText(u64),
}

/// Rows of a document, each with its bytes.
pub(super) type DocumentRows<'a> = Box<dyn Iterator<Item = (Value, usize)> + Send + 'a>;

/// A passage by its number, its start and its end in the text, with its heading.
type PlacedPassage = (i64, i64, i64, Option<String>);

/// How far an ingestion is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingested {
    /// The file of the document.
    pub file_id: Uuid,
    /// Its owner.
    pub owner_id: String,
    /// Its name for people.
    pub title: String,
    /// The media type of the file.
    pub media_type: String,
    /// Characters and passages of the extracted text, once it is stored.
    pub extracted: Option<(u64, u64)>,
    /// True if searches find the document.
    pub is_indexed: bool,
}

holdfast_shared::statements! {
    /// Returns how far an ingestion is.
    INGESTED = "
        select file_id, owner_id, title, media_type, chars, passages, indexed_at is not null
        from documents
        where id = $1 and deleted_at is null
    ",
    /// Locks a document, if an attempt holds its run, and returns the owner.
    HOLD = "
        select d.owner_id
        from documents d
        join agent_runs r on r.id = $2
        where d.id = $1
          and d.deleted_at is null
          and r.conversation_id = d.conversation_id
          and r.attempt = $3
          and r.status = 'running'
        {for update}
    ",
    /// Stores the words of passages.
    INDEX_PASSAGES {
        postgres = "
            update passages
            set words = cast(each.value->>'lexemes' as tsvector)
            from jsonb_array_elements($2) as each(value)
            where document_id = $1 and number = cast(each.value->>'number' as bigint)
        ",
        sqlite = "
            update passages
            set words = e.words
            from (
                select cast(value->>'number' as bigint) as number, value->>'words' as words
                from json_each($2)
                limit -1
            ) as e
            where document_id = $1 and passages.number = e.number
        ",
    },
    /// Lets searches find a document.
    NOTE_INDEXED = "
        update documents
        set indexed_at = {now}
        where id = $1
    ",
    /// Returns the number of a document's collection.
    COLLECTION_NUMBER = "
        select c.number
        from documents d
        join collections c on c.id = d.collection_id
        where d.id = $1
    ",
    /// Returns passages of a document from a number on that are not in the index, with the titles for their words.
    UNINDEXED = "
        select number, start_at, end_at, heading
        from passages
        where document_id = $1 and words is null
        order by number
        limit $2
    ",
    /// Returns some pieces of a text, in order.
    PIECES_OF = "
        select number, body
        from document_texts
        where document_id = $1 and number >= $2 and number < $3
        order by number
    ",
}

impl Knowledge {
    /// Returns how far the ingestion of a document is; `None` if it was deleted.
    pub async fn ingested(&self, document_id: Uuid) -> Result<Option<Ingested>, Error> {
        type Row = (Uuid, String, String, String, Option<i64>, i64, bool);
        let row = self.database.fetch_optional::<Row>("read a document's state", INGESTED, args![document_id]);
        Ok(row.await?.map(|(file_id, owner_id, title, media_type, chars, passages, is_indexed)| Ingested {
            file_id,
            owner_id,
            title,
            media_type,
            extracted: chars.map(|chars| (chars as u64, passages as u64)),
            is_indexed,
        }))
    }

    /// Puts the words of the next passages into the index. Returns their number; `None` if the attempt is fenced.
    pub async fn index_some(&self, hold: Hold) -> Result<Option<usize>, Error> {
        const DOING: &str = "read passages to index";
        let args = args![hold.document_id, self.database.piece_size(INDEX_PASSAGES).rows()];
        let passages = self.database.fetch_all::<PlacedPassage>(DOING, UNINDEXED, args).await?;
        let (Some(first), Some(last)) = (passages.first(), passages.last()) else { return Ok(Some(0)) };
        let number = self.database.fetch_optional::<(i64,)>(DOING, COLLECTION_NUMBER, args![hold.document_id]);
        let Some((collection,)) = number.await? else { return Ok(None) };
        let text = self.own_text(hold.document_id, first.1 as u64..last.2 as u64).await?;
        let rows = tokio::task::spawn_blocking(move || {
            Value::Array(passages.iter().map(|passage| row_of_words(collection, passage, &text)).collect())
        });
        let rows = rows.await.expect("words are found without a panic");
        let indexed = rows.as_array().map_or(0, Vec::len);
        let index = async |tx: &mut Tx, piece: &mut Piece| {
            if held_by(tx, hold).await?.is_none() {
                return Ok(RollBack(None));
            }
            tx.execute(INDEX_PASSAGES, args![hold.document_id, rows]).await?;
            piece.note(INDEX_PASSAGES, indexed, 0);
            Ok(Commit(Some(indexed)))
        };
        self.database.write_piece("index passages", index).await
    }

    /// Lets searches find the document.
    pub async fn note_indexed(&self, hold: Hold) -> Result<StoreOutcome, Error> {
        let writes = vec![(NOTE_INDEXED, args![hold.document_id])];
        self.step("let searches find a document", hold, writes).await
    }

    /// Stores rows of a document piece by piece. `sql` has the document as its first parameter and a
    /// piece's rows as its last one, and `other` between them.
    pub(super) async fn store_rows(
        &self,
        doing: &'static str,
        hold: Hold,
        (sql, other): (Sql, Option<&str>),
        rows: DocumentRows<'_>,
    ) -> Result<StoreOutcome, Error> {
        // The rows of one piece at a time are in memory beside the text.
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let store = async |tx: &mut Tx, piece: &mut Piece| {
                if held_by(tx, hold).await?.is_none() {
                    return Ok(RollBack(StoreOutcome::Fenced));
                }
                let size = piece.size(sql);
                let (mut stored, mut bytes) = (Vec::new(), 0);
                while stored.len() < size.rows() && bytes < size.bytes() {
                    let Some((row, row_bytes)) = rows.next() else { break };
                    stored.push(row);
                    bytes += row_bytes;
                }
                piece.note(sql, stored.len(), bytes);
                let mut args = args![hold.document_id];
                args.extend(other.map(Parameter::from));
                args.extend(args![Value::Array(stored)]);
                tx.execute(sql, args).await?;
                Ok(Commit(StoreOutcome::Stored))
            };
            if self.database.write_piece(doing, store).await? == StoreOutcome::Fenced {
                return Ok(StoreOutcome::Fenced);
            }
        }
        Ok(StoreOutcome::Stored)
    }

    /// Makes fenced writes in a transaction.
    pub(super) async fn step(
        &self,
        doing: &'static str,
        hold: Hold,
        writes: Vec<(Sql, Vec<Parameter>)>,
    ) -> Result<StoreOutcome, Error> {
        let write = async |tx: &mut Tx| {
            if held_by(tx, hold).await?.is_none() {
                return Ok(RollBack(StoreOutcome::Fenced));
            }
            for (sql, args) in writes {
                tx.execute(sql, args).await?;
            }
            Ok(Commit(StoreOutcome::Stored))
        };
        self.database.transact(doing, write).await
    }

    /// Returns a part of a document's text to its own ingestion.
    pub(super) async fn own_text(&self, document_id: Uuid, range: Range<u64>) -> Result<OwnText, Error> {
        let (first, last) = (range.start / PIECE_CHARS, range.end.div_ceil(PIECE_CHARS));
        let args = args![document_id, first as i64, last as i64];
        let pieces = self.database.fetch_all::<(i64, String)>("read a document's text", PIECES_OF, args).await?;
        Ok(OwnText { start: first * PIECE_CHARS, chars: pieces.iter().flat_map(|(_, body)| body.chars()).collect() })
    }
}

/// Returns the owner of a document, and locks it until the transaction ends; `None` if the attempt is fenced.
pub(super) async fn held_by(tx: &mut Tx, hold: Hold) -> Result<Option<String>, Error> {
    let Hold { document_id, run_id, attempt } = hold;
    let row = tx.fetch_optional::<(String,)>(HOLD, args![document_id, run_id, attempt]).await?;
    Ok(row.map(|row| row.0))
}

/// A part of a document's text, whose characters can be found by their places.
pub(super) struct OwnText {
    start: u64,
    chars: Vec<char>,
}

impl OwnText {
    /// Returns the characters of the range.
    pub fn part(&self, range: Range<u64>) -> String {
        let place = |at: u64| (at.saturating_sub(self.start) as usize).min(self.chars.len());
        self.chars[place(range.start)..place(range.end)].iter().collect()
    }
}

/// Returns the words of a passage as a row for `INDEX_PASSAGES`.
fn row_of_words(collection: i64, (number, start, end, heading): &PlacedPassage, text: &OwnText) -> Value {
    let text = text.part(*start as u64..*end as u64);
    let words = words_of(&format!("{} {text}", heading.as_deref().unwrap_or_default()));
    let (lexemes, words) = terms(collection, &words);
    json!({"number": number, "lexemes": lexemes, "words": words})
}

/// Most places of one word that PostgreSQL keeps, and the last place.
const PLACES: usize = 255;
const LAST_PLACE: usize = 16_383;

/// Returns the words of a passage in the index of a collection, for PostgreSQL and for SQLite.
fn terms(collection: i64, words: &[String]) -> (String, String) {
    let terms: Vec<String> = words.iter().map(|word| term(collection, word)).collect();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (at, term) in terms.iter().enumerate() {
        let places = places.entry(term).or_default();
        if places.len() < PLACES {
            places.push((at + 1).min(LAST_PLACE).to_string());
        }
    }
    let lexemes = places.iter().map(|(term, places)| format!("{term}:{}", places.join(","))).collect::<Vec<_>>();
    (lexemes.join(" "), terms.join(" "))
}

/// Returns a word as the index of a collection has it.
pub(super) fn term(collection: i64, word: &str) -> String {
    format!("c{collection}z{word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_begin_with_their_collection() {
        let words = ["run".to_owned(), "log".to_owned(), "run".to_owned()];
        assert_eq!(terms(7, &words), ("c7zlog:2 c7zrun:1,3".to_owned(), "c7zrun c7zlog c7zrun".to_owned()));
    }
}
