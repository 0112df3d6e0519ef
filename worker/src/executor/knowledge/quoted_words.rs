//! The words in quotes before a mark, and whether a passage has them.

/// Bytes of a text from which on its beginning may be cut off.
const CUT: usize = 4096;

/// Most quotations of a sentence that are looked at, the last ones.
const MAX_QUOTATIONS: usize = 8;

/// Returns the words in quotes of the last sentence of a text, and those with which it ends.
pub fn quotations(text: &str) -> Vec<String> {
    let line = text.rsplit('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
    let quoted = quoted(line);
    let begins = beginning_of_sentence(line, &quoted);
    let of_sentence = quoted.iter().filter(|(start, _)| *start >= begins).map(|(start, end)| &line[*start..*end]);
    let mut found: Vec<String> = of_sentence.map(|words| words.trim().to_owned()).collect();
    found.extend(last_quotation(text).filter(|last| !found.contains(last)).into_iter().collect::<Vec<_>>());
    found.retain(|words| !words.is_empty());
    found.split_off(found.len().saturating_sub(MAX_QUOTATIONS))
}

/// Returns the places of the words in quotes, without the quotes.
fn quoted(line: &str) -> Vec<(usize, usize)> {
    let mut quoted = Vec::new();
    let mut from = 0;
    while let Some((start, end, after)) = next_quoted(line, from) {
        quoted.push((start, end));
        from = after;
    }
    quoted
}

/// Returns where the next words in quotes begin and end, and what is after the quotes.
fn next_quoted(line: &str, from: usize) -> Option<(usize, usize, usize)> {
    line[from..].char_indices().map(|(at, opening)| (from + at, opening)).find_map(|(at, opening)| {
        // Within a word it is an apostrophe.
        let is_apostrophe = opening == '\'' && line[..at].ends_with(char::is_alphanumeric);
        let closings = closings_of(opening).filter(|_| !is_apostrophe)?;
        let start = at + opening.len_utf8();
        let closes = |(at, character): &(usize, char)| {
            let after = start + at + character.len_utf8();
            let is_apostrophe = matches!(character, '\'' | '’') && line[after..].starts_with(char::is_alphanumeric);
            closings.contains(character) && !is_apostrophe
        };
        let (end, closing) = line[start..].char_indices().find(closes)?;
        Some((start, start + end, start + end + closing.len_utf8()))
    })
}

const fn closings_of(opening: char) -> Option<&'static [char]> {
    Some(match opening {
        '"' => &['"'],
        '“' => &['”'],
        '„' => &['“', '”'],
        '”' => &['”'],
        '«' => &['»'],
        '»' => &['«', '»'],
        '「' => &['」'],
        '『' => &['』'],
        '‹' => &['›'],
        '›' => &['‹', '›'],
        '‘' => &['’'],
        '‚' => &['‘', '’'],
        '\'' => &['\''],
        _ => return None,
    })
}

/// Returns where the last sentence begins. A full stop within a quotation that continues is none.
fn beginning_of_sentence(line: &str, quoted: &[(usize, usize)]) -> usize {
    let end = line.trim_end().len();
    let ends_sentence = |(at, character): &(usize, char)| {
        let after = at + character.len_utf8();
        let is_stop = match character {
            '.' | '!' | '?' => line[after..].starts_with(' '),
            '。' | '！' | '？' => true,
            _ => false,
        };
        is_stop && after < end && !quoted.iter().any(|(start, end)| start <= at && at < end)
    };
    line.char_indices().rfind(ends_sentence).map_or(0, |(at, character)| at + character.len_utf8())
}

/// Returns the words in quotes with which the text ends, apart from punctuation.
fn last_quotation(text: &str) -> Option<String> {
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || ".,;:!?)*_".contains(c));
    let closing = end.chars().next_back()?;
    let openings: &[char] = match closing {
        '"' => &['"'],
        '”' => &['“', '„', '”'],
        '“' => &['„'],
        '»' => &['«', '»'],
        '«' => &['»'],
        '」' => &['「'],
        '』' => &['『'],
        '›' => &['‹', '›'],
        '‹' => &['›'],
        '‘' => &['‚'],
        '’' => &['‘', '‚', '’'],
        '\'' => &['\''],
        _ => return None,
    };
    let is_apostrophe_too = matches!(closing, '\'' | '’');
    let inner = &end[..end.len() - closing.len_utf8()];
    let opens = |(at, character): &(usize, char)| {
        let is_within_word = inner[..*at].ends_with(char::is_alphanumeric);
        openings.contains(character) && !(is_apostrophe_too && *character == closing && is_within_word)
    };
    let start = match inner.char_indices().rfind(opens) {
        Some((at, opening)) => at + opening.len_utf8(),
        // The quotation is longer than the text that is kept, so no passage has it.
        None if text.len() >= CUT && !is_apostrophe_too => 0,
        None => return None,
    };
    let words = inner[start..].trim();
    (!words.is_empty()).then(|| words.to_owned())
}

/// Returns whether a passage has the words of a quotation. White space of any kind and length is equal, because a model writes
/// lines of its own. An ellipsis leaves words out.
pub fn occurs(quotation: &str, passage: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (quotation, passage) = (plain(quotation).replace("...", "…"), plain(passage));
    let mut rest = passage.as_str();
    let parts = quotation.split('…').map(|part| part.trim().trim_end_matches(['.', ',', ';', ':', '!', '?']));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    !parts.is_empty()
        && parts.into_iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotations_of_the_last_sentence_are_found() {
        let check = |text: &str, expected: &[&str]| assert_eq!(quotations(text), expected, "{text}");
        check("He said \"so it is\"", &["so it is"]);
        check("„so it is“,", &["so it is"]);
        check("“one” and “two”.", &["one", "two"]);
        check("«deux mots»", &["deux mots"]);
        check("**\"bold\"**", &["bold"]);
        check("「水」", &["水"]);
        check("He said 'so it isn't'", &["so it isn't"]);
        check("‘the worker’s log’", &["the worker’s log"]);
        check("‚so ist es‘", &["so ist es"]);
        check("‹deux mots›", &["deux mots"]);
        check("”så är det”", &["så är det"]);
        check("\"one\" according to them", &["one"]);
        check("\"One.\" and two.", &["One."]);
        check("They say \"one\". Two is so", &[]);
        check("They say \"one\".\nTwo is so", &[]);
        check("\"\"", &[]);
        check("the workers' logs'", &[]);
        check("the workers’", &[]);
        check("plain", &[]);
    }

    #[test]
    fn a_quotation_without_a_beginning_is_checked_too() {
        let long = format!("{}”", "word ".repeat(CUT));
        assert!(quotations(&long)[0].len() >= CUT - 10);
    }

    #[test]
    fn a_quotation_occurs_as_it_is_written() {
        let passage = "The worker\nappends the line;  Redis\tdoes it.";
        for (quotation, expected) in [
            ("appends the line", true),
            ("The worker appends", true),
            ("Redis does it.", true),
            ("The worker … does it", true),
            ("The worker... the line", true),
            ("does it … The worker", false),
            ("appends a line", false),
            ("the worker", false),
            ("…", false),
        ] {
            assert_eq!(occurs(quotation, passage), expected, "{quotation}");
        }
    }
}
