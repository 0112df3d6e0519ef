//! The room that the result of a tool has in a request to the model, and a longer result within it.

use holdfast_shared::{excerpt, tokens};

/// Part of the conversation's budget that one result takes at most.
const BUDGET_SHARE: u32 = 3;

/// Fewest tokens of a result, however small the budget is.
const MIN_TOKENS: u32 = 100;

/// The characters and the estimated tokens that a result may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultRoom {
    chars: usize,
    quarters: u64,
}

impl ResultRoom {
    /// Returns the room for so many characters, within a third of a budget of tokens.
    pub fn new(chars: usize, budget: u32) -> Self {
        Self { chars, quarters: u64::from((budget / BUDGET_SHARE).max(MIN_TOKENS)) * 4 }
    }

    /// Returns the characters of a text of a Latin script that fits.
    pub fn chars(self) -> usize {
        self.chars.min(usize::try_from(self.quarters).unwrap_or(usize::MAX))
    }

    /// Returns the room that is left beside a line of so many characters, which is never less than a tenth.
    pub fn beside(self, line_chars: usize) -> Self {
        let chars = self.chars.saturating_sub(line_chars).max(self.chars / 10);
        let quarters = self.quarters.saturating_sub(line_chars as u64).max(self.quarters / 10);
        Self { chars, quarters }
    }

    /// Returns the longest beginning of a text that fits.
    pub fn beginning(self, text: &str) -> &str {
        &text[..self.fitting_bytes(text.chars())]
    }

    /// Returns a result as the model reads it: a longer one loses its middle, and a mark in that place names the call with which
    /// `read_result` reads on.
    pub fn cut(self, text: &str, call_id: &str) -> String {
        if self.beginning(text).len() == text.len() {
            return text.to_owned();
        }
        let of_head = Self { chars: self.chars * 3 / 4, quarters: self.quarters * 3 / 4 };
        let of_tail = Self { chars: self.chars - of_head.chars, quarters: self.quarters - of_head.quarters };
        let head = of_head.beginning(text);
        let rest = &text[head.len()..];
        let tail = &rest[rest.len() - of_tail.fitting_bytes(rest.chars().rev())..];
        let (offset, missing) = (head.chars().count(), rest[..rest.len() - tail.len()].chars().count());
        let all = offset + missing + tail.chars().count();
        let read_on = excerpt::read_on(call_id, offset);
        format!("{head}\n[cut: {missing} of {all} characters are missing here{read_on}\n{tail}")
    }

    /// Returns the bytes of the first characters that fit.
    fn fitting_bytes(self, characters: impl Iterator<Item = char>) -> usize {
        let Self { mut chars, mut quarters } = self;
        let fits = |character: &char| {
            let left = chars.checked_sub(1).zip(quarters.checked_sub(tokens::quarters_of(*character)));
            left.inspect(|(left_chars, left_quarters)| (chars, quarters) = (*left_chars, *left_quarters)).is_some()
        };
        characters.take_while(fits).map(char::len_utf8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_keeps_head_and_tail_and_the_mark_names_the_rest() {
        let room = ResultRoom::new(100, 1_000);
        let text = format!("{}{}{}", "h".repeat(75), "é".repeat(40), "t".repeat(25));
        let expected = format!(
            "{}\n[cut: 40 of 140 characters are missing here; read_result with {{\"id\": \"call_1\", \"offset\": 75}} reads on]\n{}",
            "h".repeat(75),
            "t".repeat(25)
        );
        assert_eq!(room.cut(&text, "call_1"), expected);
        assert_eq!(room.cut(&"é".repeat(100), "call_1"), "é".repeat(100), "it fits");
    }

    #[test]
    fn a_result_takes_a_third_of_the_budget_at_most() {
        let check = |chars, budget, text: &str, expected: usize| {
            let fitting = ResultRoom::new(chars, budget).beginning(text).chars().count();
            assert_eq!(fitting, expected, "{chars} characters, {budget} tokens");
        };
        let latin = "a".repeat(10_000);
        check(25_000, 3_000, &latin, 4_000);
        check(25_000, 2_999, &latin, 3_996);
        check(3_999, 3_000, &latin, 3_999);
        check(25_000, 1, &latin, 400);
        check(25_000, 3_000, &"潮".repeat(2_000), 1_000);
    }

    #[test]
    fn a_line_leaves_a_tenth_at_least() {
        let room = ResultRoom::new(1_000, 3_000);
        assert_eq!(room.beside(300).chars(), 700);
        assert_eq!(room.beside(5_000).chars(), 100);
    }
}
