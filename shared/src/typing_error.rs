//! Words that differ by one typing error: another letter, one too many, one too few, or two that have changed places.

/// Shorter words are too alike for a guess.
const SHORTEST: usize = 4;

/// The parts of a word of which a text has at least one, wherever the word's only error is.
#[derive(Debug, PartialEq, Eq)]
pub struct WordParts {
    /// The first half.
    pub head: String,
    /// The second half.
    pub tail: String,
    /// The letters before and after the border of the halves, where two letters may have changed places.
    pub around: [String; 2],
}

/// Returns the parts of a word for which an error is forgiven; `None` for a short one.
pub fn parts_of(word: &str) -> Option<WordParts> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < SHORTEST {
        return None;
    }
    let border = letters.len() / 2;
    let text = |range: &[char]| range.iter().collect::<String>();
    let (head, tail) = letters.split_at(border);
    Some(WordParts { head: text(head), tail: text(tail), around: [text(&head[..border - 1]), text(&tail[1..])] })
}

/// Returns the word of the text that has this word, or begins like it with one typing error at most.
pub fn find_similar<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let wanted: Vec<char> = word.to_lowercase().chars().collect();
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|found| !found.is_empty());
    let mut begins = words.clone();
    let exact = begins.find(|found| found.to_lowercase().contains(&word.to_lowercase()));
    if exact.is_some() || wanted.len() < SHORTEST {
        return exact;
    }
    let mut similar = words;
    similar.find(|found| {
        let letters: Vec<char> = found.chars().take(wanted.len() + 1).flat_map(char::to_lowercase).collect();
        begins_like(&letters, &wanted)
    })
}

/// Returns whether the letters begin with the wanted ones but for one error.
fn begins_like(letters: &[char], wanted: &[char]) -> bool {
    let same = letters.iter().zip(wanted).take_while(|(one, other)| one == other).count();
    let (left, missing) = (&letters[same..], &wanted[same..]);
    match (left, missing) {
        (_, []) => true,
        // The rest of the word is one letter too many.
        ([], [_]) => true,
        ([], _) => false,
        ([_, rest @ ..], [_, wanted_rest @ ..]) => {
            let has_changed_places = matches!((left, missing), ([a, b, ..], [c, d, ..]) if a == d && b == c)
                && left[2..].starts_with(&missing[2..]);
            has_changed_places
                || rest.starts_with(wanted_rest)
                || left.starts_with(wanted_rest)
                || rest.starts_with(missing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_is_forgiven_and_two_are_not() {
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(find_similar("The Harbour's tides, 2026; Straße", word), expected, "{word}");
        };
        for word in
            ["harbour", "HARBOUR", "harb", "hxrbour", "xarbour", "harbou", "habour", "arbour", "harboour", "hharbour"]
        {
            check(word, Some("Harbour"));
        }
        for word in ["ahrbour", "habrour", "harbuor", "harbourx", "harboru"] {
            check(word, Some("Harbour"));
        }
        for word in ["hxrbxur", "ahbrour", "xxrbour", "hbour", "harbourxx", "sea"] {
            check(word, None);
        }
        check("tiddes", Some("tides"));
        check("strasse", None);
        check("strabe", Some("Straße"));
        check("2027", Some("2026"));
        check("the", Some("The"));
        check("thx", None);
    }

    #[test]
    fn a_text_with_a_similar_word_has_a_part_of_the_wanted_one() {
        for found in ["harbour", "hxrbour", "harbxur", "arbour", "harbou", "hbarbour", "ahrbour", "habrour", "harbuor"]
        {
            for wanted in ["harbour", "harbours", "harbor"] {
                if find_similar(found, wanted).is_none() {
                    continue;
                }
                let WordParts { head, tail, around: [before, after] } = parts_of(wanted).unwrap();
                let has_around = found
                    .match_indices(&before)
                    .any(|(at, _)| found[at + before.len()..].chars().skip(2).collect::<String>().starts_with(&after));
                assert!(found.contains(&head) || found.contains(&tail) || has_around, "{found}, {wanted}");
            }
        }
        assert_eq!(parts_of("sea"), None);
    }
}
