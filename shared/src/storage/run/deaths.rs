//! The consequences of a worker's death for the runs that it executed.
//!
//! A holder is dead when the leases of all its runs have expired. A worker settles the death once, for all these runs
//! together: it charges each run, or narrows its probation. Only then can a worker claim them.
//! docs/decisions/0012-deaths-and-probation.md describes the protocol.

use sqlx::FromRow;
use uuid::Uuid;

use super::ClaimTerms;
use crate::storage::{
    Error, Storage,
    sql::{self, Commit, RollBack, Tx, args, statements},
};
/// A run of a dead holder.
#[derive(FromRow)]
struct Orphan {
    id: Uuid,
    suspect: bool,
    executing: bool,
    expired: bool,
}

/// The consequence of a death for the suspects among the executing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    /// The run was alone, so it is to blame.
    Charged,
    /// The guilty run is unknown, so each suspect may run beside fewer others. At 0, a suspect needs a worker alone.
    Narrowed(usize),
}

impl Blame {
    fn of(executing: usize, suspects: usize) -> Self {
        match (executing, suspects) {
            (1, _) => Self::Charged,
            // Another run, which is no suspect yet, may be to blame.
            (_, 1) => Self::Narrowed(0),
            // The half is rounded up, so that two workers can execute an odd number of suspects.
            _ => Self::Narrowed(suspects.div_ceil(2)),
        }
    }
}

statements! {
    /// Returns other holders whose leases have all expired.
    DEAD_HOLDERS = "
        select holder
        from agent_runs
        where status = 'running' and holder <> $1
        group by holder
        having max(lease_until) < {now}
    ",
    /// Locks the running runs of a holder.
    LOCK_RUNS = "
        select id, crashes >= $2 as suspect, executing, lease_until < {now} as expired
        from agent_runs
        where holder = $1 and status = 'running'
        order by id
        {for update}
    ",
    /// Charges the runs of a dead holder, or narrows their probation.
    SETTLE = "
        update agent_runs
        set holder = null,
            executing = false,
            crashes = crashes + (case when executing and (crashes < $2 or $3) then 1 else 0 end),
            probation = case when executing and crashes >= $2 and not $3 then $4 else probation end
        where id {in:$1}
    ",
}

impl Storage {
    /// Settles the death of each other holder whose leases have all expired.
    pub async fn settle_deaths(&self, terms: &ClaimTerms) -> Result<(), Error> {
        // Leases also expire while the database is away. Holders renew them within a third of a lease after its return.
        if sql::was_away_within(terms.lease / 3) {
            return Ok(());
        }
        let holder = terms.holder.as_str();
        let dead = self.database.fetch_all::<(String,)>("look for dead workers", DEAD_HOLDERS, args![holder]).await?;
        for (holder,) in dead {
            // A failure for one death must not stop the others.
            if let Err(error) = self.settle_death(&holder, terms.suspicious()).await {
                tracing::warn!(holder, error = &error as &dyn std::error::Error, "failed to settle a worker's death");
            }
        }
        Ok(())
    }

    async fn settle_death(&self, holder: &str, suspicious: usize) -> Result<(), Error> {
        let settle = async |tx: &mut Tx| {
            // Order matters: the worker locks each row before it judges one. A holder that wakes up renews its leases
            // before, and lives, or after, and finds none.
            let orphans = tx.fetch_all::<Orphan>(LOCK_RUNS, args![holder, suspicious]).await?;
            if orphans.is_empty() || orphans.iter().any(|orphan| !orphan.expired) {
                return Ok(RollBack(None));
            }
            let executing = orphans.iter().filter(|orphan| orphan.executing).count();
            let suspects = orphans.iter().filter(|orphan| orphan.executing && orphan.suspect).count();
            let (charged, width) = match Blame::of(executing, suspects) {
                Blame::Charged => (true, 0),
                Blame::Narrowed(width) => (false, width),
            };
            let ids: Vec<Uuid> = orphans.iter().map(|orphan| orphan.id).collect();
            tx.execute(SETTLE, args![ids, suspicious, charged, width]).await?;
            Ok(Commit(Some((executing, suspects))))
        };
        if let Some((runs, suspects)) = self.database.transact("settle a worker's death", settle).await? {
            tracing::warn!(holder, runs, suspects, "a worker has died");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Blame::{self, Charged, Narrowed};

    #[test]
    fn only_a_run_that_was_alone_is_charged() {
        let check = |executing, suspects, expected| {
            assert_eq!(Blame::of(executing, suspects), expected, "{executing} runs, {suspects} of them suspects");
        };
        check(1, 0, Charged);
        check(1, 1, Charged);
        check(2, 1, Narrowed(0));
        check(40, 1, Narrowed(0));
        check(2, 2, Narrowed(1));
        check(3, 3, Narrowed(2));
        check(61, 61, Narrowed(31));
        check(90, 60, Narrowed(30));
    }
}
