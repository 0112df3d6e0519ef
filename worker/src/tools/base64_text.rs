//! Base64 of files within the texts of results: a model cannot read it, and each event and request would carry it.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use holdfast_shared::media_type;

/// Fewest characters of base64 that count as a file.
const MIN_CHARS: usize = 1_000;

/// Characters that tell what a file is.
const BEGINNING_CHARS: usize = 400;

/// Longest beginning of a data URL before its base64.
const MAX_URL_HEAD: usize = 200;

/// Returns a text in which a line stands for the base64 of each file.
pub fn without_base64(text: String) -> String {
    if text.len() < MIN_CHARS {
        return text;
    }
    let (mut plain, mut copied, mut at) = (String::new(), 0, 0);
    while at < text.len() {
        let run = text.as_bytes()[at..].iter().take_while(|byte| is_base64(**byte)).count();
        if run >= MIN_CHARS
            && let Some((start, media_type)) = file_at(&text, at)
        {
            let bytes = text[at..at + run].trim_end_matches('=').len() * 3 / 4;
            plain += &text[copied..start];
            plain += &format!("[base64 of {media_type}, {bytes} bytes, left out]");
            copied = at + run;
        }
        at += run.max(1);
    }
    if copied == 0 { text } else { plain + &text[copied..] }
}

/// Returns where a file begins whose base64 begins at a place, and its media type; `None` if it is no file.
fn file_at(text: &str, at: usize) -> Option<(usize, String)> {
    let (before, base64) = text.split_at(at);
    if let Some(head) = before.strip_suffix(";base64,")
        && let Some(start) = head.rfind("data:").filter(|start| head.len() - start < MAX_URL_HEAD)
    {
        let media_type = head[start..].trim_start_matches("data:").split(';').next()?;
        return Some((start, if media_type.is_empty() { "a file".to_owned() } else { media_type.to_owned() }));
    }
    let beginning = BASE64_STANDARD_NO_PAD.decode(base64.get(..BEGINNING_CHARS)?).ok()?;
    let media_type = media_type::of(&beginning, false, "");
    (![media_type::BYTES, media_type::TEXT].contains(&media_type.as_str())).then_some((at, media_type))
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_for_a_file_and_other_texts_stay() {
        let check = |text: &str, expected: &str| assert_eq!(without_base64(text.to_owned()), expected);
        let png = format!("iVBORw0KGgo{}", "A".repeat(1_321));
        let line = "[base64 of image/png, 999 bytes, left out]";
        check(&format!("{{\"é\":\"{png}\",\"b\":\"{png}=\"}}"), &format!("{{\"é\":\"{line}\",\"b\":\"{line}\"}}"));
        check(&format!("é data:image/png;base64,{png} é"), &format!("é {line} é"));
        let unknown = "data:application/x-tides;name=a;base64,";
        let told = "[base64 of application/x-tides, 750 bytes, left out]";
        check(&format!("{unknown}{}", "A".repeat(1_000)), told);
        for kept in ["short".to_owned(), "A".repeat(5_000), "dGlkZSB".repeat(500), png[..999].to_owned()] {
            check(&kept, &kept);
        }
    }
}
