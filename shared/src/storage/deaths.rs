//! What the death of a worker says about the runs that it executed.
//!
//! A holder is dead when the leases of all its runs have expired. Its death is settled once, for all of them together: each
//! is charged, or learns how many suspects it may be executed beside. Only then can a worker take them over. The protocol
//! is docs/decisions/0012-deaths-and-probation.md.

use sqlx::FromRow;
use uuid::Uuid;

use super::{ClaimTerms, Error, Storage, database::args, lost};

/// A run of a dead holder.
#[derive(FromRow)]
struct Orphan {
    id: Uuid,
    suspect: bool,
    executing: bool,
    expired: bool,
}

/// What a death means for the suspects among the runs that were being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The run was alone, so it is to blame.
    Charged,
    /// Nobody knows which run is to blame: each suspect may be executed beside fewer others. At 0 it needs a worker for
    /// itself.
    Narrowed(usize),
}

impl Verdict {
    fn of(executing: usize, suspects: usize) -> Self {
        match (executing, suspects) {
            (1, _) => Self::Charged,
            // Another run, which is no suspect yet, may be to blame.
            (_, 1) => Self::Narrowed(0),
            // Rounded up, so that two workers execute all of them again, also where their number is odd.
            _ => Self::Narrowed(suspects.div_ceil(2)),
        }
    }
}

impl Storage {
    /// Settles the death of each holder, other than the caller, whose leases have all expired.
    pub(super) async fn settle_deaths(&self, terms: &ClaimTerms) -> Result<(), Error> {
        // Leases also expire while the database is away, which is no worker's death. Holders renew theirs in this time.
        if lost::within(terms.lease / 3) {
            return Ok(());
        }
        let dead = "select holder from agent_runs where status = 'running' and holder <> $1 \
                    group by holder having max(lease_until) < {now}";
        let dead = self.database.fetch_all::<(String,)>(dead, args![terms.holder.as_str()]).await;
        for (holder,) in dead.map_err(Error::doing("look for dead workers"))? {
            // One death that cannot be settled must not keep the others from it.
            if let Err(error) = self.settle_death(&holder, terms.suspicious()).await {
                tracing::warn!(holder, error = &error as &dyn std::error::Error, "failed to settle a worker's death");
            }
        }
        Ok(())
    }

    async fn settle_death(&self, holder: &str, suspicious: usize) -> Result<(), sqlx::Error> {
        let mut tx = self.database.begin().await?;
        // Order matters: every row is locked before any is judged. A holder that wakes up renews its leases before, and
        // then it is not dead, or after, and then it finds none.
        let sql = "select id, crashes >= $2 as suspect, executing, lease_until < {now} as expired from agent_runs \
                   where holder = $1 and status = 'running' order by id {for update}";
        let orphans = tx.fetch_all::<Orphan>(sql, args![holder, suspicious]).await?;
        if orphans.is_empty() || orphans.iter().any(|orphan| !orphan.expired) {
            return tx.rollback().await;
        }
        let executing = orphans.iter().filter(|orphan| orphan.executing).count();
        let suspects = orphans.iter().filter(|orphan| orphan.executing && orphan.suspect).count();
        let (charged, width) = match Verdict::of(executing, suspects) {
            Verdict::Charged => (true, 0),
            Verdict::Narrowed(width) => (false, width),
        };
        let sql = "update agent_runs set holder = null, executing = false, \
                   crashes = crashes + (case when executing and (crashes < $2 or $3) then 1 else 0 end), \
                   probation = case when executing and crashes >= $2 and not $3 then $4 else probation end \
                   where id {in:$1}";
        let ids: Vec<Uuid> = orphans.iter().map(|orphan| orphan.id).collect();
        tx.execute(sql, args![ids, suspicious, charged, width]).await?;
        tx.commit().await?;
        tracing::warn!(holder, runs = executing, suspects, "a worker has died");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, Charged, Narrowed};

    #[test]
    fn only_a_run_that_was_alone_is_charged() {
        let check = |executing, suspects, expected| {
            assert_eq!(Verdict::of(executing, suspects), expected, "{executing} runs, {suspects} of them suspects");
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
