//! PDF as Markdown, page by page, by unpdf.

use std::ops::ControlFlow;

use memchr::memmem;
use unpdf::{
    Block, ErrorKind, ErrorMode, InlineContent, PageSelection, PageStreamOptions, ParseEvent, ParseOptions, PdfParser,
    RenderOptions,
};

use crate::{collector::TextCollector, error::ExtractionError, limits::ExtractionLimits};

/// Bytes in which the header of a document begins, as readers look for it.
const HEADER_WITHIN: usize = 1024;

/// The last line of a document.
const END_MARK: &[u8] = b"%%EOF";

/// Reads a document.
pub fn read(bytes: &[u8], limits: &ExtractionLimits, text: &mut TextCollector) -> Result<(), ExtractionError> {
    let document = document_in(bytes);
    let parser = PdfParser::from_bytes_with_options(document, ParseOptions::new().sequential()).map_err(explain)?;
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

/// Returns the document in a file, without what gateways and servers have put before and behind it. The parser finds the objects
/// by themselves, if the document counts its places from elsewhere.
fn document_in(bytes: &[u8]) -> &[u8] {
    let start = memmem::find(&bytes[..bytes.len().min(HEADER_WITHIN)], b"%PDF-").unwrap_or(0);
    let document = &bytes[start..];
    let Some(end) = memmem::rfind(document, END_MARK).map(|at| at + END_MARK.len()) else { return document };
    // A document that was cut off may have an end mark after its first page.
    let is_end = memmem::find(&document[end..], b"endobj").is_none();
    if is_end { &document[..end] } else { document }
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

    fn append(&mut self, mut page: unpdf::Page) -> Result<(), ExtractionError> {
        self.text.begin_page(page.number)?;
        page.elements.iter_mut().for_each(escape_bars);
        let mut document = unpdf::Document::new();
        document.add_page(page);
        let markdown = unpdf::render::to_markdown(&document, &self.options).map_err(explain)?;
        self.text.push(markdown.trim())
    }
}

/// Escapes the bars in the cells of a table, which would end the cells.
fn escape_bars(block: &mut Block) {
    let Block::Table(table) = block else { return };
    let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
    for inline in cells.flat_map(|cell| &mut cell.content).flat_map(|paragraph| &mut paragraph.content) {
        if let InlineContent::Text(run) = inline
            && run.text.contains('|')
        {
            run.text = run.text.replace('|', "\\|");
        }
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
