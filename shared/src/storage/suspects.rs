//! CLAIM of suspects: the runs that one more death of a worker would fail.
//!
//! A suspect's width, `probation`, says how many suspects a worker may execute while it executes this one. A suspect that
//! has no width yet fits everywhere. `deaths` halves widths, and a completed step removes them.

use sqlx::FromRow;
use uuid::Uuid;

use super::{Claim, ClaimTerms, Error, Storage, claim::take, database::args};

/// The suspects that a worker has claimed, and what follows for its other claims.
#[derive(Debug)]
pub struct Suspects {
    pub claims: Vec<Claim>,
    pub room: Room,
}

/// What a worker owes the suspects that it has claimed, or that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Room {
    /// No suspect waits.
    #[default]
    Enough,
    /// Suspects wait for those that this worker or another one executes.
    Scarce,
    /// A suspect waits until this worker executes nothing: the worker claims nothing else, and hands its runs over where a
    /// step ends. An idle worker may still take the suspect.
    Clearing,
    /// The suspect has waited for long enough: the worker hands its runs over at once.
    Cleared,
    /// The claimed suspect needs the worker for itself: it claims nothing until that has ended.
    Alone,
}

impl Room {
    /// Whether the worker claims nothing beside a suspect.
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::Clearing | Self::Cleared | Self::Alone)
    }
}

/// A suspect that a worker could claim beside others.
#[derive(FromRow)]
struct WaitingSuspect {
    id: Uuid,
    width: Option<i64>,
}

/// A suspect that needs a worker for itself.
#[derive(FromRow)]
struct NarrowSuspect {
    id: Uuid,
    /// Whether idle workers have had the time to take it.
    is_due: bool,
}

/// A run that the worker executes.
#[derive(FromRow)]
struct RunAtWork {
    suspect: bool,
    width: Option<i64>,
}

/// The condition of a suspect `r` that any worker can claim. Parameters: `$1` the crashes from which a run is a suspect, `$2`
/// the crashes that a run may not reach.
macro_rules! waits {
    () => {
        "r.crashes > 0 and r.crashes >= $1 and r.crashes < $2 \
         and (r.status = 'queued' or r.status = 'running' and r.holder is null and r.lease_until < {now}) \
         and r.cancel_requested_at is null"
    };
}

/// How many of the suspects that wait, the widest first, may join those at work.
fn admitted(at_work: &[Option<i64>], waiting: &[Option<i64>]) -> usize {
    let least = at_work.iter().flatten().min().copied().unwrap_or(i64::MAX);
    let fits = |(together, width): (usize, &Option<i64>)| together as i64 <= least.min(width.unwrap_or(i64::MAX));
    (at_work.len() + 1..).zip(waiting).take_while(|candidate| fits(*candidate)).count()
}

impl Storage {
    /// Claims the suspect that needs a worker for itself, if this worker executes nothing. Otherwise claims as many of the
    /// others as may be executed together, up to `limit` and the widest first.
    pub async fn claim_suspects(&self, terms: &ClaimTerms, limit: usize) -> Result<Suspects, Error> {
        self.suspects(terms, limit).await.map_err(Error::doing("claim suspects"))
    }

    async fn suspects(&self, terms: &ClaimTerms, limit: usize) -> Result<Suspects, sqlx::Error> {
        let narrow = self.narrowest(terms).await?;
        // One more than can be claimed says that some wait.
        let sql = concat!(
            "select r.id, r.probation as width from agent_runs r where ",
            waits!(),
            " and coalesce(r.probation, 1) > 0 order by coalesce(r.probation, 1000000000) desc, r.id limit $3"
        );
        let args = args![terms.suspicious(), terms.max_crashes, limit + 1];
        let waiting = self.database.fetch_all::<WaitingSuspect>(sql, args).await?;
        if narrow.is_none() && waiting.is_empty() {
            return Ok(Suspects { claims: Vec::new(), room: Room::Enough });
        }
        let sql = "select crashes >= $2 as suspect, probation as width from agent_runs where holder = $1 and status = 'running'";
        let at_work =
            self.database.fetch_all::<RunAtWork>(sql, args![terms.holder.as_str(), terms.suspicious()]).await?;
        if let Some(narrow) = &narrow {
            if at_work.is_empty() {
                let claims = self.take_suspects(terms, vec![narrow.id]).await?;
                let room = if claims.is_empty() { Room::Scarce } else { Room::Alone };
                return Ok(Suspects { claims, room });
            }
            // Every worker but one goes on with other runs.
            if !at_work.iter().any(RunAtWork::is_narrow) && self.is_least_busy(terms).await? {
                let room = if narrow.is_due { Room::Cleared } else { Room::Clearing };
                return Ok(Suspects { claims: Vec::new(), room });
            }
        }
        let suspects: Vec<_> = at_work.iter().filter(|run| run.suspect).map(|run| run.width).collect();
        let widths: Vec<_> = waiting.iter().map(|run| run.width).collect();
        let chosen = admitted(&suspects, &widths).min(limit);
        let ids: Vec<Uuid> = waiting.iter().take(chosen).map(|run| run.id).collect();
        let claims = match ids.is_empty() {
            true => Vec::new(),
            false => self.take_suspects(terms, ids).await?,
        };
        let all = narrow.is_none() && claims.len() == waiting.len();
        Ok(Suspects { claims, room: if all { Room::Enough } else { Room::Scarce } })
    }

    /// The suspect that has waited the longest for a worker of its own. A third of a lease after it lost its worker, each
    /// idle worker has looked for it, and the suspect waits for them no longer.
    async fn narrowest(&self, terms: &ClaimTerms) -> Result<Option<NarrowSuspect>, sqlx::Error> {
        let sql = concat!(
            "select r.id, r.lease_until is null or r.lease_until < {before:$3} as is_due from agent_runs r where ",
            waits!(),
            " and r.probation = 0 order by r.lease_until, r.id limit 1"
        );
        self.database.fetch_optional(sql, args![terms.suspicious(), terms.max_crashes, terms.lease / 3]).await
    }

    async fn take_suspects(&self, terms: &ClaimTerms, ids: Vec<Uuid>) -> Result<Vec<Claim>, sqlx::Error> {
        let sql = take!(
            "select r.id as candidate_id from agent_runs r where r.id {in:$6} \
             and (r.status = 'queued' or r.status = 'running' and r.holder is null and r.lease_until < {now}) \
             and r.cancel_requested_at is null and r.crashes >= $5 and r.crashes < $4"
        );
        self.take_with(sql, terms, ids.len(), args![ids]).await
    }

    /// Whether no live worker executes fewer runs than this one. A live worker renews its leases three times per lease; so a
    /// worker whose leases are half over has died or stopped, and nobody waits for it.
    async fn is_least_busy(&self, terms: &ClaimTerms) -> Result<bool, sqlx::Error> {
        let sql = "select holder from agent_runs where status = 'running' and holder is not null \
                   group by holder having max(lease_until) >= {after:$2} or holder = $1 \
                   order by count(*), holder limit 1";
        let args = args![terms.holder.as_str(), terms.lease / 2];
        let least_busy = self.database.fetch_optional::<(String,)>(sql, args).await?;
        Ok(least_busy.is_some_and(|(holder,)| holder == terms.holder.as_str()))
    }
}

impl RunAtWork {
    /// Whether it needs this worker for itself.
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
        // The narrow one waits until few enough are at work.
        check(&[], &[None, Some(2), Some(2)], 2);
        check(&[None, None], &[Some(2)], 0);
        check(&[Some(2)], &[None, None], 1);
        check(&[Some(1)], &[None, Some(1)], 0);
        check(&[Some(0)], &[None], 0);
        check(&[], &[Some(1), Some(1)], 1);
    }
}
