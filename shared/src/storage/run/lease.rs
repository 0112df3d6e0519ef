//! RENEW: how a worker keeps its runs, and how it gives back those that it does not know.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::FromRow;
use uuid::Uuid;

use super::Holder;
use crate::storage::{
    Error, Storage,
    sql::{args, statements},
};

/// A claim with a renewed lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewedLease {
    /// The held run.
    pub run_id: Uuid,
    /// The held attempt.
    pub attempt: u32,
    /// True if the worker must cancel the run.
    pub cancel_requested: bool,
}

statements! {
    /// Extends the leases of a holder, but for locked rows. This holder itself writes a locked row, which extends the lease,
    /// or another process takes the run. Neither may delay all other leases.
    RENEW = "
        with held as materialized (
            select id as held_id
            from agent_runs
            where holder = $1 and status = 'running'
            {skip locked}
        )
        update agent_runs
        set lease_until = {after:$2}
        from held
        where id {is:held_id}
        returning id
    ",
    /// Returns the runs of a holder.
    HELD_RUNS = "
        select id, attempt, cancel_requested_at is not null as cancel_requested
        from agent_runs
        where holder = $1 and status = 'running'
    ",
    /// Ends the leases of some attempts of a holder.
    LOSE = "
        update agent_runs
        set lease_until = {before:$3},
            holder = null,
            executing = false,
            crashes = crashes + $4
        where (id, attempt) in (
            select {uuid:value->>'id'}, cast(value->>'attempt' as bigint)
            from {each:$2}
        )
          and holder = $1
          and status = 'running'
        returning id
    ",
    /// Ends all leases.
    VOID = "
        update agent_runs
        set lease_until = {before:$1}
        where status = 'running'
        returning id
    ",
}

impl Storage {
    /// Extends the lease of each run that `holder` executes. A run that is missing from the result has another holder
    /// or none.
    pub async fn renew(&self, holder: &Holder, lease: Duration) -> Result<Vec<RenewedLease>, Error> {
        #[derive(FromRow)]
        struct Row {
            id: Uuid,
            attempt: i64,
            cancel_requested: bool,
        }
        const DOING: &str = "renew leases";
        self.database.write::<(Uuid,)>(DOING, RENEW, args![holder.as_str(), lease]).await?;
        let rows = self.database.fetch_all::<Row>(DOING, HELD_RUNS, args![holder.as_str()]).await?;
        Ok(rows
            .into_iter()
            .map(|row| RenewedLease {
                run_id: row.id,
                attempt: row.attempt as u32,
                cancel_requested: row.cancel_requested,
            })
            .collect())
    }

    /// Gives back attempts of `holder` that it does not know, because the answer to its claim was lost. They count no crash.
    pub async fn give_back(&self, holder: &Holder, unknown: Vec<(Uuid, u32)>) -> Result<(), Error> {
        self.lose("give back runs whose claim was lost", holder, unknown, 0).await
    }

    /// Charges a run whose executor has panicked with a crash, and gives it back, unless a later attempt has it.
    pub async fn charge_panic(&self, holder: &Holder, run_id: Uuid, attempt: u32) -> Result<(), Error> {
        self.lose("give back a run whose executor panicked", holder, vec![(run_id, attempt)], 1).await
    }

    /// Ends the leases at once, so that the next poll claims the runs.
    async fn lose(
        &self,
        doing: &'static str,
        holder: &Holder,
        attempts: Vec<(Uuid, u32)>,
        crashes: i64,
    ) -> Result<(), Error> {
        let attempts = attempts.into_iter().map(|(id, attempt)| json!({"id": id.simple(), "attempt": attempt}));
        let args = args![holder.as_str(), Value::from_iter(attempts), 1_i64, crashes];
        self.database.write::<(Uuid,)>(doing, LOSE, args).await.map(drop)
    }

    /// Embedded only: ends the leases of an earlier process, which no longer runs.
    pub async fn void_leases(&self) -> Result<(), Error> {
        let doing = "void the leases of an earlier process";
        self.database.write::<(Uuid,)>(doing, VOID, args![1_i64]).await.map(drop)
    }
}
