//! The readers of the formats. They run only in the child, where a panic, an endless loop and a full memory do no harm.

mod html;
mod office;
mod pdf;
mod plain;

use std::io::{self, Read};

use crate::{
    collector::TextCollector, document::DocumentText, error::ExtractionError, format::DocumentFormat,
    limits::ExtractionLimits,
};

/// Reads a document and returns its text.
pub fn read(media_type: &str, contents: impl Read, limits: ExtractionLimits) -> Result<DocumentText, ExtractionError> {
    let format =
        DocumentFormat::of(media_type).ok_or_else(|| ExtractionError::UnsupportedFormat(media_type.to_owned()))?;
    let mut text = TextCollector::new(limits);
    match format {
        DocumentFormat::Pdf => pdf::read(&whole(contents, &limits)?, &limits, &mut text)?,
        DocumentFormat::Office => office::read(whole(contents, &limits)?, &limits, &mut text)?,
        DocumentFormat::Html => html::read(&whole(contents, &limits)?, &mut text)?,
        DocumentFormat::Markdown | DocumentFormat::Plain | DocumentFormat::Lines => {
            plain::read(contents, &limits, &mut text)?;
        }
    }
    text.finish()
}

fn whole(mut contents: impl Read, limits: &ExtractionLimits) -> Result<Vec<u8>, ExtractionError> {
    let mut bytes = Vec::new();
    contents.read_to_end(&mut bytes).map_err(|error| unread(&error, limits))?;
    Ok(bytes)
}

/// Returns the error of contents that did not arrive. A reader that fails to get memory for them may say so itself.
fn unread(error: &io::Error, limits: &ExtractionLimits) -> ExtractionError {
    match error.kind() {
        io::ErrorKind::OutOfMemory => ExtractionError::ExtractionOutOfMemory(limits.memory_mib()),
        _ => ExtractionError::ExtractionFailed(format!("its input broke: {error}")),
    }
}
