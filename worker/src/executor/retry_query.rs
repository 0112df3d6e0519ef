//! Queries of a run, which are repeated while the database is away.

use std::{error::Error, future::Future, time::Duration};

use holdfast_shared::{run::RunError, storage};

use super::Stop;
use crate::{lease::Lease, recorder::Recorder};

/// Pause after a query that failed.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Most failures of a query while the database can be reached.
const REFUSALS: usize = 20;

/// Repeats a query until it succeeds, while events are written. Fails the run after `REFUSALS` failures of a database
/// that can be reached, because a run that no worker can continue must not be held for ever.
pub async fn retry_query<T, F: Future<Output = Result<T, storage::Error>>>(
    lease: &mut Lease,
    recorder: &mut Recorder,
    mut ask: impl FnMut() -> F,
) -> Result<T, Stop> {
    let mut refusals = 0;
    loop {
        let answer = tokio::select! {
            answer = recorder.alongside(ask()) => answer?,
            signal = lease.stop_signal() => return Err(signal.into()),
        };
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tracing::warn!(error = &error as &dyn Error, "failed to read the run's state; trying again");
        refusals += usize::from(!error.is_away());
        if refusals >= REFUSALS {
            let message = "the run's state cannot be read; the worker's log says why";
            return Err(Stop::Failed(RunError::new("state_unreadable", message)));
        }
        tokio::select! {
            pause = recorder.alongside(tokio::time::sleep(RETRY_PAUSE)) => pause?,
            signal = lease.stop_signal() => return Err(signal.into()),
        }
    }
}
