//! CLAIM of suspects: runs that one more death of a worker would fail.
//!
//! A suspect's width, `probation`, limits the suspects that its worker executes together. A suspect without a width
//! fits everywhere. `deaths` halves widths, and a completed step removes them.

use sqlx::FromRow;
use uuid::Uuid;

use super::{Claim, ClaimTerms, abilities::executable, take::take};
use crate::storage::{
    Error, Storage,
    sql::{args, statements},
};
/// The claimed suspects, and the consequence for the worker's other claims.
#[derive(Debug)]
pub struct Suspects {
    /// The claimed suspects, widest first.
    pub claims: Vec<Claim>,
    /// The worker's duty to the suspects.
    pub room: Room,
}

/// A worker's duty to the suspects that it claimed, or that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Room {
    /// No suspect waits.
    #[default]
    Enough,
    /// Suspects wait for those that a worker executes now.
    Scarce,
    /// A suspect waits until this worker is idle. The worker claims no other run, and hands its runs over at the end of
    /// a step. An idle worker may still claim the suspect.
    Clearing,
    /// The suspect has waited long enough, so the worker hands its runs over at once.
    Cleared,
    /// The claimed suspect needs the worker alone. The worker claims no other run before its end.
    Alone,
}

impl Room {
    /// Returns whether the worker claims no other run beside a suspect.
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::Clearing | Self::Cleared | Self::Alone)
    }
}

const DOING: &str = "claim suspects";

/// A suspect that a worker could claim beside others.
#[derive(FromRow)]
struct WaitingSuspect {
    id: Uuid,
    width: Option<i64>,
}

/// A suspect that needs a worker alone.
#[derive(FromRow)]
struct NarrowSuspect {
    id: Uuid,
    /// True if idle workers have had the time to claim it.
    is_due: bool,
}

/// A run that the worker executes.
#[derive(FromRow)]
struct RunAtWork {
    suspect: bool,
    width: Option<i64>,
}

/// The condition of a suspect `r` that any worker can claim. Parameters: `$1` the crashes from which a run is a
/// suspect, `$2` the crashes at which a run fails.
macro_rules! waits {
    () => {
        concat!(
            "r.crashes > 0
          and r.crashes >= $1
          and r.crashes < $2
          and (
              r.status = 'queued'
              or r.status = 'running'
                  and r.holder is null
                  and r.lease_until < {now}
          )
          and r.cancel_requested_at is null
          and ",
            executable!("r")
        )
    };
}

statements! {
    /// Returns suspects that can run beside others, the widest first.
    WAITING_SUSPECTS = concat!("
        select r.id, r.probation as width
        from agent_runs r
        where ", waits!(), " and coalesce(r.probation, 1) > 0
        order by coalesce(r.probation, 1000000000) desc, r.id
        limit $3
    "),
    /// Returns the runs that a worker executes.
    AT_WORK = "
        select crashes >= $2 as suspect, probation as width
        from agent_runs
        where holder = $1 and status = 'running'
    ",
    /// Returns the suspect that has waited longest for a worker alone.
    NARROWEST = concat!("
        select r.id, r.lease_until is null or r.lease_until < {before:$3} as is_due
        from agent_runs r
        where ", waits!(), " and r.probation = 0
        order by r.lease_until, r.id
        limit 1
    "),
    /// Claims chosen suspects.
    TAKE_SUSPECTS = take!(concat!("
        select r.id as candidate_id
        from agent_runs r
        where r.id {in:$6}
          and (
              r.status = 'queued'
              or r.status = 'running' and r.holder is null and r.lease_until < {now}
          )
          and r.cancel_requested_at is null
          and r.crashes >= $5
          and r.crashes < $4
          and ", executable!("r"), "
    ")),
    /// Returns the live holder with the fewest runs.
    LEAST_BUSY = "
        select holder
        from agent_runs
        where status = 'running' and holder is not null
        group by holder
        having max(lease_until) >= {after:$2} or holder = $1
        order by count(*), holder
        limit 1
    ",
}

/// Returns how many of the waiting suspects, the widest first, may join those at work.
fn admitted(at_work: &[Option<i64>], waiting: &[Option<i64>]) -> usize {
    let least = at_work.iter().flatten().min().copied().unwrap_or(i64::MAX);
    let fits = |(together, width): (usize, &Option<i64>)| together as i64 <= least.min(width.unwrap_or(i64::MAX));
    (at_work.len() + 1..).zip(waiting).take_while(|candidate| fits(*candidate)).count()
}

impl Storage {
    /// Claims the suspect that needs a worker alone, if this worker is idle. Otherwise claims as many other suspects as
    /// may run together, up to `limit` and the widest first.
    pub async fn claim_suspects(&self, terms: &ClaimTerms, limit: usize) -> Result<Suspects, Error> {
        let narrow = self.narrowest(terms).await?;
        // One candidate more than the limit shows that some will wait.
        let args = args![terms.suspicious(), terms.max_crashes, limit + 1];
        let waiting = self.database.fetch_all::<WaitingSuspect>(DOING, WAITING_SUSPECTS, args).await?;
        if narrow.is_none() && waiting.is_empty() {
            return Ok(Suspects { claims: Vec::new(), room: Room::Enough });
        }
        let at_work = self
            .database
            .fetch_all::<RunAtWork>(DOING, AT_WORK, args![terms.holder.as_str(), terms.suspicious()])
            .await?;
        if let Some(narrow) = &narrow {
            if at_work.is_empty() {
                let claims = self.take_suspects(terms, vec![narrow.id]).await?;
                let room = if claims.is_empty() { Room::Scarce } else { Room::Alone };
                return Ok(Suspects { claims, room });
            }
            // All workers but one continue with other runs.
            if !at_work.iter().any(RunAtWork::is_narrow) && self.is_least_busy(terms).await? {
                let room = if narrow.is_due { Room::Cleared } else { Room::Clearing };
                return Ok(Suspects { claims: Vec::new(), room });
            }
        }
        let suspects: Vec<_> = at_work.iter().filter(|run| run.suspect).map(|run| run.width).collect();
        let widths: Vec<_> = waiting.iter().map(|run| run.width).collect();
        let chosen = admitted(&suspects, &widths).min(limit);
        let ids: Vec<Uuid> = waiting.iter().take(chosen).map(|run| run.id).collect();
        let claims = if ids.is_empty() { Vec::new() } else { self.take_suspects(terms, ids).await? };
        let all = narrow.is_none() && claims.len() == waiting.len();
        Ok(Suspects { claims, room: if all { Room::Enough } else { Room::Scarce } })
    }

    /// Returns the suspect that has waited longest for a worker alone. A third of a lease after the loss of its worker,
    /// each idle worker has polled, and the suspect waits no longer.
    async fn narrowest(&self, terms: &ClaimTerms) -> Result<Option<NarrowSuspect>, Error> {
        self.database
            .fetch_optional(DOING, NARROWEST, args![terms.suspicious(), terms.max_crashes, terms.lease / 3])
            .await
    }

    async fn take_suspects(&self, terms: &ClaimTerms, ids: Vec<Uuid>) -> Result<Vec<Claim>, Error> {
        let (suspicious, limit) = (terms.suspicious(), ids.len());
        let args = args![terms.holder.as_str(), terms.lease, limit, terms.max_crashes, suspicious, ids];
        self.take_with(DOING, TAKE_SUSPECTS, args, terms.max_crashes).await
    }

    /// Returns whether no live worker executes fewer runs than this one. A live worker renews its leases three times
    /// per lease. So one with half-expired leases has died or stopped, and no suspect waits for it.
    async fn is_least_busy(&self, terms: &ClaimTerms) -> Result<bool, Error> {
        let args = args![terms.holder.as_str(), terms.lease / 2];
        let least_busy = self.database.fetch_optional::<(String,)>(DOING, LEAST_BUSY, args).await?;
        Ok(least_busy.is_some_and(|(holder,)| holder == terms.holder.as_str()))
    }
}

impl RunAtWork {
    /// Returns whether the run needs this worker alone.
    fn is_narrow(&self) -> bool {
        self.suspect && self.width == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::admitted;

    #[test]
    fn a_suspect_is_admitted_where_every_width_allows_it() {
        let check = |at_work: &[Option<i64>], waiting: &[Option<i64>], expected| {
            assert_eq!(admitted(at_work, waiting), expected, "{waiting:?} beside {at_work:?}");
        };
        check(&[], &[None; 60], 60);
        check(&[None; 3], &[None, None], 2);
        check(&[], &[Some(30); 61], 30);
        check(&[Some(30); 29], &[Some(30); 32], 1);
        // The narrow suspect waits until few enough suspects are at work.
        check(&[], &[None, Some(2), Some(2)], 2);
        check(&[None, None], &[Some(2)], 0);
        check(&[Some(2)], &[None, None], 1);
        check(&[Some(1)], &[None, Some(1)], 0);
        check(&[Some(0)], &[None], 0);
        check(&[], &[Some(1), Some(1)], 1);
    }
}
