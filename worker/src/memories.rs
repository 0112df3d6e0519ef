//! The sweep of memories: those that have expired, and the texts of deleted ones in traces.

use std::error::Error;

use holdfast_shared::storage;

use crate::WorkerState;

pub async fn sweep(shared: &WorkerState) {
    if let Err(error) = delete_expired(shared).await {
        tracing::warn!(error = &error as &dyn Error, "failed to delete expired memories");
    }
    if let Err(error) = clear_deleted(shared).await {
        tracing::warn!(error = &error as &dyn Error, "failed to remove the texts of deleted memories from traces");
    }
}

async fn delete_expired(shared: &WorkerState) -> Result<(), storage::Error> {
    loop {
        let (deleted, has_more) = shared.worker.storage.delete_expired_memories().await?;
        if deleted > 0 {
            tracing::info!(memories = deleted, "deleted expired memories");
        }
        if !has_more {
            return Ok(());
        }
    }
}

async fn clear_deleted(shared: &WorkerState) -> Result<(), storage::Error> {
    loop {
        let (calls, has_more) = shared.worker.storage.clear_deleted_memories().await?;
        if calls > 0 {
            tracing::info!(calls, "removed the texts of deleted memories from traces");
        }
        if !has_more {
            return Ok(());
        }
    }
}
