//! PDF as Markdown, page by page, by unpdf.

use std::ops::ControlFlow;

use unpdf::{
    ErrorKind, ErrorMode, PageSelection, PageStreamOptions, ParseEvent, ParseOptions, PdfParser, RenderOptions,
};

use crate::{collector::TextCollector, error::ExtractionError, limits::ExtractionLimits};

/// Reads a document.
pub fn read(bytes: &[u8], limits: &ExtractionLimits, text: &mut TextCollector) -> Result<(), ExtractionError> {
    let parser = PdfParser::from_bytes_with_options(bytes, ParseOptions::new().sequential()).map_err(explain)?;
    let pages = parser.page_count();
    if pages == 0 {
        return Err(ExtractionError::malformed("it has no pages"));
    }
    if pages > limits.pages {
        return Err(text.too_many_pages());
    }
    let mut read = PagesRead { text, options: render_options(), parsed: 0, failure: None, refusal: None };
    parser.for_each_page(stream_options(), |event| read.take(event)).map_err(explain)?;
    match read {
        PagesRead { refusal: Some(refusal), .. } => Err(refusal),
        // Pages that are damaged cost only themselves, unless all are.
        PagesRead { parsed: 0, failure: Some(failure), .. } => Err(explain(failure)),
        _ => Ok(()),
    }
}

/// The pages of a document while they are read.
struct PagesRead<'a> {
    text: &'a mut TextCollector,
    options: RenderOptions,
    parsed: usize,
    /// The error of the last damaged page.
    failure: Option<unpdf::Error>,
    refusal: Option<ExtractionError>,
}

impl PagesRead<'_> {
    fn take(&mut self, event: ParseEvent) -> ControlFlow<()> {
        match event {
            ParseEvent::PageParsed(page) => {
                self.parsed += 1;
                if let Err(refusal) = self.append(page) {
                    self.refusal = Some(refusal);
                    return ControlFlow::Break(());
                }
            }
            ParseEvent::PageFailed { error, .. } => self.failure = Some(error),
            ParseEvent::DocumentStart { .. } | ParseEvent::Progress { .. } | ParseEvent::DocumentEnd { .. } => {}
        }
        ControlFlow::Continue(())
    }

    fn append(&mut self, page: unpdf::Page) -> Result<(), ExtractionError> {
        self.text.begin_page(page.number)?;
        let mut document = unpdf::Document::new();
        document.add_page(page);
        let markdown = unpdf::render::to_markdown(&document, &self.options).map_err(explain)?;
        self.text.push(markdown.trim())
    }
}

/// Every option by its name, because the defaults start a pool of threads.
const fn stream_options() -> PageStreamOptions {
    PageStreamOptions {
        error_mode: ErrorMode::Lenient,
        extract_text: true,
        extract_resources: false,
        min_image_dimension: 0,
        pages: PageSelection::All,
        password: None,
        parallel: false,
        suppress_low_confidence_ocr: true,
        window_size: 1,
        emit_progress_every: u32::MAX,
    }
}

/// Escapes would be in the way of a search.
fn render_options() -> RenderOptions {
    RenderOptions { escape_special_chars: false, ..RenderOptions::new().with_standard_cleanup() }
}

fn explain(error: unpdf::Error) -> ExtractionError {
    match error.kind() {
        ErrorKind::Encrypted | ErrorKind::InvalidPassword => ExtractionError::EncryptedDocument,
        _ => ExtractionError::malformed(error),
    }
}
