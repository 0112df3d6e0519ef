//! HTML as Markdown, by htmd on html5ever.

use std::borrow::Cow;

use holdfast_text::TextEncoding;
use htmd::{
    Element, HtmlToMarkdown,
    element_handler::Handlers,
    options::{BulletListMarker, Options},
};

use crate::{collector::TextCollector, error::ExtractionError};

/// A bar in a cell, as the converter writes it.
const BAR: &str = "&#124;";

/// Elements without text for a reader.
const SKIPPED: [&str; 9] = ["script", "style", "template", "svg", "iframe", "object", "canvas", "audio", "video"];

/// Reads a page.
pub fn read(bytes: &[u8], text: &mut TextCollector) -> Result<(), ExtractionError> {
    let page = TextEncoding::of(bytes, true).unwrap_or(TextEncoding::UTF_8).decode(bytes);
    let options = Options { bullet_list_marker: BulletListMarker::Dash, ul_bullet_spacing: 1, ..Options::default() };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(SKIPPED.to_vec())
        .add_handler(vec!["img"], |_: &dyn Handlers, image: Element| alternative(&image).map(Into::into))
        // Otherwise the elements in `noscript` would be text.
        .scripting_enabled(false)
        .build();
    let markdown = converter.convert(&page).map_err(ExtractionError::malformed)?;
    text.push(&with_plain_bars(&markdown))
}

/// Returns the page with the bars in its cells as Markdown escapes them. The converter writes references, which no search finds.
fn with_plain_bars(markdown: &str) -> Cow<'_, str> {
    if !markdown.contains(BAR) {
        return markdown.into();
    }
    let line = |line: &str| if line.starts_with('|') { line.replace(BAR, "\\|") } else { line.to_owned() };
    markdown.split('\n').map(line).collect::<Vec<_>>().join("\n").into()
}

/// Returns the text for a picture. Its address is dropped: it can be the picture itself, in base64.
fn alternative(image: &Element) -> Option<String> {
    let alternative = image.attrs.iter().find(|attribute| &*attribute.name.local == "alt")?;
    let text = alternative.value.trim();
    (!text.is_empty()).then(|| text.to_owned())
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
    fn a_bar_in_a_cell_ends_no_cell() {
        let page = "<table><tr><th>A</th><th>B</th></tr><tr><td>1|2</td><td>a\\b</td></tr></table>";
        assert!(text_of(page.as_bytes()).contains("| 1\\|2 |"), "{}", text_of(page.as_bytes()));
    }

    #[test]
    fn a_page_is_read_in_its_encoding() {
        assert_eq!(text_of("<p>é".as_bytes()), "é");
        assert_eq!(text_of(b"<p>caf\xe9 cr\xe8me"), "café crème");
        assert_eq!(text_of(b"<meta charset=\"shift_jis\"><p>\x93\xfa\x96\x7b"), "日本");
        assert_eq!(text_of(b"\xff\xfe<\0p\0>\0\xe9\0"), "é");
    }
}
