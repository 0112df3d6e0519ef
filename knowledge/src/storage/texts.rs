//! The extracted texts, in pieces of a fixed number of characters, so that a part is read without the rest.

use std::ops::Range;

use holdfast_shared::database::{Error, args};
use uuid::Uuid;

use super::{Knowledge, may_read};

/// Unicode scalar values of each piece but the last.
pub const PIECE_CHARS: u64 = 8192;

/// The number above, in a statement.
macro_rules! piece_chars {
    () => {
        "8192"
    };
}
pub(super) use piece_chars;

holdfast_shared::statements! {
    /// Returns some pieces of a document that an owner may read, in order.
    PIECES = concat!("
        select t.number, t.body
        from document_texts t
        join documents d on d.id = t.document_id
        join collections c on c.id = d.collection_id
        where t.document_id = $1
          and t.number >= $3
          and t.number < $4
          and d.deleted_at is null
          and ", may_read!("$2"), "
        order by t.number
    "),
}

/// A part of a document's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRange {
    /// The place of its first character.
    pub start: u64,
    /// The text.
    pub text: String,
}

impl Knowledge {
    /// Returns the characters of a document's text from `range.start` to before `range.end`, or those of them that there are.
    pub async fn text(&self, owner: &str, document_id: Uuid, range: Range<u64>) -> Result<TextRange, Error> {
        let (first, last) = (range.start / PIECE_CHARS, range.end.div_ceil(PIECE_CHARS));
        let args = args![document_id, owner, first as i64, last as i64];
        let pieces = self.database.fetch_all::<(i64, String)>("read a text", PIECES, args).await?;
        let pieces = pieces.into_iter().map(|(number, body)| (number as u64 * PIECE_CHARS, body));
        let text = pieces.map(|(start, body)| part_of(start, &body, &range).to_owned()).collect();
        Ok(TextRange { start: range.start, text })
    }
}

/// Returns the part of a piece, which begins at the character `start`, that is in the range.
pub fn part_of<'a>(start: u64, piece: &'a str, range: &Range<u64>) -> &'a str {
    let skipped = range.start.saturating_sub(start) as usize;
    let kept = range.end.saturating_sub(start.max(range.start)) as usize;
    let place = |text: &str, chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let rest = &piece[place(piece, skipped)..];
    &rest[..place(rest, kept)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_piece_is_counted_in_characters() {
        let check = |start, range: Range<u64>, expected: &str| {
            assert_eq!(part_of(start, "aäb日c", &range), expected, "{start} {range:?}");
        };
        check(0, 0..5, "aäb日c");
        check(0, 1..4, "äb日");
        check(10, 0..12, "aä");
        check(10, 13..100, "日c");
        check(10, 0..10, "");
        check(10, 20..30, "");
    }
}
