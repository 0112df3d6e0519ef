//! How like a name is to a query: words with a typing error and parts of words count too.

use holdfast_text::{composed, plain_word, search_word};

/// Words of a query and of a name that are compared, and characters of a word. They bound the work of one search.
const MAX_WORDS: usize = 8;
const MAX_NAME_WORDS: usize = 20;
const MAX_WORD_CHARS: usize = 30;

/// The least likeness of a result.
const LEAST: f64 = 0.4;

/// The likeness of a name without its accents, as a share of that of the exact form.
const PLAIN: f64 = 0.98;

/// The words of a query, to be compared with many names.
pub struct NameQuery {
    exact: Vec<Word>,
    /// The words without accents.
    plain: Vec<Word>,
}

struct Word {
    text: String,
    chars: usize,
    letters: Letters,
}

/// The letters of a word, as a set that may take one letter for another. A letter that only one of two words has costs an error.
#[derive(Clone, Copy)]
struct Letters(u64);

impl Letters {
    fn of(word: &str) -> Self {
        Self(word.chars().fold(0, |letters, c| letters | 1 << (u32::from(c) % 64)))
    }

    /// Returns a number of errors that lie between two words at least.
    const fn least_errors(self, other: Self) -> u32 {
        let (missing, added) = ((self.0 & !other.0).count_ones(), (other.0 & !self.0).count_ones());
        if missing > added { missing } else { added }
    }
}

impl NameQuery {
    /// Takes the first words of a text in small letters.
    pub fn of(folded: &str) -> Self {
        let word = |text: &str| Word { text: text.into(), chars: text.chars().count(), letters: Letters::of(text) };
        let words_of = |text: &str| words(text, MAX_WORDS).map(word).collect::<Vec<_>>();
        Self { exact: words_of(&composed(folded)), plain: words_of(&plain_text(folded)) }
    }

    /// Returns how well a name in small letters has the words of the query, from 0 to 1; `None` if it is no result.
    pub fn score(&self, folded: &str) -> Option<f64> {
        let exact = likeness(&self.exact, &composed(folded));
        let is_plain = folded.is_ascii() && self.exact.iter().all(|word| word.text.is_ascii());
        let score = if is_plain { exact } else { exact.max(PLAIN * likeness(&self.plain, &plain_text(folded))) };
        (score >= LEAST).then_some(score)
    }
}

/// Returns how well a name has the words, from 0 to 1.
fn likeness(query: &[Word], name: &str) -> f64 {
    let best = |word: &Word| words(name, MAX_NAME_WORDS).map(|of_name| word.likeness(of_name)).fold(0.0, f64::max);
    query.iter().map(best).sum::<f64>() / query.len() as f64
}

/// Returns the words of a text in letters without accents.
fn plain_text(text: &str) -> String {
    let plain = |word: &str| {
        let word = search_word(word);
        plain_word(&word).unwrap_or(word)
    };
    holdfast_text::words(text).map(plain).collect::<Vec<_>>().join(" ")
}

impl Word {
    /// Returns the likeness to a word of a name, from 0 to 1.
    fn likeness(&self, of_name: &str) -> f64 {
        if let Some(place) = of_name.find(&self.text) {
            return match place {
                0 if of_name.len() == self.text.len() => 1.0,
                0 => 0.9,
                _ => 0.75,
            };
        }
        let chars = of_name.chars().count();
        let (longest, difference) = (self.chars.max(chars), self.chars.abs_diff(chars));
        // One error in three characters at most.
        let is_too_far = |errors: usize| errors * 3 > longest;
        if is_too_far(difference) || is_too_far(self.letters.least_errors(Letters::of(of_name)) as usize) {
            return 0.0;
        }
        let errors = strsim::osa_distance(&self.text, of_name);
        if is_too_far(errors) { 0.0 } else { 0.85 * (1.0 - errors as f64 / longest as f64) }
    }
}

fn words(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(most).map(|word| word.char_indices().nth(MAX_WORD_CHARS).map_or(word, |(end, _)| &word[..end]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entity::folded;

    fn of(query: &str, name: &str) -> f64 {
        NameQuery::of(&folded(query)).score(&folded(name)).unwrap_or(0.0)
    }

    #[test]
    fn a_name_is_like_a_query_by_its_words() {
        let order = [
            of("harbour", "The Harbour"),
            of("harb", "Harbour"),
            of("arbour", "Harbour"),
            of("harbuor", "Harbour"),
            of("harbour tide", "Harbour"),
        ];
        assert!(order.is_sorted_by(|one, other| one > other) && order[4] > 0.0, "{order:?}");
        for (typed, name) in [("taks", "task"), ("gaol", "Goal"), ("tdie", "tide tables"), ("paln", "plan")] {
            assert!(of(typed, name) > 0.0, "{typed}");
        }
        assert_eq!([of("harbour", "Fitness app"), of("", "Harbour"), of("%", "Harbour")], [0.0; 3]);
        assert!(of("健身", "健身应用") > 0.8);
        for (typed, name) in [("cafe", "Café"), ("café", "Cafe"), ("Brücke", "Bru\u{308}cke"), ("strasse", "Straße 5")]
        {
            assert!(of(typed, name) > 0.95, "{typed}");
        }
        assert!(of("café", "Café") > of("cafe", "Café"));
    }

    #[test]
    fn only_the_first_words_and_characters_count() {
        assert_eq!(of("a b c d e f g h beyond", "a b c d e f g h"), 1.0);
        assert_eq!(of(&"x".repeat(MAX_WORD_CHARS + 5), &"x".repeat(MAX_WORD_CHARS)), 1.0);
        assert_eq!(of("last", &format!("{}last", "a ".repeat(MAX_NAME_WORDS))), 0.0);
    }

    proptest! {
        #[test]
        fn letters_never_count_more_errors_than_there_are(one in "\\w{0,12}", other in "\\w{0,12}") {
            let least = Letters::of(&one).least_errors(Letters::of(&other)) as usize;
            prop_assert!(least <= strsim::osa_distance(&one, &other));
        }
    }
}
