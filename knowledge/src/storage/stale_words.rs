//! Words that an earlier version has made: the sweep makes them again, document by document, so that searches find old documents as
//! they find new ones.

use holdfast_shared::database::{Commit, Error, Piece, Tx, args};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Knowledge,
    ingestion::{INDEX_PASSAGES, PlacedPassage, row_of_words},
};
use crate::words::WORDS_VERSION;

holdfast_shared::statements! {
    /// Returns a document whose words are of an earlier version, with its collection.
    STALE_DOCUMENT = "
        select d.id, c.id, c.number
        from documents d
        join collections c on c.id = d.collection_id
        where d.words_version < $1
          and d.indexed_at is not null
          and d.deleted_at is null
        order by d.words_version, d.id
        limit 1
    ",
    /// Returns a further such document of a collection.
    STALE_IN_COLLECTION = "
        select id
        from documents
        where collection_id = $1
          and words_version < $2
          and indexed_at is not null
          and deleted_at is null
        limit 1
    ",
    /// Returns passages of a document from a number on.
    PASSAGES_FROM = "
        select number, start_at, end_at, heading
        from passages
        where document_id = $1 and number >= $2
        order by number
        limit $3
    ",
    /// Notes the version of a document's words.
    NOTE_WORDS = "
        update documents
        set words_version = $2
        where id = $1
        returning id
    ",
}

const DOING: &str = "make the words of a document again";

impl Knowledge {
    /// Makes the words of one document again. Returns whether there was one.
    pub async fn refresh_words(&self) -> Result<bool, Error> {
        let stale = self.database.fetch_optional::<(Uuid, Uuid, i64)>(DOING, STALE_DOCUMENT, args![WORDS_VERSION]);
        let Some((document_id, collection_id, collection)) = stale.await? else { return Ok(false) };
        let mut next = 0;
        loop {
            let args = args![document_id, next, self.database.piece_size(INDEX_PASSAGES).rows()];
            let passages = self.database.fetch_all::<PlacedPassage>(DOING, PASSAGES_FROM, args).await?;
            let Some(last) = passages.last() else { break };
            next = last.0 + 1;
            self.store_words_again(document_id, collection, passages).await?;
        }
        // Order matters: a worker that dies before this begins the document again.
        self.database.write::<(Uuid,)>(DOING, NOTE_WORDS, args![document_id, WORDS_VERSION]).await?;
        let args = args![collection_id, WORDS_VERSION];
        if self.database.fetch_optional::<(Uuid,)>(DOING, STALE_IN_COLLECTION, args).await?.is_none() {
            // The sample has the words of the earlier version.
            self.sample_again(collection_id).await?;
        }
        Ok(true)
    }

    async fn store_words_again(
        &self,
        document_id: Uuid,
        collection: i64,
        passages: Vec<PlacedPassage>,
    ) -> Result<(), Error> {
        let (Some(first), Some(last)) = (passages.first(), passages.last()) else { return Ok(()) };
        let text = self.own_text(document_id, first.1 as u64..last.2 as u64).await?;
        let rows = tokio::task::spawn_blocking(move || {
            // The words of ASCII are those that they were.
            let is_changed = |(_, start, end, heading): &&PlacedPassage| {
                !text.part(*start as u64..*end as u64).is_ascii() || !heading.as_deref().unwrap_or_default().is_ascii()
            };
            passages.iter().filter(is_changed).map(|passage| row_of_words(collection, passage, &text)).collect()
        });
        let rows: Vec<Value> = rows.await.expect("words are found without a panic");
        if rows.is_empty() {
            return Ok(());
        }
        let (count, rows) = (rows.len(), Value::Array(rows));
        let store = async |tx: &mut Tx, piece: &mut Piece| {
            tx.execute(INDEX_PASSAGES, args![document_id, rows]).await?;
            piece.note(INDEX_PASSAGES, count, 0);
            Ok(Commit(()))
        };
        self.database.write_piece(DOING, store).await
    }
}
