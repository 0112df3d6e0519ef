//! Texts that are text already: their encoding becomes UTF-8.

use std::io::Read;

use holdfast_text::TextEncoding;

use super::unread;
use crate::{collector::TextCollector, error::ExtractionError, limits::ExtractionLimits};

/// Most bytes of a character's encodings for one byte of it in UTF-8: an ASCII character in UTF-16 has two.
const ENCODED_BYTES: u64 = 2;

/// Bytes of a byte order mark.
const MARK: u64 = 3;

/// Reads a text, and not much more of an endless one than its limit.
pub fn read(contents: impl Read, limits: &ExtractionLimits, text: &mut TextCollector) -> Result<(), ExtractionError> {
    let most = limits.text_bytes.saturating_mul(ENCODED_BYTES).saturating_add(MARK);
    let mut bytes = Vec::new();
    contents.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| unread(&error, limits))?;
    if bytes.len() as u64 > most {
        return Err(text.too_long());
    }
    // UTF-8 with a NUL is none that the world writes, but the rest of it is a text.
    let sound = || std::str::from_utf8(&bytes).is_ok().then_some(TextEncoding::UTF_8);
    let encoding = TextEncoding::of(&bytes, true).or_else(sound);
    text.push(&encoding.ok_or_else(|| ExtractionError::malformed("it is no text"))?.decode(&bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text_of(bytes: &[u8]) -> Result<String, ExtractionError> {
        let limits = ExtractionLimits { time: Duration::ZERO, memory_bytes: 0, text_bytes: 8, pages: 0 };
        let mut text = TextCollector::new(limits);
        read(bytes, &limits, &mut text)?;
        Ok(text.finish()?.text)
    }

    #[test]
    fn each_encoding_becomes_utf_8() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(text_of(bytes).unwrap(), expected);
        check("aé".as_bytes(), "aé");
        check(b"\xef\xbb\xbfa\xc3\xa9", "aé");
        check(b"\xff\xfea\0\xe9\0", "aé");
        check(b"\xfe\xff\0a\0\xe9", "aé");
        check(b"a\xe9", "aé");
        check(b"\xff\xfea\0b\0c\0d\0e\0f\0g\0h\0", "abcdefgh");
    }

    #[test]
    fn bytes_that_are_no_text_are_malformed() {
        assert_eq!(text_of(b"\xe9\0\x80").unwrap_err().code(), "malformed_document");
    }

    #[test]
    fn an_endless_text_is_too_large() {
        let limits = ExtractionLimits { time: Duration::ZERO, memory_bytes: 0, text_bytes: 8, pages: 0 };
        let error = read(std::io::repeat(b'a'), &limits, &mut TextCollector::new(limits)).unwrap_err();
        assert_eq!(error.code(), "document_too_large");
    }
}
