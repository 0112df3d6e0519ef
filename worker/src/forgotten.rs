//! Anonymous users who do not come back: the sweep removes all that they have, a few owners at a time, in short steps.

use std::{error::Error, time::Duration};

use holdfast_shared::storage::{self, Erasure};

use crate::{WorkerState, sweeper::show};

/// Owners that one sweep forgets at most, and steps that it takes for each.
const OWNERS: usize = 10;
const STEPS: usize = 10;

pub async fn forget(shared: &WorkerState) {
    let Some(absence) = shared.worker.forgotten_after else { return };
    let absent = match shared.worker.storage.absent_anonymous(absence, OWNERS).await {
        Ok(absent) => absent,
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to look for anonymous users who do not come back");
            return;
        }
    };
    for owner in absent {
        match forget_owner(shared, &owner, absence).await {
            Ok(true) => tracing::info!("forgot an anonymous user who did not come back"),
            Ok(false) => {}
            Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to forget an anonymous user"),
        }
    }
}

/// Removes what the owner has, or as much as one sweep may; returns whether nothing is left.
async fn forget_owner(shared: &WorkerState, owner: &str, absence: Duration) -> Result<bool, storage::Error> {
    for _ in 0..STEPS {
        let erased = shared.worker.storage.erase_some(owner, Erasure::Forgotten(absence)).await?;
        for run in &erased.ended {
            show(shared, run.run_id, &run.events).await;
        }
        if let Err(error) = shared.worker.run_log.remove(&erased.runs).await {
            tracing::debug!(error = &error as &dyn Error, "the logs of erased runs expire by themselves");
        }
        if erased.is_done {
            return Ok(true);
        }
    }
    Ok(false)
}
