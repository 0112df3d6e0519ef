//! The storing of an extracted text with its passages, in steps: first the room for it, then its rows, then a note that
//! all of them are stored.
//!
//! Invariant: a document counts the bytes of its text before the first of them is stored, so an owner never has more
//! than its quota.

use holdfast_shared::{
    database::{Commit, Error, Piece, RollBack, Tx, args},
    storage::texts_exceed,
};
use serde_json::json;

use super::{Hold, Knowledge, StoreOutcome, ingestion::held_by, texts::PIECE_CHARS};
use crate::passage::NewPassage;

holdfast_shared::statements! {
    /// Notes the bytes that a text is going to have.
    RESERVE = "
        update documents
        set text_bytes = $2
        where id = $1
    ",
    /// Removes some of the text that an earlier attempt has stored in part.
    FORGET_TEXTS = "
        delete from document_texts
        where document_id = $1
          and number in (select number from document_texts where document_id = $1 limit $2)
    ",
    /// Removes some of the passages that an earlier attempt has stored in part.
    FORGET_PASSAGES = "
        delete from passages
        where document_id = $1
          and number in (select number from passages where document_id = $1 limit $2)
    ",
    /// Stores pieces of a text.
    INSERT_TEXTS = "
        insert into document_texts (document_id, number, body)
        select $1, cast(value->>'number' as bigint), value->>'body'
        from {each:$2}
    ",
    /// Stores passages.
    INSERT_PASSAGES = "
        insert into passages (document_id, number, start_at, end_at, page, heading)
        select $1, cast(value->>'number' as bigint), cast(value->>'start' as bigint),
            cast(value->>'end' as bigint), cast(value->>'page' as bigint), value->>'heading'
        from {each:$2}
    ",
    /// Notes that the whole text is stored.
    NOTE_EXTRACTED = "
        update documents
        set chars = $2,
            passages = $3,
            extracted_at = {now}
        where id = $1
    ",
}

impl Knowledge {
    /// Stores the extracted text and its passages, in place of what an earlier attempt has stored in part. Stores
    /// nothing if the texts of the owner would have too many bytes.
    pub async fn store_text(&self, hold: Hold, text: &str, passages: &[NewPassage]) -> Result<StoreOutcome, Error> {
        let id = hold.document_id;
        let reserved = self.reserve(hold, bytes_of(text, passages)).await?;
        if reserved != StoreOutcome::Stored {
            return Ok(reserved);
        }
        while let Some(has_more) = self.forget_some(hold).await? {
            if !has_more {
                break;
            }
        }
        let pieces = pieces_of(text).enumerate();
        let texts = Box::new(pieces.map(|(number, body)| (json!({"number": number, "body": body}), body.len())));
        if self.store_rows("store a text", hold, (INSERT_TEXTS, None), texts).await? == StoreOutcome::Fenced {
            return Ok(StoreOutcome::Fenced);
        }
        let row = |passage: &NewPassage| (json!(passage), passage.heading.as_ref().map_or(0, String::len));
        let rows = Box::new(passages.iter().map(row));
        if self.store_rows("store passages", hold, (INSERT_PASSAGES, None), rows).await? == StoreOutcome::Fenced {
            return Ok(StoreOutcome::Fenced);
        }
        let writes = vec![(NOTE_EXTRACTED, args![id, text.chars().count(), passages.len()])];
        self.step("note that a text is stored", hold, writes).await
    }

    /// Counts the bytes of a text for its owner, unless they are too many.
    async fn reserve(&self, hold: Hold, bytes: usize) -> Result<StoreOutcome, Error> {
        let reserve = async |tx: &mut Tx| {
            let Some(owner) = held_by(tx, hold).await? else { return Ok(RollBack(StoreOutcome::Fenced)) };
            tx.execute(RESERVE, args![hold.document_id, bytes]).await?;
            match self.limits.of(&owner).text_bytes {
                Some(most) if texts_exceed(tx, &owner, most).await? => Ok(RollBack(StoreOutcome::TooMuchText(most))),
                _ => Ok(Commit(StoreOutcome::Stored)),
            }
        };
        self.database.transact("make room for a text", reserve).await
    }

    /// Removes a piece of what an earlier attempt has stored in part. Returns whether there may be more; `None` if the
    /// attempt is fenced.
    async fn forget_some(&self, hold: Hold) -> Result<Option<bool>, Error> {
        let forget = async |tx: &mut Tx, piece: &mut Piece| {
            if held_by(tx, hold).await?.is_none() {
                return Ok(RollBack(None));
            }
            for sql in [FORGET_PASSAGES, FORGET_TEXTS] {
                if piece.write(tx, sql, args![hold.document_id]).await? {
                    return Ok(Commit(Some(true)));
                }
            }
            Ok(RollBack(Some(false)))
        };
        self.database.write_piece("remove a text that is stored in part", forget).await
    }
}

/// Returns the bytes of a text with the headings of its passages, which repeat parts of it.
fn bytes_of(text: &str, passages: &[NewPassage]) -> usize {
    text.len() + passages.iter().filter_map(|passage| passage.heading.as_ref()).map(String::len).sum::<usize>()
}

fn pieces_of(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(PIECE_CHARS as usize).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_pieces_of_equal_numbers_of_characters() {
        let text = "日".repeat(PIECE_CHARS as usize * 2 + 3);
        let sizes: Vec<usize> = pieces_of(&text).map(|piece| piece.chars().count()).collect();
        assert_eq!(sizes, [PIECE_CHARS as usize, PIECE_CHARS as usize, 3]);
        assert_eq!(pieces_of("").count(), 0);
    }

    #[test]
    fn headings_count_for_each_of_their_passages() {
        let passage = |heading: Option<&str>| NewPassage {
            number: 0,
            start: 0,
            end: 1,
            page: None,
            heading: heading.map(str::to_owned),
        };
        assert_eq!(bytes_of("日", &[passage(None), passage(Some("ä")), passage(Some("ä"))]), 7);
    }
}
