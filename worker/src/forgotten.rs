//! Forgets anonymous users: each sweep removes everything that a few absent owners have, piece by piece.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use holdfast_shared::storage::{self, Erasure};

use crate::{WorkerState, sweeper::show};

/// Most owners that one sweep forgets.
const OWNERS: usize = 10;

/// Forgets owners until this moment. Each of them loses a piece at least.
pub async fn forget(shared: &WorkerState, until: Instant) {
    let Some(absence) = shared.worker.forgotten_after else { return };
    let absent = match shared.worker.storage.absent_anonymous(absence, OWNERS).await {
        Ok(absent) => absent,
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to list absent anonymous users");
            return;
        }
    };
    for owner in absent {
        match forget_owner(shared, &owner, absence, until).await {
            Ok(true) => tracing::info!("removed an absent anonymous user"),
            Ok(false) => {}
            Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to remove an absent anonymous user"),
        }
    }
}

/// Removes the owner's data, or as much as one sweep may. Returns whether nothing is left.
async fn forget_owner(
    shared: &WorkerState,
    owner: &str,
    absence: Duration,
    until: Instant,
) -> Result<bool, storage::Error> {
    loop {
        let erased = shared.worker.storage.erase_some(owner, Erasure::Forgotten(absence)).await?;
        for run in &erased.ended {
            show(shared, run.run_id, &run.closed.events).await;
        }
        if let Err(error) = shared.worker.run_log.remove(&erased.runs).await {
            tracing::debug!(
                error = &error as &dyn Error,
                "failed to remove the logs of erased runs; they expire by themselves"
            );
        }
        if erased.is_done {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}
