//! The sweeps of files and of documents: files that nothing names, contents that no file has any more, deleted documents,
//! and vectors without a copy for pgvector.
//!
//! They have a task of their own, because a store that is slow or away must not hold up the end of runs. Each sweep has
//! its own intervals, so it must not hold up the others either.

use std::{error::Error, sync::Arc, time::Duration};

use holdfast_shared::storage;
use tokio_util::sync::CancellationToken;

use crate::{WorkerState, sweeper::at_each};

/// Time for which a process has the contents alone that it removes.
const ALONE: Duration = Duration::from_secs(60);

/// Documents without copies of their vectors that one statement finds.
const UNCOPIED: usize = 20;

/// Sweeps at each interval until `stop`.
pub async fn sweep(shared: Arc<WorkerState>, stop: CancellationToken) {
    let interval = shared.worker.config.sweep;
    let sweeps = async {
        tokio::join!(
            at_each(interval, || delete_unnamed(&shared)),
            at_each(interval, || remove_contents(&shared)),
            at_each(interval, || remove_documents(&shared)),
            at_each(interval, || copy_vectors(&shared)),
        )
    };
    // Removed contents that are not forgotten are removed again.
    stop.run_until_cancelled(sweeps).await;
}

async fn delete_unnamed(shared: &WorkerState) {
    let worker = &shared.worker;
    loop {
        match worker.storage.delete_unnamed_files(worker.files.unused_file).await {
            Ok((deleted, has_more)) => {
                if deleted > 0 {
                    tracing::info!(files = deleted, "deleted files that nothing named");
                }
                if !has_more {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to delete files that nothing names");
                return;
            }
        }
    }
}

async fn remove_documents(shared: &WorkerState) {
    loop {
        match shared.documents.remove_deleted().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "failed to remove deleted documents; a later sweep tries again"
                );
                return;
            }
        }
    }
}

/// Copies vectors from before the extension pgvector was there, and those whose own run did not copy them.
async fn copy_vectors(shared: &WorkerState) {
    let copied = async {
        loop {
            let documents = shared.documents.documents_without_embeddings(UNCOPIED).await?;
            if documents.is_empty() {
                return Ok::<(), storage::Error>(());
            }
            for document_id in documents {
                shared.documents.copy_vectors(document_id).await?;
            }
        }
    };
    if let Err(error) = copied.await {
        tracing::warn!(error = &error as &dyn Error, "failed to copy vectors for pgvector; a later sweep tries again");
    }
}

async fn remove_contents(shared: &WorkerState) {
    let worker = &shared.worker;
    loop {
        let removals = match worker.storage.take_removals(ALONE).await {
            Ok(removals) if removals.is_empty() => return,
            Ok(removals) => removals,
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to look for contents to remove");
                return;
            }
        };
        for removal in removals {
            if let Err(error) = worker.file_store.remove(removal.content_id).await {
                tracing::warn!(
                    error = &error as &dyn Error,
                    content.id = %removal.content_id,
                    "failed to remove the contents of a file; a later sweep tries again"
                );
                continue;
            }
            if let Err(error) = worker.storage.forget_removal(removal).await {
                tracing::warn!(error = &error as &dyn Error, "failed to forget removed contents");
            }
        }
    }
}
