//! Texts of a chunk whose characters a server may have cut.
//!
//! A server that cuts its answer by code units or bytes sends halves of characters: half a surrogate pair, as `"\ud83d"`, or some
//! bytes of a UTF-8 sequence. JSON's strings hold neither as Rust's do, so a text is bytes (WTF-8) until `TextJoiner` has joined it.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use serde_json::value::RawValue;

/// Deepest nesting of a content; Mistral's has five levels.
const MAX_DEPTH: u8 = 8;

/// A string of JSON, in WTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WireText(pub Vec<u8>);

impl<'de> Deserialize<'de> for WireText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(WireTextVisitor)
    }
}

struct WireTextVisitor;

impl Visitor<'_> for WireTextVisitor {
    type Value = WireText;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<WireText, E> {
        Ok(WireText(bytes.to_vec()))
    }
}

/// A content: a text, or a list of parts, of which some are reasoning.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WireContent(pub Vec<ContentPiece>);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentPiece {
    Text(WireText),
    Reasoning(WireText),
}

/// A part of a content, such as `{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}`.
#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut content = Self::default();
        content.read(<&'de RawValue>::deserialize(deserializer)?.get(), false, MAX_DEPTH);
        Ok(content)
    }
}

impl WireContent {
    /// Returns whether no part has a character.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(ContentPiece::Text(text) | ContentPiece::Reasoning(text))| text.0.is_empty())
    }

    /// Adds what the JSON says. Parts of a thought are reasoning too.
    fn read(&mut self, json: &str, is_thought: bool, depth: u8) {
        if depth == 0 {
            return;
        }
        match json.as_bytes().first() {
            Some(b'"') => {
                let Ok(text) = serde_json::from_str(json) else { return };
                self.0.push(if is_thought { ContentPiece::Reasoning(text) } else { ContentPiece::Text(text) });
            }
            Some(b'[') => {
                for part in serde_json::from_str::<Vec<&RawValue>>(json).into_iter().flatten() {
                    self.read(part.get(), is_thought, depth - 1);
                }
            }
            Some(b'{') => {
                let Ok(WirePart { r#type, text, thinking }) = serde_json::from_str(json) else { return };
                let is_thought = is_thought || r#type.is_some_and(|kind| kind.get() == "\"thinking\"");
                for value in [text, thinking].into_iter().flatten() {
                    self.read(value.get(), is_thought, depth - 1);
                }
            }
            _ => {}
        }
    }
}

/// Returns a line as text. A byte that is no UTF-8 becomes the escape of a lone surrogate, from which `TextJoiner` makes
/// it again, as Python's `surrogateescape` does.
pub(super) fn escaped(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return text.into();
    }
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\udc{byte:02x}")));
    }
    text.into()
}

/// Joins the texts of one kind across deltas.
#[derive(Default)]
pub(super) struct TextJoiner {
    /// The beginning of a character whose end has not arrived.
    pending: Vec<u8>,
}

impl TextJoiner {
    /// Returns the complete characters after the next text. A character that cannot be completed becomes U+FFFD.
    pub fn push(&mut self, text: WireText) -> String {
        let WireText(mut bytes) = text;
        if self.pending.is_empty() {
            match String::from_utf8(bytes) {
                Ok(text) => return text,
                Err(error) => bytes = error.into_bytes(),
            }
        } else {
            bytes = [std::mem::take(&mut self.pending), bytes].concat();
        }
        let mut out = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some(at) = first_surrogate(rest) {
            out.push_str(&String::from_utf8_lossy(&rest[..at]));
            rest = &rest[at..];
            match character(rest) {
                JoinedCharacter::Character(character, length) => {
                    out.push(character);
                    rest = &rest[length..];
                }
                JoinedCharacter::Beginning => {
                    self.pending = rest.to_vec();
                    return out;
                }
            }
        }
        out.push_str(&String::from_utf8_lossy(rest));
        out
    }

    /// Returns the replacement of a character that was never completed.
    pub fn finish(&mut self) -> Option<String> {
        (!std::mem::take(&mut self.pending).is_empty()).then(|| char::REPLACEMENT_CHARACTER.to_string())
    }
}

enum JoinedCharacter {
    /// A character, and the bytes that it had here.
    Character(char, usize),
    /// All bytes are the beginning of a character.
    Beginning,
}

/// Bytes of a surrogate in WTF-8.
const SURROGATE: usize = 3;

/// Returns the offset of the first surrogate.
fn first_surrogate(bytes: &[u8]) -> Option<usize> {
    bytes.windows(SURROGATE).position(|three| surrogate(three).is_some())
}

/// Returns the surrogate at the beginning of these bytes.
fn surrogate(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [0xED, second @ 0xA0..=0xBF, third, ..] => {
            Some(0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F))
        }
        _ => None,
    }
}

/// Reads the character that begins with a surrogate.
fn character(bytes: &[u8]) -> JoinedCharacter {
    let broken = JoinedCharacter::Character(char::REPLACEMENT_CHARACTER, SURROGATE);
    match surrogate(bytes) {
        Some(lead @ 0xD800..=0xDBFF) => match surrogate(&bytes[SURROGATE..]) {
            Some(trail @ 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((lead - 0xD800) << 10) + (trail - 0xDC00);
                JoinedCharacter::Character(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 2 * SURROGATE)
            }
            None if bytes.len() == SURROGATE => JoinedCharacter::Beginning,
            _ => broken,
        },
        Some(0xDC80..=0xDCFF) => escaped_character(bytes),
        _ => broken,
    }
}

/// Reads the character whose bytes `escaped` has written as surrogates.
fn escaped_character(bytes: &[u8]) -> JoinedCharacter {
    let escapes = bytes.chunks(SURROGATE).map_while(surrogate).take_while(|code| (0xDC80..=0xDCFF).contains(code));
    let run: Vec<u8> = escapes.take(4).map(|code| (code - 0xDC00) as u8).collect();
    let replacement = |length: usize| JoinedCharacter::Character(char::REPLACEMENT_CHARACTER, length * SURROGATE);
    let valid = match std::str::from_utf8(&run) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&run[..error.valid_up_to()]).unwrap_or_default(),
        Err(error) => {
            return match error.error_len() {
                Some(length) => replacement(length),
                None if run.len() * SURROGATE == bytes.len() => JoinedCharacter::Beginning,
                None => replacement(run.len()),
            };
        }
    };
    match valid.chars().next() {
        Some(character) => JoinedCharacter::Character(character, character.len_utf8() * SURROGATE),
        None => replacement(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins the strings of JSON, whose bytes may be no UTF-8.
    fn joined(texts: &[&[u8]]) -> String {
        let mut joiner = TextJoiner::default();
        let mut out = String::new();
        for text in texts {
            let json = [&b"\""[..], text, b"\""].concat();
            out += &joiner.push(serde_json::from_str(&escaped(&json)).unwrap());
        }
        out + &joiner.finish().unwrap_or_default()
    }

    #[test]
    fn halves_of_a_character_are_joined_and_what_stays_broken_is_replaced() {
        let check = |texts: &[&[u8]], expected: &str| assert_eq!(joined(texts), expected, "{texts:?}");
        check(&["wörld \\u00e9 😀".as_bytes()], "wörld é 😀");
        check(&[b"a\\ud83d\\ude00b"], "a😀b");
        check(&[b"Hi \\ud83d", b"\\ude00 there"], "Hi 😀 there");
        // The trail of this one is also the escape of a byte.
        check(&[b"\\ud83d", b"\\udc80"], "💀");
        check(&[b"\\ud83d", b"", b"\\ude00"], "😀");
        check(&[b"\\ud83d"], "\u{FFFD}");
        check(&[b"\\ud83d", b"x"], "\u{FFFD}x");
        check(&[b"\\ud83d\\ud83d", b"\\ude00"], "\u{FFFD}😀");
        check(&[b"x\\ude00y"], "x\u{FFFD}y");
        check(&[b"caf\xC3", b"\xA9!"], "café!");
        check(&[b"\xF0", b"\x9F\x98", b"\x80"], "😀");
        check(&[b"\xF0\x9F", b"ab"], "\u{FFFD}ab");
        check(&[b"a\xFFb"], "a\u{FFFD}b");
        check(&[b"a\xC3"], "a\u{FFFD}");
        check(&[b"\xC3\xA9\xE4\xB8", b"\x96"], "é世");
    }

    #[test]
    fn a_content_is_a_text_or_a_list_of_parts() {
        let text = |text: &str| ContentPiece::Text(WireText(text.into()));
        let reasoning = |text: &str| ContentPiece::Reasoning(WireText(text.into()));
        let check = |json: &str, expected: Vec<ContentPiece>| {
            assert_eq!(serde_json::from_str::<WireContent>(json).unwrap().0, expected, "{json}");
        };
        check(r#""a""#, vec![text("a")]);
        check(r#"[{"type":"text","text":"a"},"b",7,{"type":"image_url"}]"#, vec![text("a"), text("b")]);
        check(r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]"#, vec![reasoning("hm")]);
        check(r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"}]"#, vec![reasoning("hm"), text("a")]);
        check(r#"{"text":"a","type":"text"}"#, vec![text("a")]);
        check("7", vec![]);
        check(&("[".repeat(100) + &"]".repeat(100)), vec![]);
    }
}
