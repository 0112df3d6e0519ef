//! The name of a file in `content-disposition`, in each of its spellings.

use axum::http::{HeaderMap, header};
use holdfast_text::TextEncoding;
use percent_encoding::percent_decode_str;

/// The spellings of browsers for the characters that would end a quoted name in a form, and these characters.
const OF_FORMS: [(&str, &str); 3] = [("%22", "\""), ("%0D", "\r"), ("%0A", "\n")];

/// Returns the name of a request's file. `filename*` comes before `filename`, which older clients read.
pub fn name(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_DISPOSITION)?;
    let parameters = parameters(&decoded(value.as_bytes(), None));
    let parameter = |wanted: &str| parameters.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
    parameter("filename*").and_then(|value| extended(value)).or_else(|| parameter("filename").cloned())
}

/// Returns the name of the file in a form's field.
pub fn name_in_form(headers: &HeaderMap) -> Option<String> {
    let name = name(headers)?;
    Some(OF_FORMS.iter().fold(name, |name, (written, meant)| name.replace(written, meant)))
}

/// Returns an extended value: its encoding, perhaps its language, and its bytes.
fn extended(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, '\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    Some(decoded(&bytes, TextEncoding::named(charset)))
}

fn decoded(bytes: &[u8], named: Option<TextEncoding>) -> String {
    let encoding = named.or_else(|| TextEncoding::of(bytes, true)).unwrap_or(TextEncoding::UTF_8);
    encoding.decode(bytes).into_owned()
}

/// Returns the parameters of a header, whose values may be quoted.
fn parameters(value: &str) -> Vec<(String, String)> {
    let mut parameters = vec![String::new()];
    let (mut is_quoted, mut chars) = (false, value.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            ';' if !is_quoted => parameters.push(String::new()),
            '\\' if is_quoted => parameters.last_mut().expect("it has the first").extend(chars.next()),
            c => parameters.last_mut().expect("it has the first").push(c),
        }
    }
    let split = |parameter: String| {
        let (key, value) = parameter.split_once('=')?;
        Some((key.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    parameters.into_iter().skip(1).filter_map(split).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use holdfast_shared::file_name::plain_name;

    use super::*;

    fn headers(disposition: &[u8]) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_DISPOSITION, HeaderValue::from_bytes(disposition).unwrap())])
    }

    #[test]
    fn a_name_is_read_in_each_spelling_and_made_plain() {
        let check = |disposition: &[u8], expected: &str| {
            assert_eq!(plain_name(&name(&headers(disposition)).unwrap_or_default()), expected, "{disposition:x?}");
        };
        check(b"attachment; filename=\"report; 2.pdf\"", "report; 2.pdf");
        check(b"attachment; filename=\"a \\\"b\\\".txt\"; size=3", "a \"b\".txt");
        check(b"attachment; filename=plain.txt", "plain.txt");
        check(b"attachment; filename=\"x.txt\"; filename*=UTF-8''h%C3%A4fen.txt", "häfen.txt");
        check(b"attachment; filename*=utf-8'de'h%C3%A4fen.txt; filename=\"x.txt\"", "häfen.txt");
        check(b"attachment; filename*=ISO-8859-1''h%E4fen.txt", "häfen.txt");
        check(b"attachment; filename*=broken; filename=\"x.txt\"", "x.txt");
        check(b"attachment; filename*=UTF-8''ha%CC%88fen.txt", "häfen.txt");
        check("attachment; filename=\"ha\u{308}fen.txt\"".as_bytes(), "häfen.txt");
        check(b"attachment; filename=\"h\xe4fen von K\xf6ln.txt\"", "häfen von Köln.txt");
        check(b"attachment; filename=\"../../etc/passwd\"", "passwd");
        check(b"attachment; filename*=UTF-8''a%0d%0ab%e2%80%aegnp.exe", "abgnp.exe");
        check(b"attachment", "file");
    }

    #[test]
    fn a_quote_in_a_form_is_written_as_browsers_write_it() {
        let name = |disposition: &[u8]| name_in_form(&headers(disposition)).unwrap();
        assert_eq!(name(b"form-data; name=\"file\"; filename=\"a %22b%22 100%.txt\""), "a \"b\" 100%.txt");
    }
}
