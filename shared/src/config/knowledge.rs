//! Knowledge: what a document and its ingestion may cost, and how much of it a model gets.

use std::{num::NonZero, thread::available_parallelism, time::Duration};

use super::{bytes, count, milliseconds};

/// Settings of collections, documents and passages, which API and workers share.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Knowledge")]
pub struct KnowledgeConfig {
    /// Collections of one owner; a further one gets 403.
    #[arg(long, env = "HOLDFAST_OWNER_COLLECTIONS", default_value = "100", value_parser = count)]
    pub owner_collections: usize,

    /// Bytes of text that one document may have; the ingestion of a longer one fails.
    #[arg(long, env = "HOLDFAST_MAX_DOCUMENT_BYTES", default_value = "16777216", value_parser = bytes)]
    pub max_document_bytes: usize,

    /// Pages that one document may have; the ingestion of a longer one fails.
    #[arg(long, env = "HOLDFAST_MAX_DOCUMENT_PAGES", default_value = "5000", value_parser = count)]
    pub max_document_pages: usize,

    /// Time for the first try of a small document's text, in ms; a large document has up to 2.5 times as much. After it, the
    /// document gets a long try, which waits behind all first tries.
    #[arg(long = "extraction-try-ms", env = "HOLDFAST_EXTRACTION_TRY_MS", default_value = "2000", value_parser = milliseconds)]
    pub extraction_try: Duration,

    /// Time for the long try of one document's text, in ms.
    #[arg(long = "extraction-ms", env = "HOLDFAST_EXTRACTION_MS", default_value = "120000", value_parser = milliseconds)]
    pub extraction: Duration,

    /// Bytes of memory for the extraction of one document's text.
    #[arg(long, env = "HOLDFAST_EXTRACTION_BYTES", default_value = "1073741824", value_parser = bytes)]
    pub extraction_bytes: usize,

    /// Extractions of one worker at once, and one more for messages; further ones wait. By default as many as the machine has
    /// cores, and at least two.
    #[arg(long, env = "HOLDFAST_EXTRACTIONS", value_parser = count)]
    pub extractions: Option<usize>,

    /// Documents that one worker ingests at once, without those that wait for an extraction, and at most half of its slots, but
    /// at least one; further ones wait in the queue.
    #[arg(long, env = "HOLDFAST_INGESTIONS", default_value = "8", value_parser = count)]
    pub ingestions: usize,

    /// Characters of a passage, at most.
    #[arg(long, env = "HOLDFAST_PASSAGE_CHARS", default_value = "1200", value_parser = count)]
    pub passage_chars: usize,

    /// Tokens of the passages that a model gets with a question, roughly.
    #[arg(long, env = "HOLDFAST_KNOWLEDGE_TOKENS", default_value = "2000", value_parser = count)]
    pub knowledge_tokens: usize,
}

/// Extractions by default, where the machine has fewer cores: one for first tries, and one for long ones.
const LEAST_EXTRACTIONS: usize = 2;

impl KnowledgeConfig {
    /// Returns the number of extractions of one worker at once.
    pub fn extractions(&self) -> usize {
        let cores = || available_parallelism().map_or(1, NonZero::get);
        self.extractions.unwrap_or_else(|| cores().max(LEAST_EXTRACTIONS))
    }
}
