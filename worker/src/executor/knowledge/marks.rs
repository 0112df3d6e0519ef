//! The marks of citations in a model's text, as it streams: `[1]`, or `[1, 2]`.
//!
//! Text is held back from a `[` on until it is a mark or cannot become one, with the spaces before it, so that nothing is shown
//! of a mark that is dropped. Brackets in code, and those of a link, are no marks; so code within a line is held back until its
//! end.

use std::{collections::BTreeSet, sync::Arc};

use super::{code_blocks::CodeBlocks, quoted_words::quotations};

/// Longest list of numbers, in bytes, and most spaces before it.
const MAX_MARK: usize = 1024;
const MAX_SPACES: usize = 64;

/// Longest destination of a link, in bytes.
const MAX_LINK: usize = 2048;

/// Longest code within a line, in bytes. A longer one is read as text.
const MAX_CODE: usize = 1024;

/// Bytes of the text before a mark in which quotations are looked for.
const MAX_QUOTE: usize = 4096;

/// A piece of the text, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPiece {
    /// Text without a mark.
    Text(String),
    /// A mark, which passes or is dropped.
    Mark(CitationMark),
}

/// A mark, with what it must stand up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CitationMark {
    /// The spaces before it, which go with it.
    pub before: String,
    /// The numbers, in order.
    pub numbers: Vec<u64>,
    /// The words in quotes of the sentence before it.
    pub quotations: Arc<[String]>,
}

/// Finds the marks in a text that comes in pieces.
#[derive(Debug, Default)]
pub struct MarkReader {
    /// Spaces, and perhaps the beginning of a mark after them, and of a link's destination.
    held: String,
    /// Code within a line, from its first backtick on. Nothing is held beside it.
    code: String,
    blocks: CodeBlocks,
    /// The text since the mark before, as far back as a quotation may begin.
    recent: String,
    /// Whether the newest piece is a mark.
    is_after_mark: bool,
    /// The numbers and the quotations of the marks since the newest text.
    numbers: BTreeSet<u64>,
    quotations: Arc<[String]>,
}

impl MarkReader {
    /// Returns the pieces that are complete with this text.
    pub fn push(&mut self, text: &str) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        for character in text.chars() {
            self.take(character, &mut pieces);
        }
        pieces
    }

    /// Returns the rest at the end of the text.
    pub fn finish(&mut self) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        while !self.code.is_empty() {
            self.release_code(&mut pieces);
        }
        self.release(&mut pieces);
        pieces
    }

    fn take(&mut self, character: char, pieces: &mut Vec<TextPiece>) {
        if !self.code.is_empty() {
            return self.take_after_backtick(character, pieces);
        }
        if self.held.is_empty() {
            return self.begin(character, pieces);
        }
        let mark = self.held.trim_start_matches(' ');
        let has_room = !mark.is_empty() || character != ' ' || self.held.len() < MAX_SPACES;
        match continuation(mark, character) {
            Continuation::Held if has_room => self.held.push(character),
            Continuation::Link => {
                let link = std::mem::take(&mut self.held);
                link.chars().chain([character]).for_each(|character| self.show(character, pieces));
            }
            Continuation::Held | Continuation::End => {
                self.release(pieces);
                self.begin(character, pieces);
            }
        }
    }

    /// Takes a character where nothing is held.
    fn begin(&mut self, character: char, pieces: &mut Vec<TextPiece>) {
        if self.blocks.take_in(character) {
            return self.show(character, pieces);
        }
        match character {
            ' ' | '[' => self.held.push(character),
            '`' if !self.is_escaped() => self.code.push(character),
            _ => self.show(character, pieces),
        }
    }

    /// Returns whether an odd number of backslashes is before the next character.
    fn is_escaped(&self) -> bool {
        let backslashes = self.recent.len() - self.recent.trim_end_matches('\\').len();
        backslashes % 2 == 1
    }

    /// Holds code back until it is closed, because backticks without an end are text.
    fn take_after_backtick(&mut self, character: char, pieces: &mut Vec<TextPiece>) {
        let is_closed = character != '`' && is_closed(&self.code);
        let is_paragraph = character == '\n' && (self.code.ends_with('\n') || self.code.starts_with("```"));
        if is_closed || is_paragraph || self.code.len() >= MAX_CODE {
            self.release_code(pieces);
            self.take(character, pieces);
        } else {
            self.code.push(character);
        }
    }

    /// Shows what is held as code: all of it if it is closed, or else its backticks as text, with what follows read again.
    fn release_code(&mut self, pieces: &mut Vec<TextPiece>) {
        let code = std::mem::take(&mut self.code);
        let rest = if is_closed(&code) { "" } else { code.trim_start_matches('`') };
        let shown = &code[..code.len() - rest.len()];
        shown.chars().for_each(|character| self.show(character, pieces));
        rest.chars().for_each(|character| self.take(character, pieces));
    }

    /// Ends what is held: a mark, with what was perhaps a link's destination after it, or text.
    fn release(&mut self, pieces: &mut Vec<TextPiece>) {
        let held = std::mem::take(&mut self.held);
        let mark = held.trim_start_matches(' ');
        let (before, (list, after)) = (&held[..held.len() - mark.len()], list_and_rest(mark));
        match numbers_of(list) {
            Some(numbers) if !self.is_index(before, &numbers) => {
                pieces.extend(self.mark(before, numbers).map(TextPiece::Mark));
                after.chars().for_each(|character| self.take(character, pieces));
            }
            _ => held.chars().for_each(|character| self.show(character, pieces)),
        }
    }

    /// Returns a mark. A number that the marks right before it have is left out, so that many marks cost as much as the text.
    fn mark(&mut self, before: &str, mut numbers: Vec<u64>) -> Option<CitationMark> {
        if !std::mem::replace(&mut self.is_after_mark, true) {
            self.numbers.clear();
            self.quotations = quotations(&self.recent).into();
        }
        numbers.retain(|number| self.numbers.insert(*number));
        let quotations = Arc::clone(&self.quotations);
        (!numbers.is_empty()).then(|| CitationMark { before: before.to_owned(), numbers, quotations })
    }

    /// Returns whether brackets are the index of a name, as in `list[0]`: no passage has the number 0.
    fn is_index(&self, before: &str, numbers: &[u64]) -> bool {
        let is_attached = self.recent.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        before.is_empty() && is_attached && !self.is_after_mark && numbers == [0]
    }

    fn show(&mut self, character: char, pieces: &mut Vec<TextPiece>) {
        match pieces.last_mut() {
            Some(TextPiece::Text(text)) => text.push(character),
            _ => pieces.push(TextPiece::Text(character.to_string())),
        }
        self.blocks.push(character);
        if self.is_after_mark && character != ' ' {
            self.recent.clear();
            self.is_after_mark = false;
        }
        self.recent.push(character);
        if self.recent.len() > 2 * MAX_QUOTE {
            let start = self.recent.ceil_char_boundary(self.recent.len() - MAX_QUOTE);
            self.recent.drain(..start);
        }
    }
}

/// The effect of the next character on the beginning of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continuation {
    /// It may become a mark, or a link.
    Held,
    /// It is a link.
    Link,
    /// The character does not belong to it.
    End,
}

fn continuation(mark: &str, next: char) -> Continuation {
    if let Some((_, destination)) = mark.split_once("](") {
        return continuation_of_link(destination, next);
    }
    let continues = matches!(
        (mark.chars().next_back(), next),
        (None, ' ' | '[')
            | (Some('[' | ' '), '0'..='9')
            | (Some('0'..='9'), '0'..='9' | ',' | ']')
            | (Some(','), '0'..='9' | ' ')
            | (Some(']'), '(')
    );
    if continues && mark.len() < MAX_MARK { Continuation::Held } else { Continuation::End }
}

/// A destination has no spaces, but a title may follow it.
fn continuation_of_link(destination: &str, next: char) -> Continuation {
    match (destination.contains(' '), next) {
        (_, ')') => Continuation::Link,
        (true, '"' | '\'' | '(') => Continuation::Link,
        (_, '\n') | (true, '!'..) => Continuation::End,
        _ if destination.len() >= MAX_LINK => Continuation::End,
        _ => Continuation::Held,
    }
}

/// Returns the list of a mark with its brackets, and what is held after it. A list that was too long has no end.
fn list_and_rest(held: &str) -> (&str, &str) {
    match held.find(']') {
        Some(end) => held.split_at(end + 1),
        None if held.len() >= MAX_MARK => (held, ""),
        None => ("", held),
    }
}

/// Returns the numbers of a list. A number that is too large is that of no passage.
fn numbers_of(list: &str) -> Option<Vec<u64>> {
    let list = list.strip_prefix('[')?;
    let list = list.strip_suffix(']').unwrap_or_else(|| list.trim_end_matches([',', ' ']));
    (!list.is_empty()).then(|| list.split(',').map(|number| number.trim().parse().unwrap_or(u64::MAX)).collect())
}

/// Returns whether code ends with as many backticks as it began with.
fn is_closed(code: &str) -> bool {
    let opened = code.len() - code.trim_start_matches('`').len();
    let closed = code.len() - code.trim_end_matches('`').len();
    opened == closed && code.len() > opened
}

/// Returns a text without its marks.
pub fn without_marks(text: &str) -> String {
    let mut reader = MarkReader::default();
    let pieces = reader.push(text).into_iter().chain(reader.finish());
    let plain = pieces.filter_map(|piece| match piece {
        TextPiece::Text(text) => Some(text),
        TextPiece::Mark(_) => None,
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(parts: &[&str]) -> Vec<TextPiece> {
        let mut reader = MarkReader::default();
        let mut pieces: Vec<TextPiece> = parts.iter().flat_map(|part| reader.push(part)).collect();
        pieces.extend(reader.finish());
        // Text that came in several pieces is one text.
        let mut joined: Vec<TextPiece> = Vec::new();
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (Some(TextPiece::Text(text)), TextPiece::Text(more)) => text.push_str(&more),
                (_, piece) => joined.push(piece),
            }
        }
        joined
    }

    fn text(text: &str) -> TextPiece {
        TextPiece::Text(text.to_owned())
    }

    fn mark(before: &str, numbers: &[u64], quotations: &[&str]) -> TextPiece {
        let quotations = quotations.iter().map(|quotation| (*quotation).to_owned()).collect();
        TextPiece::Mark(CitationMark { before: before.to_owned(), numbers: numbers.to_vec(), quotations })
    }

    #[test]
    fn marks_are_found_however_the_text_is_cut() {
        let whole = "It is so [1]. And [2, 13][4] too [ 5] [x] [6";
        let expected = [
            text("It is so"),
            mark(" ", &[1], &[]),
            text(". And"),
            mark(" ", &[2, 13], &[]),
            mark("", &[4], &[]),
            text(" too [ 5] [x] [6"),
        ];
        assert_eq!(pieces(&[whole]), expected);
        let characters: Vec<String> = whole.chars().map(String::from).collect();
        assert_eq!(pieces(&characters.iter().map(String::as_str).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn brackets_of_code_and_links_are_no_marks() {
        let code = "```rust\nlist[3]\n``\n[4]\n````\n";
        let plain = [
            "`a[1]` and ``b`[2]``",
            code,
            "~~~\n[3]",
            "see [4](http://x)",
            "a[n] [^1] [1-2] []",
            "[1,]",
            "`",
            "list[0]",
        ];
        for plain in plain {
            assert_eq!(pieces(&[plain]), [text(plain)], "{plain}");
            let characters: Vec<String> = plain.chars().map(String::from).collect();
            assert_eq!(pieces(&characters.iter().map(String::as_str).collect::<Vec<_>>()), [text(plain)], "{plain}");
        }
        for (before, what) in [
            ("`a`", "after code"),
            ("`a\n\nb", "code of a line ends with its paragraph"),
            ("Use ``` for code", "backticks without an end are text"),
            ("```\n[2]\n```\n", "after a block"),
            ("`a ``b", "another number of backticks does not close code"),
        ] {
            assert_eq!(pieces(&[before, " [1]"]), [text(before), mark(" ", &[1], &[])], "{what}");
        }
        let long = format!("`{}[1]", "a".repeat(MAX_CODE));
        assert_eq!(pieces(&[&long]).last(), Some(&mark("", &[1], &[])), "no code is so long");
    }

    #[test]
    fn a_number_is_cited_once_at_one_place() {
        assert_eq!(
            pieces(&["a [1][2, 1][2] b[1]"])[1..],
            [mark(" ", &[1], &[]), mark("", &[2], &[]), text(" b"), mark("", &[1], &[])]
        );
    }

    #[test]
    fn a_mark_knows_the_quotations_since_the_mark_before() {
        let found = pieces(&["\"a b\" [1][2], and \"c\" [3]"]);
        let marks: Vec<&TextPiece> = found.iter().filter(|piece| matches!(piece, TextPiece::Mark(_))).collect();
        assert_eq!(marks, [&mark(" ", &[1], &["a b"]), &mark("", &[2], &["a b"]), &mark(" ", &[3], &["c"])]);
    }

    #[test]
    fn a_long_list_of_numbers_is_checked_too() {
        let long = format!("[{}1]", "1, ".repeat(MAX_MARK));
        assert!(!pieces(&[&long]).iter().any(|piece| matches!(piece, TextPiece::Text(text) if text.contains('['))));
        let huge = "[99999999999999999999]";
        assert_eq!(pieces(&[huge]), [mark("", &[u64::MAX], &[])]);
        let spaces = " ".repeat(MAX_SPACES + 3);
        assert_eq!(pieces(&[&spaces, "[9]"]).last(), Some(&mark("   ", &[9], &[])));
    }

    #[test]
    fn no_number_is_hidden_from_the_check() {
        for text in [
            "claims[0, 9]",
            "[9](see section 2)",
            "\\`[9]\\`",
            "text\n    ```\n[9]\n",
            "> ```\n[9]",
            "- ```\n\n[9]",
            "`a\n\n[9]`",
            "[9](a\nb)",
            "[9](",
        ] {
            let marks = pieces(&[text]).into_iter().filter_map(|piece| match piece {
                TextPiece::Mark(mark) => Some(mark.numbers),
                TextPiece::Text(_) => None,
            });
            assert!(marks.flatten().any(|number| number == 9), "{text}");
        }
    }
}
