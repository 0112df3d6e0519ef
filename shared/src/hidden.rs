//! Hidden characters: terminal controls, direction marks and characters without width.
//!
//! A foreign text must not forge a log line, move a cursor, or show a human a different text. The log and the terminal
//! client escape these characters, and titles and names of files lose them. A name by which the server knows something
//! stays as it is, and needs a visible character.

use std::borrow::Cow;

/// Returns whether a character is a control, changes the writing direction, or has no width.
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(char, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns whether a text has a character that a human sees.
pub fn is_visible(text: &str) -> bool {
    text.chars().any(|char| !is_blank(char))
}

/// Returns whether a character shows nothing: a hidden one, a space, a filler or a selector.
fn is_blank(char: char) -> bool {
    is_hidden(char)
        || char.is_whitespace()
        || matches!(
            char,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        )
        || matches!(char, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Zero-width non-joiner, which Persian words need, and zero-width joiner, which Indic words and emoji need.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// The flag that tags make that of a region, the tag at its end, and most tags before that.
const FLAG: char = '\u{1f3f4}';
const END_OF_TAGS: char = '\u{e007f}';
const MAX_TAGS: usize = 6;

/// Returns the text without characters that change the writing direction or have no width. Joiners inside words and emoji
/// stay, and so do the tags of a flag and all other controls.
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    let is_removed = |char: char| is_hidden(char) && !char.is_control();
    if !text.contains(is_removed) {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut end_of_tags) = (String::with_capacity(text.len()), 0);
    for (at, char) in text.char_indices() {
        let rest = &text[at + char.len_utf8()..];
        if char == FLAG {
            end_of_tags = at + char.len_utf8() + tags_of_flag(rest);
        }
        let stays = if JOINERS.contains(&char) {
            kept.chars().next_back().is_some_and(is_joined) && rest.chars().next().is_some_and(is_joined)
        } else {
            !is_removed(char) || at < end_of_tags
        };
        if stays {
            kept.push(char);
        }
    }
    Cow::Owned(kept)
}

/// Returns whether a joiner beside this character is inside a word or an emoji.
fn is_joined(char: char) -> bool {
    char.is_alphanumeric() || !char.is_ascii() && !char.is_whitespace() && !is_hidden(char)
}

/// Returns the bytes of the tags at the start of a text after `FLAG`; 0 if they make no flag of a region.
fn tags_of_flag(text: &str) -> usize {
    let is_tag = |char: &char| matches!(char, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let tags = text.chars().take_while(is_tag).count();
    let is_flag = (1..=MAX_TAGS).contains(&tags) && text.chars().nth(tags) == Some(END_OF_TAGS);
    if is_flag { (tags + 1) * END_OF_TAGS.len_utf8() } else { 0 }
}

/// Returns the text on one line, with each hidden character in Rust's spelling: `
/// `, `\u{1b}`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, |escaped_text, char| escaped_text.extend(char.escape_default()))
}

/// Returns the JSON text with each hidden character as a JSON escape, which changes no value. Newlines stay, because
/// they stand between values only.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(
        json,
        |char| char != '\n' && is_hidden(char),
        |escaped_text, char| {
            for unit in char.encode_utf16(&mut [0; 2]) {
                escaped_text.push_str(&format!("\\u{unit:04x}"));
            }
        },
    )
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped_text = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_escaped(char) { escape(&mut escaped_text, char) } else { escaped_text.push(char) }
    }
    Cow::Owned(escaped_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_others_stay() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("plain, ünïcode, 中文, 🦀", "plain, ünïcode, 中文, 🦀");
        check("one\ntwo\r\tthree", "one\\ntwo\\r\\tthree");
        check("\u{1b}[2J\u{9b}1A\u{7f}", "\\u{1b}[2J\\u{9b}1A\\u{7f}");
        check("a\u{202e}b\u{200b}c\u{2028}d", "a\\u{202e}b\\u{200b}c\\u{2028}d");
    }

    #[test]
    fn a_title_loses_hidden_characters_and_keeps_joiners_inside_words_and_emoji() {
        let check = |text: &str, expected: &str| assert_eq!(without_hidden(text), expected, "{text:?}");
        for kept in [
            "plain, ünïcode, 中文, 🦀",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "Auf\u{200c}lage",
            "👩\u{200d}💻",
            "❤\u{fe0f}\u{200d}🔥",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "one\ntwo",
        ] {
            check(kept, kept);
        }
        check("invoice\u{202e}fdp.exe", "invoicefdp.exe");
        check("\u{2066}a\u{2069}\u{200e}b\u{200f}\u{61c}", "ab");
        check("a\u{200b}b\u{feff}c\u{2060}d\u{ad}e", "abcde");
        check("\u{200d}a\u{200d}", "a");
        check("a \u{200c}b\u{200d}.exe", "a b.exe");
        check("a\u{200d}\u{200d}b", "a\u{200d}b");
        check("a\u{200d}\u{202e}b", "ab");
        check("hi\u{e0068}\u{e0069}\u{e007f}", "hi");
        check("🏴\u{e0067}", "🏴");
        check("🏴\u{e007f}", "🏴");
        check(&format!("🏴{}\u{e007f}", "\u{e0061}".repeat(9)), "🏴");
        check("\u{200b}\u{202e}", "");
    }

    #[test]
    fn a_name_needs_a_visible_character() {
        for name in ["a", " a\u{200b}", "潮", "🦀", "-", "\u{202e}x"] {
            assert!(is_visible(name), "{name:?}");
        }
        for name in ["", " ", "\u{200b}\u{200d}", "\u{202e}", "\u{3164}", "\u{2800}", "\u{fe0f}", "\t\n"] {
            assert!(!is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({"to\u{202e}ol": ["\u{9b}1A", "\u{e0001}", "plain", "\n"]});
        let text = format!("{value}\n");
        let escaped_text = visible_json(&text);
        assert!(escaped_text.ends_with('\n') && !escaped_text.trim_end().contains(is_hidden), "{escaped_text}");
        assert!(escaped_text.contains("\\udb40\\udc01"), "{escaped_text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped_text).unwrap(), value);
    }
}
