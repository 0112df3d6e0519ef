//! The sweeper's ends: runs without a holder that no worker may claim.

use uuid::Uuid;

use super::{ClaimTerms, EndedRun, attempt::LockedRun};
use crate::{
    ending::Ending,
    run::{RunError, RunStatus},
    storage::{
        Error, Storage,
        sql::{args, statements},
    },
};

statements! {
    /// Returns runs without a holder that can only end.
    ONLY_END = "
        select id
        from agent_runs
        where status = 'running'
          and lease_until < {now}
          and (cancel_requested_at is not null or crashes >= $1)
        union all
        select id
        from agent_runs
        where status = 'queued'
          and crashes > 0
          and crashes >= $1
        limit 100
    ",
}

impl Storage {
    /// Ends the runs without a holder that can only end. Those are cancelled ones, and those that took down
    /// `max_crashes` workers. A queued run is among them if its holder woke up after its death was settled, and released
    /// the run.
    pub async fn end_expired(&self, terms: &ClaimTerms) -> Result<Vec<EndedRun>, Error> {
        self.settle_deaths(terms).await?;
        let candidates =
            self.database.fetch_all::<(Uuid,)>("look for runs that can only end", ONLY_END, args![terms.max_crashes]);
        let candidates = candidates.await?;
        let mut ended = Vec::new();
        for (run_id,) in candidates {
            // A failure for one run must not stop the end of the others.
            match self.end_when(run_id, |run| only_end(run, terms.max_crashes)).await {
                Ok(end) => ended.extend(end),
                Err(error) => {
                    tracing::error!(run.id = %run_id, error = &error as &dyn std::error::Error, "failed to end a run")
                }
            }
        }
        Ok(ended)
    }
}

/// Returns the only end that is left for the run, if no worker holds it and none may claim it.
fn only_end(run: &LockedRun, max_crashes: usize) -> Option<Ending> {
    let is_orphaned = run.status == RunStatus::Running && run.expired;
    let is_free = is_orphaned || run.status == RunStatus::Queued;
    if is_orphaned && run.cancel_requested {
        Some(Ending::Cancelled)
    } else if is_free && run.crashes as usize >= max_crashes {
        Some(Ending::Failed(RunError::max_attempts(run.crashes as u32)))
    } else {
        None
    }
}
