//! Letters: composed ones, invisible ones, and the spellings that a search takes as one.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, char::is_combining_mark, is_nfc_quick};

/// Returns a text with composed letters (NFC), as keyboards write them. macOS decomposes the names of files.
pub fn composed(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Cow::Borrowed(text),
        _ => Cow::Owned(text.nfc().collect()),
    }
}

/// Returns an extracted text as people read it: with composed letters and without ligatures, soft hyphens and spaces of no width.
pub fn readable(text: &str) -> Cow<'_, str> {
    let text = composed(text);
    if !text.chars().any(|c| is_invisible(c) || ligature(c).is_some()) {
        return text;
    }
    let mut read = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_invisible(*c)) {
        match ligature(c) {
            Some(letters) => read.push_str(letters),
            None => read.push(c),
        }
    }
    Cow::Owned(read)
}

/// Returns the words of a text, each in its original spelling.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |c: char| c.is_alphanumeric() || is_combining_mark(c) || is_invisible(c) || is_joiner(c);
    text.split(move |c| !is_of_word(c)).filter(|word| word.chars().any(char::is_alphanumeric))
}

/// Returns a word as a search compares it: in small composed letters of full width, without invisible characters.
pub fn search_word(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let seen = word.chars().filter(|c| !is_invisible(*c) && !is_joiner(*c));
    let lower: String = seen.nfkc().flat_map(char::to_lowercase).collect();
    lower.nfc().filter(|c| c.is_alphanumeric() || is_combining_mark(*c)).collect()
}

/// Returns a word of a search in letters without accents; `None` if it has none.
pub fn plain_word(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    let mut plain = String::with_capacity(word.len());
    let mut has_marks = false;
    for c in word.chars() {
        if has_marks && is_combining_mark(c) || is_vowel_sign(c) {
            continue;
        }
        let base = std::iter::once(c).nfd().next().unwrap_or(c);
        has_marks = is_of_alphabet(base);
        match respelled(base) {
            Some(letters) => plain.push_str(letters),
            None if has_marks => plain.push(base),
            None => plain.push(c),
        }
    }
    (plain != word && !plain.is_empty()).then_some(plain)
}

/// Returns whether the character is invisible wherever it stands: a soft hyphen, or a space or mark of no width.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Returns whether the character joins or parts its neighbours, or chooses their form. Persian, scripts of India and emoji need it.
const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Returns the letters of a ligature of Latin letters, as PDFs have them.
const fn ligature(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

/// Returns whether marks on the letter are accents: Latin, Greek and Cyrillic letters. Elsewhere they make another letter.
const fn is_of_alphabet(base: char) -> bool {
    matches!(base, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
}

/// Returns whether the character is a vowel sign or a stretching that Arabic and Hebrew usually leave out.
const fn is_vowel_sign(c: char) -> bool {
    matches!(c, '\u{64b}'..='\u{655}' | '\u{670}' | '\u{640}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}')
}

/// Returns the usual spelling of a letter that Unicode does not decompose.
const fn respelled(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decomposed_letters_become_composed() {
        assert_eq!(composed("Bru\u{308}cke"), "Brücke");
        assert_eq!(composed("\u{1112}\u{1161}\u{11ab}"), "한");
        assert!(matches!(composed("Brücke"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_extracted_text_reads_as_people_see_it() {
        assert_eq!(readable("e\u{fb03}cient of\u{ad}fice in\u{200b}voice"), "efficient office invoice");
        assert_eq!(readable("می\u{200c}خواهم 👩\u{200d}💻"), "می\u{200c}خواهم 👩\u{200d}💻");
    }

    #[test]
    fn a_word_is_compared_without_invisible_characters() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(words(text).map(search_word).collect::<Vec<_>>(), expected, "{text:?}");
        };
        check("Bru\u{308}cke, KÖLN", &["brücke", "köln"]);
        check("ｶﾞﾗｽ ＡＢＣ", &["ガラス", "abc"]);
        check("in\u{200b}voice of\u{ad}fice \u{fb01}nd", &["invoice", "office", "find"]);
        check("Holdfast™ m² \u{200b} x\u{301}", &["holdfast", "m2", "x\u{301}"]);
        check("\u{feff}", &[]);
    }

    #[test]
    fn a_plain_word_has_no_accents() {
        let check = |word: &str, expected: &str| assert_eq!(plain_word(word).as_deref(), Some(expected), "{word}");
        check("café", "cafe");
        check("straße", "strasse");
        check("i\u{307}stanbul", "istanbul");
        check("ıspanak", "ispanak");
        check("łódź", "lodz");
        check("smørrebrød", "smorrebrod");
        check("nẵng", "nang");
        check("ёлка", "елка");
        check("άνθρωπος", "ανθρωποσ");
        check("كِتَاب", "كتاب");
        check("x\u{301}", "x");
        for same in ["cafe", "が", "日本", "한국", "हिन्दी", "елка"] {
            assert_eq!(plain_word(same), None, "{same}");
        }
    }
}
