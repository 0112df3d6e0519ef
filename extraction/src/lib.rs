//! The text of documents: extracted by a child process with limits, and cut into passages.
//!
//! A parser of a foreign file is attack surface. So `extractor` starts a child for each document, `child` limits
//! itself before it reads a byte, and `readers` parse only there. A file that breaks a parser costs its own extraction
//! and nothing else. `passages` cuts the text in the caller's process. This crate knows neither storage nor database.

mod child;
mod collector;
mod document;
mod error;
mod extractor;
mod format;
mod frame;
mod limits;
mod passages;
mod readers;

pub use child::{ROLE, extract_in_child};
pub use document::{DocumentText, PageStart};
pub use error::{ExtractFailure, ExtractionError};
pub use extractor::Extractor;
pub use format::is_supported;
pub use limits::ExtractionLimits;
pub use passages::{PassageSpan, passages};
