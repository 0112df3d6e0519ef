//! DOCX, PPTX and XLSX as Markdown, by undoc. It refuses an archive's entry that expands a hundredfold.

use std::{borrow::Cow, collections::HashMap, io, ops::ControlFlow};

use undoc::{
    Block, ErrorKind, FormatType, ParseEvent, Section, SectionStreamOptions, Table,
    docx::DocxParser,
    pptx::PptxParser,
    render::{RenderOptions, render_section_to_string},
    xlsx::XlsxParser,
};

use super::unread;
use crate::{collector::TextCollector, error::ExtractionError, limits::ExtractionLimits};

/// Reads a document. The archive says itself which of the formats it has.
pub fn read(bytes: Vec<u8>, limits: &ExtractionLimits, text: &mut TextCollector) -> Result<(), ExtractionError> {
    let explain = |error: undoc::Error| match error {
        undoc::Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => unread(&error, limits),
        error if error.kind() == ErrorKind::Encrypted => ExtractionError::EncryptedDocument,
        error => ExtractionError::malformed(error),
    };
    let format = undoc::detect_format_from_bytes(&bytes).map_err(explain)?;
    let options = SectionStreamOptions { lenient: false, extract_resources: false };
    let mut sections = Sections::new(format, limits.pages, text);
    match format {
        FormatType::Docx => {
            let mut parser = DocxParser::from_bytes(bytes).map_err(explain)?;
            parser.for_each_section(options, |event| sections.take(event)).map_err(explain)?;
        }
        FormatType::Pptx => {
            let mut parser = PptxParser::from_bytes(bytes).map_err(explain)?;
            parser.for_each_section(options, |event| sections.take(event)).map_err(explain)?;
        }
        FormatType::Xlsx => {
            let mut parser = XlsxParser::from_bytes(bytes).map_err(explain)?;
            parser.for_each_section(options, |event| sections.take(event)).map_err(explain)?;
        }
        FormatType::Doc | FormatType::Xls | FormatType::Ppt => {
            return Err(ExtractionError::UnsupportedFormat(format!("a file of the format {format}")));
        }
    }
    sections.refusal.map_or(Ok(()), Err)
}

/// Takes the sections of a document: the only one of a DOCX, slides, or sheets.
struct Sections<'a> {
    format: FormatType,
    most_pages: u32,
    text: &'a mut TextCollector,
    options: RenderOptions,
    refusal: Option<ExtractionError>,
}

impl<'a> Sections<'a> {
    fn new(format: FormatType, most_pages: u32, text: &'a mut TextCollector) -> Self {
        // Escapes would be in the way of a search.
        let options = RenderOptions {
            escape_special_chars: false,
            ..RenderOptions::new().with_images(false).with_max_heading(6)
        };
        Self { format, most_pages, text, options, refusal: None }
    }

    fn take(&mut self, event: ParseEvent<'_>) -> ControlFlow<()> {
        let taken = match event {
            ParseEvent::DocumentStart { section_count, .. }
                if section_count > self.most_pages as usize && self.has_pages() =>
            {
                Err(self.text.too_many_pages())
            }
            ParseEvent::SectionParsed(section) => self.append(section),
            _ => Ok(()),
        };
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(refusal) => {
                self.refusal = Some(refusal);
                ControlFlow::Break(())
            }
        }
    }

    fn append(&mut self, section: &Section) -> Result<(), ExtractionError> {
        if self.has_pages() {
            let page = u32::try_from(section.index + 1).map_err(|_| self.text.too_many_pages())?;
            self.text.begin_page(page)?;
        }
        // A section after the first would begin with a rule.
        let section = with_plain_bars(section);
        let markdown = render_section_to_string(&section, 0, self.format, &self.options, &HashMap::new());
        self.text.push(markdown.trim())
    }

    fn has_pages(&self) -> bool {
        self.format != FormatType::Docx
    }
}

/// Returns a section with escaped bars in the cells of its tables, which would end the cells.
fn with_plain_bars(section: &Section) -> Cow<'_, Section> {
    let tables = section.content.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    if !tables.into_iter().any(has_bar) {
        return Cow::Borrowed(section);
    }
    let mut section = section.clone();
    for block in &mut section.content {
        if let Block::Table(table) = block {
            escape_bars(table);
        }
    }
    Cow::Owned(section)
}

fn has_bar(table: &Table) -> bool {
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| {
        let mut runs = cell.content.iter().flat_map(|paragraph| &paragraph.runs);
        runs.any(|run| run.text.contains('|')) || cell.nested_tables.iter().any(has_bar)
    })
}

fn escape_bars(table: &mut Table) {
    for cell in table.rows.iter_mut().flat_map(|row| &mut row.cells) {
        for run in cell.content.iter_mut().flat_map(|paragraph| &mut paragraph.runs) {
            run.text = run.text.replace('|', "\\|");
        }
        cell.nested_tables.iter_mut().for_each(escape_bars);
    }
}
