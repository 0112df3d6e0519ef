//! The words of a text, as both databases index them. So a search finds the same in both.

use std::sync::LazyLock;

use holdfast_text::{plain_word, search_word, words};
use rust_stemmers::{Algorithm, Stemmer};

/// Longest word, in characters; the rest of a longer one is left out.
const MAX_CHARS: usize = 40;

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// Returns the words of a text in their order: in small letters, English ones without their endings. A word with accents is followed
/// by the word without them, so both spellings find it, and its own one finds it first. Scripts without spaces give each pair of
/// neighbouring characters.
pub fn words_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in words(text).map(search_word) {
        let chars: Vec<char> = word.chars().collect();
        for part in chars.chunk_by(|one, other| is_unspaced(*one) == is_unspaced(*other)) {
            match part {
                [first, ..] if is_unspaced(*first) => found.extend(pairs(part)),
                _ => {
                    let word: String = part.iter().take(MAX_CHARS).collect();
                    let plain = plain_word(&word).map(stem);
                    found.extend([stem(word)].into_iter().chain(plain));
                }
            }
        }
    }
    found
}

fn pairs(part: &[char]) -> Vec<String> {
    match part {
        [_] => vec![part.iter().collect()],
        _ => part.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}

fn stem(word: String) -> String {
    if word.bytes().all(|byte| byte.is_ascii_alphabetic()) { ENGLISH.stem(&word).into_owned() } else { word }
}

/// Returns whether the character is of a script that puts no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' // Myanmar, Khmer
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // Hiragana, Katakana
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}') // Han
}

/// Words of a search, after which the rest is left out.
pub const MAX_QUERY_WORDS: usize = 32;

/// Returns the words of a query, each once.
pub fn query_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in words_of(query) {
        if !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MAX_QUERY_WORDS {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_small_letters_and_without_endings() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words_of(text), expected, "{text}");
        check("Workers RESUME streams, after 2 crashes!", &["worker", "resum", "stream", "after", "2", "crash"]);
        check("Größe — naïve", &["größe", "gross", "naïve", "naiv"]);
        check("run_id-7/x", &["run", "id", "7", "x"]);
        check("", &[]);
    }

    #[test]
    fn a_word_is_found_in_each_of_its_spellings() {
        let check = |query: &str, text: &str| {
            let of_text = words_of(text);
            assert!(words_of(query).iter().any(|word| of_text.contains(word)), "{query} in {text}: {of_text:?}");
        };
        for (one, other) in [
            ("café", "cafe"),
            ("Bru\u{308}cke", "BRÜCKE"),
            ("Straße", "STRASSE"),
            ("istanbul", "İstanbul"),
            ("ispanak", "ıspanak"),
            ("カタカナ", "ｶﾀｶﾅ"),
            ("office", "o\u{fb03}ce"),
            ("invoice", "in\u{ad}voice"),
            ("Đà Nẵng", "da nang"),
            ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
        ] {
            check(one, other);
            check(other, one);
        }
        assert!(!words_of("かき").iter().any(|word| words_of("がぎ").contains(word)));
    }

    #[test]
    fn scripts_without_spaces_give_pairs_of_characters() {
        assert_eq!(words_of("持久的日志 log"), ["持久", "久的", "的日", "日志", "log"]);
        assert_eq!(words_of("a水b"), ["a", "水", "b"]);
    }

    #[test]
    fn a_long_word_is_cut_and_a_query_has_each_word_once() {
        assert_eq!(words_of(&"ü".repeat(100)), ["ü".repeat(MAX_CHARS), "u".repeat(MAX_CHARS)]);
        assert_eq!(query_words("Run, running runs; what runs?"), ["run", "what"]);
        let many: Vec<String> = (0..100).map(|n| format!("w{n}")).collect();
        assert_eq!(query_words(&many.join(" ")).len(), MAX_QUERY_WORDS);
    }
}
