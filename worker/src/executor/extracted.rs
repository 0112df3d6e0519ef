//! The text of a document that its model does not take, such as one of Word: extracted by a child with limits.
//!
//! All documents of an attempt together take at most the time of one extraction, with the wait for a permit. So files that are
//! made to be slow hold up a run no longer than one of them does.

use std::{error::Error, sync::Arc};

use holdfast_extraction::{ExtractFailure, ExtractionError};
use holdfast_shared::{excerpt, file::StoredFile, storable::storable};
use tokio::time::{Instant, timeout};

use super::{Stop, attempt::Attempt, ingestion::contents_of};
use crate::document_texts::ExtractedText;

/// Returns the text of a document up to the limit, or the reason why there is none.
pub async fn text_of(attempt: &mut Attempt<'_>, file: &StoredFile) -> Result<Result<Arc<str>, String>, Stop> {
    let shared = attempt.shared;
    if let Some(known) = shared.document_texts.get(file.content_id) {
        return Ok(known.map_err(|error| error.to_string()));
    }
    let started = Instant::now();
    let text = extract(attempt, file).await?;
    attempt.memory.files.extracting += started.elapsed();
    Ok(text)
}

async fn extract(attempt: &mut Attempt<'_>, file: &StoredFile) -> Result<Result<Arc<str>, String>, Stop> {
    let shared = attempt.shared;
    let limit = shared.worker.knowledge.extraction;
    let left = limit.saturating_sub(attempt.memory.files.extracting);
    let asked = Instant::now();
    let turn = attempt.alongside(timeout(left, shared.extractions.acquire())).await?;
    let _turn = turn.map(|permit| permit.expect("the semaphore is never closed"));
    let left = left.saturating_sub(asked.elapsed());
    if left.is_zero() {
        return Ok(Err("the documents before it took all of the time; send it again later".to_owned()));
    }
    let contents = Box::pin(contents_of(shared.worker.file_store.clone(), file.clone()));
    let extractor = shared.worker.extractor.within(left);
    let text: ExtractedText = match attempt.alongside(extractor.extract(&file.media_type, contents)).await? {
        Ok(document) => Ok(excerpt::bytes(storable(document.text), shared.worker.files.model_text_bytes).into()),
        Err(ExtractFailure::Document(error)) => Err(error),
        Err(ExtractFailure::Contents(error)) => {
            tracing::warn!(error = &error as &dyn Error, file.id = %file.id, "failed to read a document");
            return Ok(Err("the store of files does not answer".to_owned()));
        }
    };
    // A reader that had little time, or that the system has ended, says nothing about the document.
    let is_of_document = match &text {
        Ok(_) => true,
        Err(ExtractionError::ExtractionTimedOut(_)) => left >= limit / 2,
        Err(ExtractionError::ExtractionFailed(_) | ExtractionError::ReaderNotStarted(_)) => false,
        Err(_) => true,
    };
    if let Err(error) = &text {
        tracing::warn!(%error, file.id = %file.id, "failed to extract the text of a file");
    }
    if is_of_document {
        shared.document_texts.keep(file.content_id, text.clone());
    }
    Ok(text.map_err(|error| error.to_string()))
}
