//! The encoding of a text by its bytes: a mark, zeros of UTF-16, UTF-8, what a markup says of itself, or else a guess by chardetng.

use std::{borrow::Cow, char::decode_utf16};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Most bytes after the first one beyond ASCII that a guess reads.
const GUESSED: usize = 256 * 1024;

/// Bytes in which a markup names its encoding, as browsers look for it.
const PRESCAN: usize = 1024;

/// Most bytes that show whether a text is UTF-16 without a mark.
const SAMPLE: usize = 64 * 1024;

/// Characters of UTF-8 for each broken byte from which a text is UTF-8 with damage.
const SOUND_FOR_BROKEN: usize = 4;

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// UTF-8, of which broken bytes become U+FFFD.
    pub const UTF_8: Self = Self(UTF_8);

    /// Returns the encoding of a text that begins with these bytes; `None` if they are no text. `is_whole` says whether there is no
    /// more.
    pub fn of(bytes: &[u8], is_whole: bool) -> Option<Self> {
        if let Some((marked, _)) = Encoding::for_bom(bytes) {
            return (marked == UTF_8 || !is_whole || bytes.len().is_multiple_of(2)).then_some(Self(marked));
        }
        if bytes.contains(&0) {
            return utf16_without_mark(bytes, is_whole).map(Self);
        }
        if bytes.is_ascii() {
            let is_japanese = bytes.windows(2).any(|pair| pair == b"\x1b$") && reads_as(ISO_2022_JP, bytes, is_whole);
            return Some(Self(if is_japanese { ISO_2022_JP } else { UTF_8 }));
        }
        if is_utf8(bytes, is_whole) {
            return Some(Self::UTF_8);
        }
        let declared = declared(&bytes[..bytes.len().min(PRESCAN)]).filter(|name| reads_as(name, bytes, is_whole));
        declared.or_else(|| guessed(bytes, is_whole)).map(Self)
    }

    /// Returns the encoding with this name on the web.
    pub fn named(name: &str) -> Option<Self> {
        Encoding::for_label(name.as_bytes()).map(Self)
    }

    /// Returns the name of the encoding on the web.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Decodes a text without its byte order mark. Broken bytes become U+FFFD.
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        self.0.decode_with_bom_removal(bytes).0
    }

    /// Returns a decoder of a text that arrives in parts.
    pub fn decoder(self) -> TextDecoder {
        TextDecoder(self.0.new_decoder_with_bom_removal())
    }
}

/// Decodes a text that arrives in parts, which may end within a character.
pub struct TextDecoder(Decoder);

impl TextDecoder {
    /// Decodes the next part, or with `is_last` the last one.
    pub fn decode(&mut self, part: &[u8], is_last: bool) -> String {
        let most = self.0.max_utf8_buffer_length(part.len()).unwrap_or(part.len());
        let mut text = String::with_capacity(most);
        // The capacity is the most that this part can need.
        let _ = self.0.decode_to_string(part, &mut text, is_last);
        text
    }
}

/// Returns whether bytes are UTF-8, perhaps with a little damage. Their last character may end in the next part.
fn is_utf8(bytes: &[u8], is_whole: bool) -> bool {
    let (mut sound, mut broken) = (0, 0);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        sound += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        let is_cut = chunks.peek().is_none() && !is_whole;
        broken += usize::from(!chunk.invalid().is_empty() && !is_cut);
    }
    broken == 0 || sound >= broken * SOUND_FOR_BROKEN
}

/// Returns the byte order of a text in UTF-16 without a mark: the one in which it has letters of ASCII, and reads as a text.
fn utf16_without_mark(bytes: &[u8], is_whole: bool) -> Option<&'static Encoding> {
    if is_whole && !bytes.len().is_multiple_of(2) {
        return None;
    }
    let is_cut = !is_whole || bytes.len() > SAMPLE;
    let pairs = bytes[..bytes.len().min(SAMPLE)].as_chunks::<2>().0;
    if pairs.len() < 2 {
        return None;
    }
    let ascii = |high: usize| pairs.iter().filter(|pair| pair[high] == 0 && pair[1 - high].is_ascii()).count();
    let (little, big) = (ascii(1), ascii(0));
    let encoding = match (little > 2 * big, big > 2 * little) {
        (true, _) => UTF_16LE,
        (_, true) => UTF_16BE,
        _ => return None,
    };
    let unit =
        |pair: &[u8; 2]| if encoding == UTF_16LE { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) };
    let mut units: Vec<u16> = pairs.iter().map(unit).collect();
    if is_cut && units.last().is_some_and(|last| matches!(last, 0xd800..=0xdbff)) {
        units.pop();
    }
    let is_text = decode_utf16(units).all(|c| c.is_ok_and(is_of_text));
    is_text.then_some(encoding)
}

/// Returns the encoding that a page or another markup says it has.
fn declared(beginning: &[u8]) -> Option<&'static Encoding> {
    if !beginning.trim_ascii_start().starts_with(b"<") {
        return None;
    }
    let lower = beginning.to_ascii_lowercase();
    let after = |name: &[u8]| lower.windows(name.len()).position(|window| window == name).map(|at| at + name.len());
    let at = after(b"charset=").or_else(|| after(b"encoding="))?;
    let value = lower[at..].trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte))?;
    Encoding::for_label(&value[..end])
}

/// Returns the encoding that the frequencies of the bytes tell, if the bytes are a text in it.
fn guessed(bytes: &[u8], is_whole: bool) -> Option<&'static Encoding> {
    let first = bytes.iter().position(|byte| !byte.is_ascii())?;
    // The line before the first foreign letter tells its neighbours.
    let from = bytes[..first]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1)
        .max(first.saturating_sub(PRESCAN));
    let sample = &bytes[from..bytes.len().min(from + GUESSED)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, is_whole && from + sample.len() == bytes.len());
    let guess = detector.guess(None, Utf8Detection::Deny);
    reads_as(guess, bytes, is_whole).then_some(guess)
}

/// Returns whether bytes are a text in the encoding: without what is no character of it, and without control characters.
fn reads_as(encoding: &'static Encoding, bytes: &[u8], is_whole: bool) -> bool {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len()).unwrap_or(0);
    let mut text = String::with_capacity(most);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, is_whole);
    !matches!(result, DecoderResult::Malformed(..)) && text.chars().all(is_of_text)
}

/// Returns whether texts have the character: no noncharacter, and no control character but those of lines, of DOS's
/// ends and of terminals.
fn is_of_text(c: char) -> bool {
    let is_noncharacter = matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
    let is_line = matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{85}' | '\u{1a}' | '\u{1b}');
    (!c.is_control() || is_line) && !is_noncharacter
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, GBK, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1254};
    use proptest::prelude::*;

    use super::*;

    fn text_of(bytes: &[u8]) -> Option<String> {
        TextEncoding::of(bytes, true).map(|encoding| encoding.decode(bytes).into_owned())
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(text_of(bytes).as_deref(), Some(expected), "{bytes:x?}");
    }

    fn utf16(text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes_of).collect()
    }

    #[test]
    fn tables_of_excel_are_read_in_the_encoding_of_its_country() {
        for (encoding, text) in [
            (WINDOWS_1252, "name;city;price\r\nJörg;Köln;5 €\r\n"),
            (WINDOWS_1252, "nom;ville\r\n\"Hélène\nDupré\";Besançon\r\n"),
            (WINDOWS_1250, "imię;miasto\r\nŁukasz Wiśniewski;Wrocław\r\nGrażyna Żak;Łódź\r\n"),
            (WINDOWS_1251, "имя;город\r\nИван Петров;Москва\r\n"),
            (WINDOWS_1254, "ad;şehir\r\nIşıl Yıldız;İstanbul\r\nGökçe Çağrı;Eskişehir\r\n"),
            (SHIFT_JIS, "名前,住所\r\n山田太郎,東京都千代田区\r\nｻﾄｳ,大阪\r\n"),
            (GBK, "姓名\t城市\r\n张三\t北京\r\n李四\t上海\r\n"),
            (BIG5, "姓名,城市\r\n王小明,臺北\r\n陳美麗,高雄\r\n"),
            (EUC_KR, "이름,도시\r\n김철수,서울\r\n이영희,부산\r\n"),
        ] {
            let (bytes, _, has_unmappable) = encoding.encode(text);
            assert!(!has_unmappable);
            check(&bytes, text);
        }
    }

    #[test]
    fn utf_16_is_read_with_a_mark_and_without() {
        let text = "名前\tcity\r\nJörg\tKöln 🦀\r\n";
        for order in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            check(&utf16(text, order), text);
            check(&utf16(&format!("\u{feff}{text}"), order), text);
        }
        check(b"\xef\xbb\xbfa\xc3\xa9", "aé");
    }

    #[test]
    fn a_damaged_text_in_utf_8_stays_one() {
        let mut bytes = "Größe, Höhe, Länge, Maß".as_bytes().to_vec();
        bytes.push(0xff);
        check(&bytes, "Größe, Höhe, Länge, Maß\u{fffd}");
    }

    #[test]
    fn a_markup_says_its_encoding() {
        check(b"<meta charset=\"shift_jis\"><p>\x93\xfa", "<meta charset=\"shift_jis\"><p>日");
        check(b"<?xml version='1.0' encoding='ISO-8859-2'?><a>\xb1", "<?xml version='1.0' encoding='ISO-8859-2'?><a>ą");
        let (mail, _, _) = ISO_2022_JP.encode("日本語のメール");
        check(&mail, "日本語のメール");
    }

    #[test]
    fn bytes_that_are_no_text_have_no_encoding() {
        let none: [&[u8]; 8] = [
            b"a\0b",
            b"\0\x01\x02\x03",
            b"\xe9\0\x80",
            b"\xff\xfe\xfd",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0",
            b"\x90\x91\x01\x02\xfe\x03",
            b"a\0\x07\0b\0c\0",
            b"ab\0\0\0\0cd\0\0",
        ];
        for bytes in none {
            assert_eq!(text_of(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn a_beginning_may_end_within_a_character() {
        let check = |bytes: &[u8], expected: Option<TextEncoding>| assert_eq!(TextEncoding::of(bytes, false), expected);
        check(&"é".as_bytes()[..1], Some(TextEncoding::UTF_8));
        let (japanese, _, _) = SHIFT_JIS.encode("名前と住所の一覧です");
        check(&japanese[..japanese.len() - 1], Some(TextEncoding(SHIFT_JIS)));
        check(b"a\0b\0c", Some(TextEncoding(UTF_16LE)));
    }

    proptest! {
        #[test]
        fn parts_are_decoded_as_the_whole(text in "\\PC{0,40}", size in 1_usize..7) {
            for bytes in [text.clone().into_bytes(), utf16(&text, u16::to_le_bytes), SHIFT_JIS.encode(&text).0.into_owned()] {
                let Some(encoding) = TextEncoding::of(&bytes, true) else { continue };
                let mut decoder = encoding.decoder();
                let mut decoded: String = bytes.chunks(size).map(|part| decoder.decode(part, false)).collect();
                decoded.push_str(&decoder.decode(b"", true));
                prop_assert_eq!(decoded, encoding.decode(&bytes).into_owned());
            }
        }
    }
}
