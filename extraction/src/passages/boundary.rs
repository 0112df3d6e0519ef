//! The best end for a passage among the second half of its greatest length.

use unicode_segmentation::UnicodeSegmentation;

use crate::format::DocumentFormat;

/// Returns the byte at which a passage ends best. The window is the longest possible passage, and `half` is the byte
/// after which the passage may end.
pub fn end_of_passage(window: &str, half: usize, format: DocumentFormat) -> usize {
    let choices = &window[half..];
    let end = after_empty_line(choices)
        .or_else(|| after_line(choices, format))
        .or_else(|| after_sentence(choices))
        .or_else(|| after_word(choices));
    end.map_or(window.len(), |end| half + end)
}

fn after_empty_line(text: &str) -> Option<usize> {
    text.rfind("\n\n").map(|at| at + 2)
}

/// Returns the end of the last line that is a unit of its own: any line of source code or a table, and in prose one
/// that ends a sentence, or before an item, a row or a quote.
fn after_line(text: &str, format: DocumentFormat) -> Option<usize> {
    let is_end = |at: usize| {
        let last = text[..at].chars().next_back();
        let next = text[at + 1..].chars().next();
        let is_open = last.is_none_or(|c| c.is_alphanumeric() || c == ',');
        format == DocumentFormat::Lines || !is_open || next.is_some_and(|c| !c.is_alphanumeric())
    };
    text.rmatch_indices('\n').map(|(at, _)| at).find(|at| is_end(*at)).map(|at| at + 1)
}

fn after_sentence(text: &str) -> Option<usize> {
    text.split_sentence_bound_indices().map(|(at, _)| at).last().filter(|at| *at > 0)
}

fn after_word(text: &str) -> Option<usize> {
    text.char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8())
}
