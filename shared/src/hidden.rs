//! Hidden characters: terminal controls, direction marks and characters without width.
//!
//! A foreign text must not forge a log line, move a cursor, or show a human a different text. The log and the terminal
//! client escape these characters.

use std::borrow::Cow;

/// Returns whether a character is a control, changes the writing direction, or has no width.
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(char, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({"to\u{202e}ol": ["\u{9b}1A", "\u{e0001}", "plain", "\n"]});
        let text = format!("{value}\n");
        let escaped_text = visible_json(&text);
        assert!(escaped_text.ends_with('\n') && !escaped_text.trim_end().contains(is_hidden), "{escaped_text}");
        assert!(escaped_text.contains("\\udb40\\udc01"), "{escaped_text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped_text).unwrap(), value);
    }
}
