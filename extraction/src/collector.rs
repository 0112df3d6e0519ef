//! The text while a reader makes it: clean, within its limits, and with the starts of its pages.

use holdfast_text::readable;

use crate::{
    document::{DocumentText, PageStart, is_kept},
    error::ExtractionError,
    limits::ExtractionLimits,
};

/// Collects the text of one document.
#[derive(Debug)]
pub struct TextCollector {
    limits: ExtractionLimits,
    document: DocumentText,
    /// Unicode scalar values of the text so far.
    scalars: usize,
    /// The last character was a carriage return, whose line feed may follow.
    after_return: bool,
}

impl TextCollector {
    pub const fn new(limits: ExtractionLimits) -> Self {
        let document = DocumentText { text: String::new(), pages: Vec::new() };
        Self { limits, document, scalars: 0, after_return: false }
    }

    /// Appends text with composed letters. Carriage returns become line feeds; other control characters, and invisible
    /// ones, are dropped.
    pub fn push(&mut self, text: &str) -> Result<(), ExtractionError> {
        for character in readable(text).chars() {
            let follows_return = std::mem::take(&mut self.after_return);
            match character {
                '\n' if follows_return => {}
                '\r' => {
                    self.after_return = true;
                    self.append('\n');
                }
                '\u{b}' | '\u{c}' | '\u{85}' => self.append('\n'),
                kept if is_kept(kept) => self.append(kept),
                _ => {}
            }
            if self.document.text.len() as u64 > self.limits.text_bytes {
                return Err(self.too_long());
            }
        }
        Ok(())
    }

    /// Begins a page, after an empty line.
    pub fn begin_page(&mut self, page: u32) -> Result<(), ExtractionError> {
        if self.document.pages.len() as u64 >= u64::from(self.limits.pages) {
            return Err(self.too_many_pages());
        }
        while !self.document.text.is_empty() && !self.document.text.ends_with("\n\n") {
            self.append('\n');
        }
        self.document.pages.push(PageStart { page, start: self.scalars });
        Ok(())
    }

    /// Returns the error of a document with more pages than the limit.
    pub fn too_many_pages(&self) -> ExtractionError {
        ExtractionError::DocumentTooLarge(format!("{} pages, slides or sheets", self.limits.pages))
    }

    /// Returns the error of a document with more text than the limit.
    pub fn too_long(&self) -> ExtractionError {
        ExtractionError::DocumentTooLarge(format!("{} bytes of text", self.limits.text_bytes))
    }

    /// Returns the document.
    pub fn finish(self) -> Result<DocumentText, ExtractionError> {
        if self.document.text.chars().all(char::is_whitespace) {
            return Err(ExtractionError::NoText);
        }
        Ok(self.document)
    }

    fn append(&mut self, character: char) {
        self.document.text.push(character);
        self.scalars += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn collector(text_bytes: u64, pages: u32) -> TextCollector {
        TextCollector::new(ExtractionLimits { time: Duration::from_secs(1), memory_bytes: 0, text_bytes, pages })
    }

    fn collected(pieces: &[&str]) -> String {
        let mut collector = collector(100, 0);
        for piece in pieces {
            collector.push(piece).unwrap();
        }
        collector.finish().unwrap().text
    }

    #[test]
    fn control_characters_are_dropped_and_lines_end_with_a_line_feed() {
        assert_eq!(collected(&["\u{feff}a\0b\u{7f}\u{1b}[1m\tc\r\nd\re\u{c}f"]), "ab[1m\tc\nd\ne\nf");
        assert_eq!(collected(&["a\r", "\nb\r", "c"]), "a\nb\nc");
        assert_eq!(collected(&["Bru\u{308}cke, e\u{fb03}cient of\u{ad}fice"]), "Brücke, efficient office");
    }

    #[test]
    fn a_page_starts_after_an_empty_line_at_its_scalar() {
        let mut collector = collector(100, 2);
        collector.begin_page(1).unwrap();
        collector.push("é").unwrap();
        collector.begin_page(2).unwrap();
        collector.push("b").unwrap();
        assert_eq!(collector.begin_page(3).unwrap_err().code(), "document_too_large");
        let document = collector.finish().unwrap();
        assert_eq!(document.text, "é\n\nb");
        assert_eq!(document.pages, [PageStart { page: 1, start: 0 }, PageStart { page: 2, start: 3 }]);
    }

    #[test]
    fn a_text_at_its_limit_passes_and_one_byte_more_does_not() {
        assert!(collector(2, 0).push("ab").is_ok());
        assert_eq!(collector(2, 0).push("abc").unwrap_err().code(), "document_too_large");
        assert_eq!(collector(2, 0).push("aé").unwrap_err().code(), "document_too_large");
    }

    #[test]
    fn a_document_of_white_space_has_no_text() {
        let mut collector = collector(100, 0);
        collector.push(" \n\u{a0}\t").unwrap();
        assert_eq!(collector.finish(), Err(ExtractionError::NoText));
    }
}
