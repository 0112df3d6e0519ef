//! The text of a document that its model does not take, such as one of Word.
//!
//! All documents of an attempt together take at most the time of one extraction, with the wait for a permit. So files that are
//! made to be slow hold up a run no longer than one of them does.

use std::sync::Arc;

use holdfast_shared::file::StoredFile;
use tokio::time::Instant;

use super::{Stop, attempt::Attempt};

/// Returns the text of a document up to the limit, or the reason why there is none.
pub async fn text_of(attempt: &mut Attempt<'_>, file: &StoredFile) -> Result<Result<Arc<str>, String>, Stop> {
    let reader = &attempt.shared.document_reader;
    let left = reader.limit.saturating_sub(attempt.memory.files.extracting);
    let started = Instant::now();
    let text = attempt.alongside(reader.text_of(&attempt.claim.owner_id, file, left)).await?;
    attempt.memory.files.extracting += started.elapsed();
    Ok(text)
}
