//! The reasons why a document has no text here, each with a code and a sentence for the user.

use std::{fmt::Display, time::Duration};

use serde::{Deserialize, Serialize};

/// Longest reason that a parser may give, in characters.
const REASON: usize = 200;

/// The reason why no text was extracted. The sentence says what the user can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractionError {
    #[error(
        "no text can be read from {0}; upload the document as PDF, DOCX, PPTX, XLSX, HTML, Markdown, CSV or plain text"
    )]
    UnsupportedFormat(String),
    #[error("the document is damaged ({0}); open it in its own program, save it again and upload that file")]
    MalformedDocument(String),
    #[error("the document is protected by a password; upload a copy without a password")]
    EncryptedDocument,
    #[error("the document has more than {0}; upload it in parts")]
    DocumentTooLarge(String),
    #[error("the document was not read within {0} s; upload it in parts, or in a simpler format")]
    ExtractionTimedOut(u64),
    #[error("reading the document takes more than {0} MiB of memory; upload it in parts, or in a simpler format")]
    ExtractionOutOfMemory(u64),
    #[error("the document was not read, because its reader ended without an answer ({0}); try again later")]
    ExtractionFailed(String),
    #[error("the document was not read, because its reader did not start ({0}); try again later")]
    ReaderNotStarted(String),
    #[error("the document has no text, as a scan has none; upload a version with text, such as the output of OCR")]
    NoText,
}

impl ExtractionError {
    /// Returns the stable code of the reason.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnsupportedFormat(_) => "unsupported_format",
            Self::MalformedDocument(_) => "malformed_document",
            Self::EncryptedDocument => "encrypted_document",
            Self::DocumentTooLarge(_) => "document_too_large",
            Self::ExtractionTimedOut(_) => "extraction_timed_out",
            Self::ExtractionOutOfMemory(_) => "extraction_out_of_memory",
            Self::ExtractionFailed(_) | Self::ReaderNotStarted(_) => "extraction_failed",
            Self::NoText => "no_text",
        }
    }

    /// Returns the error of a document that was not read within this time, in whole seconds and at least one.
    pub const fn timed_out(time: Duration) -> Self {
        let seconds = time.as_millis().div_ceil(1000) as u64;
        Self::ExtractionTimedOut(if seconds == 0 { 1 } else { seconds })
    }

    /// Returns whether the same document may have a text later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::ReaderNotStarted(_))
    }

    /// Returns the error of a damaged document. A parser's own words can contain pieces of the file, so they are cut.
    pub(crate) fn malformed(reason: impl Display) -> Self {
        let reason = reason.to_string();
        let plain = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self::MalformedDocument(plain.take(REASON).collect())
    }
}

/// The reason why an extraction returned no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractFailure<E: Display> {
    /// The stream of the contents failed, so nothing is known about the document.
    #[error("failed to read the contents of the document: {0}")]
    Contents(E),
    #[error(transparent)]
    Document(#[from] ExtractionError),
}
