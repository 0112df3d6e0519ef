//! Forgets anonymous users: each sweep removes everything that a few absent owners have, piece by piece.
//!
//! A sweep also measures the data of all anonymous users together. Near the cap, some users leave early: those absent for a week,
//! the longest absence first.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use holdfast_shared::storage::{self, Erasure};

use crate::{WorkerState, sweeper::show};

/// Most owners that one sweep forgets.
const OWNERS: usize = 10;

/// Time for which no process measures again.
const MEASURED: Duration = Duration::from_secs(60);

/// Absence from which a user may leave early: a week, and the 12 hours by which the note of a visit may be late.
const EARLY: Duration = Duration::from_secs((7 * 24 + 12) * 60 * 60);

/// Forgets owners until this moment. Each of them loses a piece at least.
pub async fn forget(shared: &WorkerState, until: Instant) {
    let is_near_cap = is_near_cap(shared).await;
    if let Some(absence) = least_absence(shared.worker.forgotten_after, is_near_cap) {
        forget_absent(shared, absence, until).await;
    }
}

/// Returns the absence from which users leave; `None` if all stay.
fn least_absence(forgotten_after: Option<Duration>, is_near_cap: bool) -> Option<Duration> {
    let absence = forgotten_after?;
    Some(if is_near_cap { absence.min(EARLY) } else { absence })
}

/// Measures the data of all anonymous users, if it is due, and returns whether the last measurement is more than nine tenths of
/// the cap.
async fn is_near_cap(shared: &WorkerState) -> bool {
    let Some(most) = shared.worker.all_anonymous_bytes else { return false };
    match shared.worker.storage.measure_anonymous_data(MEASURED).await {
        Ok((bytes, is_new)) => {
            let is_near = is_near(bytes, most);
            if is_near && is_new {
                tracing::warn!(bytes, most, "the data of anonymous users is near its cap");
            }
            is_near
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to measure the data of anonymous users");
            false
        }
    }
}

const fn is_near(bytes: u64, most: u64) -> bool {
    bytes > most / 10 * 9
}

async fn forget_absent(shared: &WorkerState, absence: Duration, until: Instant) {
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

/// Removes the owner's data, or as much as one sweep may. Returns whether nothing is left. A user who returns meanwhile stays.
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
            return Ok(!erased.has_returned);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_cap_users_leave_after_a_week_unless_all_stay() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let check = |retention: Option<Duration>, is_near_cap: bool, expected: Option<Duration>| {
            assert_eq!(least_absence(retention, is_near_cap), expected, "{retention:?}, near {is_near_cap}");
        };
        check(Some(90 * DAY), false, Some(90 * DAY));
        check(Some(90 * DAY), true, Some(EARLY));
        check(Some(3 * DAY), true, Some(3 * DAY));
        check(None, true, None);
        assert!(EARLY >= 7 * DAY);
        assert_eq!([89, 90, 91].map(|bytes| is_near(bytes, 100)), [false, false, true]);
    }
}
