//! Halves of characters that a provider has cut between two deltas.
//!
//! JSON may write half of a surrogate pair, as `"\ud83d"`, which no text of Rust holds. `json::document` puts a character of a
//! private plane in its place, and `HalfJoiner` makes the whole one of both.

use crate::model::{AnswerDelta, CallDelta};

/// The first of the 2,048 characters that stand for halves.
const FIRST: u32 = 0x10_F800;
/// The first and the last half of UTF-16.
const HALVES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// Returns the character that stands for a half.
pub fn stand_in(half: u16) -> char {
    char::from_u32(FIRST + (u32::from(half) - HALVES.start())).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the half for which a character stands.
fn half(character: char) -> Option<u32> {
    Some(u32::from(character).checked_sub(FIRST)? + HALVES.start())
}

/// Joins the halves of the answer's text, and those of its reasoning.
#[derive(Default)]
pub struct HalfJoiner {
    text: Option<u32>,
    reasoning: Option<u32>,
}

impl HalfJoiner {
    /// Returns the delta with whole characters. The first half at its end waits for the next delta of its kind.
    pub fn join(&mut self, delta: AnswerDelta) -> AnswerDelta {
        match delta {
            AnswerDelta::Text(text) => AnswerDelta::Text(joined(&mut self.text, text)),
            AnswerDelta::Reasoning(text) => AnswerDelta::Reasoning(joined(&mut self.reasoning, text)),
            AnswerDelta::Call(CallDelta { index, name, arguments, signature }) => {
                let name = name.map(|name| joined(&mut None, name));
                AnswerDelta::Call(CallDelta { index, name, arguments: joined(&mut None, arguments), signature })
            }
            whole @ (AnswerDelta::Picture | AnswerDelta::End(..)) => whole,
        }
    }
}

/// Joins the halves in a text. `pending` is the first half before it, and then that at its end. A half alone becomes U+FFFD.
fn joined(pending: &mut Option<u32>, text: String) -> String {
    if pending.is_none() && !text.chars().any(|character| half(character).is_some()) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    for character in text.chars() {
        match (pending.take(), half(character)) {
            (Some(first), Some(second @ 0xDC00..=0xDFFF)) => {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                whole.extend(char::from_u32(code));
            }
            (first, second) => {
                whole.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
                match second {
                    Some(0xD800..=0xDBFF) => *pending = second,
                    Some(_) => whole.push(char::REPLACEMENT_CHARACTER),
                    None => whole.push(character),
                }
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stream::json;

    #[test]
    fn halves_of_a_character_are_joined_across_deltas_and_alone_become_a_replacement() {
        let check = |pieces: &[&str], expected: &str| {
            let mut joiner = HalfJoiner::default();
            let mut text = String::new();
            for piece in pieces {
                let value = json::document(format!("\"{piece}\"").as_bytes()).unwrap();
                match joiner.join(AnswerDelta::Text(value.as_str().unwrap().to_owned())) {
                    AnswerDelta::Text(piece) => text += &piece,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(text, expected, "{pieces:?}");
        };
        check(&["Hi \\ud83d", "\\ude00 there"], "Hi 😀 there");
        check(&["\\ud83d", "", "\\ude00"], "😀");
        check(&["\\ud83d", "x"], "\u{FFFD}x");
        check(&["\\ud83d\\ud83d", "\\ude00"], "\u{FFFD}😀");
        check(&["x\\ude00y"], "x\u{FFFD}y");
    }
}
