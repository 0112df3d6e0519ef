//! Delayed runs: queued with the priority -2, where no claim looks. A sweep ends the delay of those whose time has come.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::{
    attempt::{lock_run, status},
    round::next_round,
};
use crate::storage::{
    Error, Storage,
    sql::{Commit, Tx, args, statements},
};

/// A column of a new run: `$delayed` if there is a `$delay`, else `$other`.
macro_rules! if_delayed {
    ($delay:literal, $delayed:literal, $other:expr) => {
        concat!("case when ", $delay, " is not null then ", $delayed, " else ", $other, " end")
    };
}
pub(in crate::storage) use if_delayed;

/// Runs that a sweep reads at a time.
const BATCH: usize = 100;

statements! {
    /// Returns delayed runs whose time has come.
    DUE = "
        select id
        from agent_runs
        where status = 'queued' and priority = -2 and not_before <= {now}
        order by not_before
        limit $1
    ",
    /// Ends the delay of a run. Behind an unfinished run of its conversation it stays blocked.
    END_DELAY = concat!("
        update agent_runs
        set priority = case
                when exists (
                    select 1
                    from agent_runs earlier
                    where earlier.conversation_id = agent_runs.conversation_id
                      and earlier.position < agent_runs.position
                      and earlier.status in ('queued', 'running', 'waiting')
                )
                then -1
                else 0
            end,
            queue_round = ", next_round!("agent_runs.owner_id", "agent_runs.caller_group"), "
        where id = $1 and ", status!(""), " = 'queued' and priority = -2 and not_before <= {now}
        returning priority = 0
    "),
}

impl Storage {
    /// Ends the delay of runs whose time has come, in no more than about this time. Returns how many of them a worker may
    /// claim now.
    pub async fn end_delays(&self, budget: Duration) -> Result<usize, Error> {
        let until = Instant::now() + budget;
        let mut claimable = 0;
        loop {
            let due = self.database.fetch_all::<(Uuid,)>("find runs whose time has come", DUE, args![BATCH]).await?;
            let mut ended = 0;
            for (run_id,) in &due {
                // A failure for one run must not keep the others waiting.
                match self.end_delay(*run_id).await {
                    Ok(is_claimable) => {
                        ended += 1;
                        claimable += usize::from(is_claimable);
                    }
                    Err(error) => {
                        tracing::error!(run.id = %run_id, error = &error as &dyn std::error::Error, "failed to end the delay of a run")
                    }
                }
            }
            if due.len() < BATCH || ended == 0 || Instant::now() >= until {
                return Ok(claimable);
            }
        }
    }

    /// Ends the delay of a run, and returns whether a worker may claim it now. It locks the conversation, as the end of the
    /// run before it does, so one of the two sees the other (`tests/model/src/queue.rs`).
    async fn end_delay(&self, run_id: Uuid) -> Result<bool, Error> {
        let end = async |tx: &mut Tx| {
            lock_run(tx, run_id).await?;
            let ended = tx.fetch_optional::<(bool,)>(END_DELAY, args![run_id]).await?;
            Ok(Commit(ended.is_some_and(|(is_claimable,)| is_claimable)))
        };
        self.database.transact("end the delay of a run", end).await
    }
}
