//! The order of memories for a query: BM25 over their words, and the newest first where ranks are equal.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_shared::memory::{MemoryReference, MemoryText};
use holdfast_text::{composed, plain_word};

/// Most memories of a result.
const MAX_RESULTS: usize = 20;

/// Most bytes of their texts.
const MAX_BYTES: usize = 8 * 1024;

/// Characters that each memory takes in a result beside its text.
const FRAME_CHARS: usize = 100;

/// The usual parameters of BM25: how fast further occurrences of a word lose their weight, and the weight of a text's length.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// The memories that a query has found.
#[derive(Debug, PartialEq, Eq)]
pub struct Ranked {
    pub memories: Vec<MemoryReference>,
    /// Further ones beyond the limits.
    pub left_out: usize,
}

/// Returns the memories that have words of the query, the most relevant first; all of them, newest first, if the query has no
/// word. `memories` come newest first. The texts have at most `most_chars` characters together, but for a first one that is longer.
pub fn rank(query: &str, memories: Vec<MemoryText>, most_chars: usize) -> Ranked {
    let wanted: BTreeSet<String> = words(query).into_iter().collect();
    let found = if wanted.is_empty() { memories } else { by_score(&wanted, memories) };
    let (mut bytes, mut chars) = (0, 0);
    let fits = |memory: &&MemoryText| {
        let is_first = bytes == 0;
        bytes += memory.text.len();
        chars += memory.text.chars().count() + FRAME_CHARS;
        is_first || bytes <= MAX_BYTES && chars <= most_chars
    };
    let shown: Vec<MemoryReference> =
        found.iter().take(MAX_RESULTS).take_while(fits).map(|memory| memory.reference).collect();
    Ranked { left_out: found.len() - shown.len(), memories: shown }
}

fn by_score(wanted: &BTreeSet<String>, memories: Vec<MemoryText>) -> Vec<MemoryText> {
    let texts: Vec<BTreeMap<String, usize>> = memories.iter().map(|memory| counts(&memory.text)).collect();
    let lengths: Vec<usize> = texts.iter().map(|text| text.values().sum()).collect();
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
    let total = texts.len() as f64;
    let mut scores = vec![0.0; texts.len()];
    for word in wanted {
        let having = texts.iter().filter(|text| text.contains_key(word)).count() as f64;
        let rarity = (1.0 + (total - having + 0.5) / (having + 0.5)).ln();
        for ((score, text), length) in scores.iter_mut().zip(&texts).zip(&lengths) {
            let occurrences = text.get(word).copied().unwrap_or(0) as f64;
            let long = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * *length as f64 / mean;
            *score += rarity * occurrences * (SATURATION + 1.0) / (occurrences + SATURATION * long);
        }
    }
    let mut found: Vec<(f64, MemoryText)> =
        scores.into_iter().zip(memories).filter(|(score, _)| *score > 0.0).collect();
    // The sort is stable, so the newest comes first where scores are equal.
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().map(|(_, memory)| memory).collect()
}

fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words(text) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Returns the lower-case words of a text. Of scripts that write no spaces, each character and each pair of them is a word.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut before) = (Vec::new(), String::new(), None);
    for character in composed(text).chars().flat_map(char::to_lowercase) {
        if is_unspaced(character) {
            words.extend(before.map(|before: char| format!("{before}{character}")));
            words.push(character.to_string());
            before = Some(character);
        } else {
            before = None;
        }
        if character.is_alphanumeric() && !is_unspaced(character) {
            word.push(character);
        } else if !word.is_empty() {
            add_spellings(&mut words, std::mem::take(&mut word));
        }
    }
    if !word.is_empty() {
        add_spellings(&mut words, word);
    }
    words
}

/// Adds a word, and the word without accents.
fn add_spellings(words: &mut Vec<String>, word: String) {
    let plain = plain_word(&word);
    words.extend([word].into_iter().chain(plain));
}

/// Returns whether a character is of Chinese, Japanese, Korean or Thai writing.
fn is_unspaced(character: char) -> bool {
    matches!(
        character,
        '\u{0e01}'..='\u{0e4e}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{323af}'
    )
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    const MOST: usize = 100_000;

    fn memories(texts: &[&str]) -> Vec<MemoryText> {
        let memory = |(n, text): (usize, &&str)| MemoryText {
            reference: MemoryReference { id: Uuid::from_u128(n as u128), version: 1 },
            text: (*text).to_owned(),
            written_at: DateTime::UNIX_EPOCH,
        };
        texts.iter().enumerate().map(memory).collect()
    }

    fn order(query: &str, texts: &[&str]) -> Vec<u128> {
        rank(query, memories(texts), MOST).memories.iter().map(|memory| memory.id.as_u128()).collect()
    }

    #[test]
    fn the_most_relevant_memory_comes_first_and_the_newest_of_equal_ones() {
        let texts = ["Likes tea", "Has a dog", "Likes green tea a lot", "Likes tea"];
        for (query, expected) in [
            ("", vec![0, 1, 2, 3]),
            ("?!", vec![0, 1, 2, 3]),
            ("tea", vec![0, 3, 2]),
            ("GREEN tea", vec![2, 0, 3]),
            ("a dog", vec![1, 2]),
            ("coffee", vec![]),
        ] {
            assert_eq!(order(query, &texts), expected, "{query:?}");
        }
        let texts = ["Likes the Cafe Central", "Likes the Café Central", "Likes tea"];
        assert_eq!(order("cafe", &texts), [0, 1]);
        assert_eq!(order("cafe\u{301}", &texts), [1, 0]);
        assert_eq!(order("tea", &[]), [0; 0]);
    }

    #[test]
    fn words_are_those_of_any_script() {
        for (text, expected) in [
            ("Ärger, 2nd-hand", vec!["ärger", "arger", "2nd", "hand"]),
            ("猫が 好", vec!["猫", "猫が", "が", "好"]),
            ("an猫b", vec!["猫", "an", "b"]),
            ("", vec![]),
        ] {
            let mut found = words(text);
            let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(order("猫", &["犬が好き", "黒猫が好き"]), [1]);
        assert_eq!(order("黒猫", &["猫と黒犬", "黒猫"]), [1, 0]);
    }

    #[test]
    fn a_result_has_twenty_memories_and_eight_kibibytes_of_text() {
        let ranked = |texts: &[String], most: usize| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let ranked = rank("", memories(&texts), most);
            (ranked.memories.len(), ranked.left_out)
        };
        assert_eq!(ranked(&vec!["x".to_owned(); 20], MOST), (20, 0));
        assert_eq!(ranked(&vec!["x".to_owned(); 21], MOST), (20, 1));
        assert_eq!(ranked(&vec!["x".repeat(4096); 3], MOST), (2, 1));
        assert_eq!(ranked(&["x".repeat(4096), "x".repeat(4097)], MOST), (1, 1));
        assert_eq!(ranked(&["é".repeat(5000), "x".to_owned()], 100), (1, 1), "the first one is always shown");
        assert_eq!(ranked(&vec!["x".repeat(100); 3], 400), (2, 1));
    }
}
