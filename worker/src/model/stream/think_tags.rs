//! Reasoning that a model writes into its text, as `<think>…</think>` at the beginning of the answer.
//!
//! Servers without a parser for their model's reasoning send it so. The templates of some models write the opening tag
//! themselves, so that the answer begins within the reasoning.

use std::collections::VecDeque;

use crate::model::AnswerDelta;

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// Tells reasoning and text apart.
pub struct ThinkTags {
    place: TagPlace,
    /// The text that does not show yet what it is.
    held: String,
    /// Whether an answer without the opening tag begins within the reasoning.
    begins_within: bool,
    /// The reasoning so far if nothing has shown that it is any.
    unproven: Option<String>,
}

/// Where the text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagPlace {
    Beginning,
    Reasoning,
    /// After the closing tag, before the answer.
    Between,
    Answer,
}

impl ThinkTags {
    pub fn new(begins_within: bool) -> Self {
        Self { place: TagPlace::Beginning, held: String::new(), begins_within, unproven: None }
    }

    /// Notes that the server sends the reasoning in a field of its own.
    pub fn has_own_field(&mut self) {
        self.begins_within = false;
    }

    pub fn push(&mut self, text: String, deltas: &mut VecDeque<AnswerDelta>) {
        if self.place == TagPlace::Answer {
            push(AnswerDelta::Text(text), deltas);
            return;
        }
        self.held.push_str(&text);
        while self.advance(deltas) {}
    }

    /// Reads on in the held text. Returns whether the place has changed.
    fn advance(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> bool {
        let place = self.place;
        match place {
            TagPlace::Beginning => {
                let text = self.held.trim_start();
                if let Some(rest) = text.strip_prefix(OPENING) {
                    self.held = rest.to_owned();
                    self.place = TagPlace::Reasoning;
                } else if !OPENING.starts_with(text) {
                    self.place = if self.begins_within { TagPlace::Reasoning } else { TagPlace::Answer };
                    self.unproven = self.begins_within.then(String::new);
                }
            }
            TagPlace::Reasoning => match self.held.split_once(CLOSING) {
                Some((reasoning, rest)) => {
                    push(AnswerDelta::Reasoning(reasoning.to_owned()), deltas);
                    self.held = rest.to_owned();
                    self.unproven = None;
                    self.place = TagPlace::Between;
                }
                None => {
                    let kept = self.held.split_off(self.held.len() - beginning_of_tag(&self.held));
                    self.reason(kept, deltas);
                }
            },
            TagPlace::Between => {
                let text = self.held.trim_start();
                if !text.is_empty() {
                    self.held = text.to_owned();
                    self.place = TagPlace::Answer;
                }
            }
            TagPlace::Answer => push(AnswerDelta::Text(std::mem::take(&mut self.held)), deltas),
        }
        place != self.place
    }

    /// Returns the held text as reasoning, and holds `kept`.
    fn reason(&mut self, kept: String, deltas: &mut VecDeque<AnswerDelta>) {
        let reasoning = std::mem::replace(&mut self.held, kept);
        if let Some(unproven) = &mut self.unproven {
            unproven.push_str(&reasoning);
        }
        push(AnswerDelta::Reasoning(reasoning), deltas);
    }

    /// Ends the text. If only the model's name said that it begins within the reasoning, and the answer is complete without a closing
    /// tag, then all of it was the answer.
    pub fn finish(&mut self, is_whole_answer: bool, deltas: &mut VecDeque<AnswerDelta>) {
        match self.place {
            TagPlace::Beginning => push(AnswerDelta::Text(std::mem::take(&mut self.held)), deltas),
            TagPlace::Reasoning => self.reason(String::new(), deltas),
            TagPlace::Between | TagPlace::Answer => {}
        }
        if let Some(text) = self.unproven.take().filter(|_| is_whole_answer) {
            push(AnswerDelta::Text(text), deltas);
        }
    }
}

/// Returns the bytes at the end of the text that may begin a closing tag.
fn beginning_of_tag(text: &str) -> usize {
    (1..CLOSING.len()).rev().find(|length| text.ends_with(&CLOSING[..*length])).unwrap_or(0)
}

fn push(delta: AnswerDelta, deltas: &mut VecDeque<AnswerDelta>) {
    let (AnswerDelta::Text(text) | AnswerDelta::Reasoning(text)) = &delta else { return };
    if !text.is_empty() {
        deltas.push_back(delta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reasoning and the text of an answer that arrives in these pieces.
    fn read(begins_within: bool, pieces: &[&str]) -> (String, String) {
        let (mut tags, mut deltas) = (ThinkTags::new(begins_within), VecDeque::new());
        for piece in pieces {
            tags.push((*piece).to_owned(), &mut deltas);
        }
        tags.finish(true, &mut deltas);
        let (mut reasoning, mut text) = (String::new(), String::new());
        for delta in deltas {
            match delta {
                AnswerDelta::Reasoning(piece) => reasoning += &piece,
                AnswerDelta::Text(piece) => text += &piece,
                other => panic!("{other:?}"),
            }
        }
        (reasoning, text)
    }

    #[test]
    fn tags_at_the_beginning_of_an_answer_enclose_reasoning_wherever_they_are_cut() {
        let check = |begins_within: bool, whole: &str, reasoning: &str, text: &str| {
            for size in 1..=whole.len() {
                let characters: Vec<char> = whole.chars().collect();
                let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                let expected = (reasoning.to_owned(), text.to_owned());
                assert_eq!(read(begins_within, &pieces), expected, "{whole:?} in pieces of {size}");
            }
        };
        for begins_within in [false, true] {
            check(begins_within, "<think>a < b </thin</think>\n\nHi", "a < b </thin", "Hi");
            check(begins_within, " \n<think></think>Hi", "", "Hi");
            check(begins_within, "<think>é</think> Hi <think>no</think>", "é", "Hi <think>no</think>");
            check(begins_within, "<think>cut off", "cut off", "");
        }
        check(false, "Use <think>x</think> so", "", "Use <think>x</think> so");
        check(false, "<thin air", "", "<thin air");
        check(false, "  ", "", "  ");
        check(false, "a</think>b", "", "a</think>b");
        check(true, "a\n</think>\nb", "a\n", "b");
    }

    #[test]
    fn an_answer_without_any_tag_is_not_lost_in_the_reasoning() {
        assert_eq!(read(true, &["It is", " 4."]), ("It is 4.".to_owned(), "It is 4.".to_owned()));
    }
}
