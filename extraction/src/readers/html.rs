//! HTML as Markdown, by htmd on html5ever.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use htmd::{
    Element, HtmlToMarkdown,
    element_handler::Handlers,
    options::{BulletListMarker, Options},
};

use crate::{collector::TextCollector, error::ExtractionError};

/// Elements without text for a reader.
const SKIPPED: [&str; 9] = ["script", "style", "template", "svg", "iframe", "object", "canvas", "audio", "video"];

/// Bytes in which a page names its encoding, as browsers look for it.
const PRESCAN: usize = 1024;

/// Reads a page.
pub fn read(bytes: &[u8], text: &mut TextCollector) -> Result<(), ExtractionError> {
    let (page, _, _) = encoding(bytes).decode(bytes);
    let options = Options { bullet_list_marker: BulletListMarker::Dash, ul_bullet_spacing: 1, ..Options::default() };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(SKIPPED.to_vec())
        .add_handler(vec!["img"], |_: &dyn Handlers, image: Element| alternative(&image).map(Into::into))
        // Otherwise the elements in `noscript` would be text.
        .scripting_enabled(false)
        .build();
    let markdown = converter.convert(&page).map_err(ExtractionError::malformed)?;
    text.push(&markdown)
}

/// Returns the text for a picture. Its address is dropped: it can be the picture itself, in base64.
fn alternative(image: &Element) -> Option<String> {
    let alternative = image.attrs.iter().find(|attribute| &*attribute.name.local == "alt")?;
    let text = alternative.value.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the encoding by its mark, by what the page says, or by a look at the bytes.
fn encoding(bytes: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    declared(&bytes[..bytes.len().min(PRESCAN)]).unwrap_or(WINDOWS_1252)
}

fn declared(beginning: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset=";
    let at = beginning.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
    let value = beginning[at + NAME.len()..].trim_ascii_start();
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte))?;
    Encoding::for_label(&value[..end])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::ExtractionLimits;

    fn text_of(bytes: &[u8]) -> String {
        let limits = ExtractionLimits { time: Duration::ZERO, memory_bytes: 0, text_bytes: 10_000, pages: 0 };
        let mut text = TextCollector::new(limits);
        read(bytes, &mut text).unwrap();
        text.finish().unwrap().text
    }

    #[test]
    fn a_page_becomes_markdown() {
        let page = r#"<html><head><title>T</title><style>a{}</style><script>x()</script></head><body>
            <h1>One</h1><p>a  b <b>c</b> <a href="https://example.org/">l</a></p>
            <ul><li>x<li>y<ul><li>z</ul></ul>
            <table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
            <pre><code>x=1
  y</code></pre><noscript><p>without</p></noscript>
            <p><img src="data:image/png;base64,AAAA" alt="a picture"><img src="b.png"></p></body></html>"#;
        let expected = "T\n\n# One\n\na b **c** [l](https://example.org/)\n\n- x\n- y\n  - z\n\n| A | B |\n| - | - |\n\
                        | 1 | 2 |\n\n```\nx=1\n  y\n```\n\nwithout\n\na picture";
        assert_eq!(text_of(page.as_bytes()), expected);
    }

    #[test]
    fn a_page_is_read_in_its_encoding() {
        assert_eq!(text_of("<p>é".as_bytes()), "é");
        assert_eq!(text_of(b"<p>\xe9"), "é");
        assert_eq!(text_of(b"<meta charset=\"shift_jis\"><p>\x93\xfa\x96\x7b"), "日本");
        assert_eq!(text_of(b"\xff\xfe<\0p\0>\0\xe9\0"), "é");
    }
}
