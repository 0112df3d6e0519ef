//! The sweep of memories: those that have expired, and the texts of deleted ones in traces.

use std::{error::Error, time::Instant};

use holdfast_shared::storage;

use crate::WorkerState;

/// Sweeps until nothing is left, or until this moment.
pub async fn sweep(shared: &WorkerState, until: Instant) {
    if let Err(error) = delete_expired(shared, until).await {
        tracing::warn!(error = &error as &dyn Error, "failed to delete expired memories");
    }
    if let Err(error) = clear_deleted(shared, until).await {
        tracing::warn!(error = &error as &dyn Error, "failed to remove the texts of deleted memories from traces");
    }
}

async fn delete_expired(shared: &WorkerState, until: Instant) -> Result<(), storage::Error> {
    loop {
        let deleted = shared.worker.storage.delete_expired_memories().await?;
        if deleted > 0 {
            tracing::info!(memories = deleted, "deleted expired memories");
        }
        if deleted == 0 || Instant::now() >= until {
            return Ok(());
        }
    }
}

async fn clear_deleted(shared: &WorkerState, until: Instant) -> Result<(), storage::Error> {
    loop {
        let calls = shared.worker.storage.clear_deleted_memories().await?;
        if calls > 0 {
            tracing::info!(calls, "removed the texts of deleted memories from traces");
        }
        if calls == 0 || Instant::now() >= until {
            return Ok(());
        }
    }
}
