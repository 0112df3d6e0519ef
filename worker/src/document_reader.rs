//! The texts of documents for models: extracted by a child with limits, once per contents, in the turns of all extractions.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_extraction::{ExtractFailure, ExtractionError, Extractor};
use holdfast_shared::{
    config::counted_owner,
    excerpt,
    file::{StoredFile, parts_of},
    file_store::{self, FileStore},
    storable::storable,
    turns::Turns,
};
use tokio::time::Instant;

use crate::document_texts::{DocumentTexts, ExtractedText};

/// Extracts the texts of documents.
pub struct DocumentReader {
    pub file_store: FileStore,
    pub extractor: Extractor,
    /// The extractions of this process at a time. Owners count as in `counted_owner`.
    pub extractions: Turns,
    pub texts: DocumentTexts,
    /// Bytes of a text; the rest is cut.
    pub text_bytes: usize,
    /// Time of one extraction.
    pub limit: Duration,
}

impl DocumentReader {
    /// Returns the text of an owner's document up to the limit, or the reason why there is none. It takes at most `left`, with
    /// the wait for a turn.
    pub async fn text_of(&self, owner: &str, file: &StoredFile, left: Duration) -> Result<Arc<str>, String> {
        if let Some(known) = self.texts.get(file.content_id) {
            return known.map_err(|error| error.to_string());
        }
        let asked = Instant::now();
        let _turn = self.extractions.take(counted_owner(owner), left).await;
        let left = left.saturating_sub(asked.elapsed());
        if left.is_zero() {
            return Err("the documents before it took all of the time; send it again later".to_owned());
        }
        let contents = Box::pin(contents_of(self.file_store.clone(), file.clone()));
        let text: ExtractedText = match self.extractor.within(left).extract(&file.media_type, contents).await {
            Ok(document) => Ok(excerpt::bytes(storable(document.text), self.text_bytes).into()),
            Err(ExtractFailure::Document(error)) => Err(error),
            Err(ExtractFailure::Contents(error)) => {
                tracing::warn!(error = &error as &dyn Error, file.id = %file.id, "failed to read a document");
                return Err("the store of files does not answer".to_owned());
            }
        };
        // A reader that had little time, or that the system has ended, says nothing about the document.
        let is_of_document = match &text {
            Ok(_) => true,
            Err(ExtractionError::ExtractionTimedOut(_)) => left >= self.limit / 2,
            Err(ExtractionError::ExtractionFailed(_) | ExtractionError::ReaderNotStarted(_)) => false,
            Err(_) => true,
        };
        if let Err(error) = &text {
            tracing::warn!(%error, file.id = %file.id, "failed to extract the text of a file");
        }
        if is_of_document {
            self.texts.keep(file.content_id, text.clone());
        }
        text.map_err(|error| error.to_string())
    }
}

/// Returns the contents of a file, part by part.
pub fn contents_of(store: FileStore, file: StoredFile) -> impl Stream<Item = Result<Bytes, file_store::Error>> {
    let parts = parts_of(file.bytes);
    stream::unfold((store, file, 0), move |(store, file, number)| async move {
        if number == parts {
            return None;
        }
        let part = store.get(file.content_id, number, file.bytes).await;
        Some((part, (store, file, number + 1)))
    })
}
