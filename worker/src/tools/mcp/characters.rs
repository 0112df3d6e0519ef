//! Repairs broken characters in the messages of servers, and numbers that JSON does not have, so that one of them costs itself and
//! not the message.

use bytes::Bytes;
use memchr::{memchr, memmem};

/// The escape of U+FFFD, as long as the escape that it replaces.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// The byte order mark, which some servers send first.
const MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Numbers that Python and others write, although JSON has none of them; the longer ones come first.
const NO_NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// Replaces bytes that are no UTF-8, and the escapes of half surrogate pairs, by U+FFFD, and numbers that are none by `null`.
pub fn mend(mut json: Vec<u8>) -> Vec<u8> {
    if json.starts_with(MARK) {
        json.drain(..MARK.len());
    }
    if std::str::from_utf8(&json).is_err() {
        json = String::from_utf8_lossy(&json).into_owned().into_bytes();
    }
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &json[at..]) {
        at += found;
        at += match (surrogate(&json[at..]), surrogate(json.get(at + 6..).unwrap_or_default())) {
            (Some(Surrogate::High), Some(Surrogate::Low)) => 12,
            (Some(_), _) => {
                json[at..at + 6].copy_from_slice(REPLACEMENT);
                6
            }
            // The next byte may be an escaped backslash.
            (None, _) => 2,
        };
        at = at.min(json.len());
    }
    if NO_NUMBERS[1..].iter().any(|word| memmem::find(&json, word).is_some()) {
        without_no_numbers(&json)
    } else {
        json
    }
}

/// Replaces the numbers that JSON does not have, outside of strings, by `null`.
fn without_no_numbers(json: &[u8]) -> Vec<u8> {
    let (mut mended, mut at, mut is_text) = (Vec::with_capacity(json.len()), 0, false);
    while at < json.len() {
        let word = NO_NUMBERS.iter().find(|word| !is_text && json[at..].starts_with(word));
        let taken = match (word, json[at]) {
            (Some(word), _) => {
                mended.extend_from_slice(b"null");
                at += word.len();
                continue;
            }
            (None, b'\\') if is_text => 2.min(json.len() - at),
            (None, byte) => {
                is_text ^= byte == b'"';
                1
            }
        };
        mended.extend_from_slice(&json[at..at + taken]);
        at += taken;
    }
    mended
}

enum Surrogate {
    High,
    Low,
}

/// Returns the surrogate whose escape the text begins with.
fn surrogate(text: &[u8]) -> Option<Surrogate> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..0xdc00 => Some(Surrogate::High),
        0xdc00..0xe000 => Some(Surrogate::Low),
        _ => None,
    }
}

/// Replaces bytes that are no UTF-8 in a stream, whose chunks cut characters anywhere.
#[derive(Default)]
pub struct ChunkMender {
    /// The beginning of a character, whose rest is in the next chunk.
    pending: Vec<u8>,
}

impl ChunkMender {
    pub fn mend(&mut self, chunk: Bytes) -> Bytes {
        if self.pending.is_empty() && std::str::from_utf8(&chunk).is_ok() {
            return chunk;
        }
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.extend_from_slice(&chunk);
        let whole = bytes.len() - cut_at_the_end(&bytes);
        self.pending = bytes.split_off(whole);
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
}

/// Returns the number of bytes at the end that may be the beginning of a character.
fn cut_at_the_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid().to_vec()).unwrap_or_default();
    let is_cut = std::str::from_utf8(&last).is_err_and(|error| error.error_len().is_none());
    if is_cut { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_character_becomes_a_replacement_and_all_others_stay() {
        let check = |json: &[u8], expected: &str| {
            let mended: String = serde_json::from_slice(&mend(json.to_vec())).unwrap();
            assert_eq!(mended, expected, "{}", String::from_utf8_lossy(json));
        };
        check(br#""a\ud83d\ude00b""#, "a😀b");
        check(br#""a\ud83db""#, "a\u{fffd}b");
        check(br#""a\ude00""#, "a\u{fffd}");
        check(br#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
        check(br#""\\ud83d""#, "\\ud83d");
        check(br#""\\\ud83d""#, "\\\u{fffd}");
        check(b"\"a\xffb\"", "a\u{fffd}b");
        check("\"é\\n\"".as_bytes(), "é\n");
        assert_eq!(mend(b"\"\\".to_vec()), b"\"\\");
        check(b"\xef\xbb\xbf\"a\"", "a");
    }

    #[test]
    fn numbers_that_json_does_not_have_become_null_but_not_in_texts() {
        let json = br#"{"a": NaN, "NaN": [-Infinity,Infinity, "\"NaN", "Infinity\\"], "b": -1}"#;
        let mended: serde_json::Value = serde_json::from_slice(&mend(json.to_vec())).unwrap();
        let expected = serde_json::json!({"a": null, "NaN": [null, null, "\"NaN", "Infinity\\"], "b": -1});
        assert_eq!(mended, expected);
    }

    #[test]
    fn a_character_that_chunks_cut_stays_whole() {
        let text = "aé😀z".as_bytes();
        for cut in 0..=text.len() {
            let mut mender = ChunkMender::default();
            let chunks = [&text[..cut], &text[cut..]].map(|part| mender.mend(Bytes::copy_from_slice(part)));
            assert_eq!(chunks.concat(), text, "{cut}");
        }
        let mut mender = ChunkMender::default();
        let chunks = [&b"a\xf0\x9f"[..], &b"b\xff\n"[..]].map(|part| mender.mend(Bytes::copy_from_slice(part)));
        assert_eq!(chunks.concat(), "a\u{fffd}b\u{fffd}\n".as_bytes());
    }
}
