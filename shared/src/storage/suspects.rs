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
    /// Suspects wait for those that the worker executes.
    Scarce,
    /// A suspect waits until this worker executes nothing: it claims nothing else.
    Clearing,
    /// The claimed suspect needs the worker for itself: it claims nothing until that has ended.
    Alone,
}

/// A suspect that a worker could claim.
#[derive(FromRow)]
struct Waiting {
    id: Uuid,
    width: Option<i64>,
}

/// A run that the worker executes.
#[derive(FromRow)]
struct AtWork {
    suspect: bool,
    width: Option<i64>,
}

/// How many of the suspects that wait, the widest first, may join those at work.
fn admitted(at_work: &[Option<i64>], waiting: &[Option<i64>]) -> usize {
    let least = at_work.iter().flatten().min().copied().unwrap_or(i64::MAX);
    let fits = |(together, width): (usize, &Option<i64>)| together as i64 <= least.min(width.unwrap_or(i64::MAX));
    (at_work.len() + 1..).zip(waiting).take_while(|candidate| fits(*candidate)).count()
}

impl Storage {
    /// Claims as many suspects as may be executed together, up to `limit`: the widest first, so that the healthy ones are
    /// through before the narrowest is tried again.
    pub async fn claim_suspects(&self, terms: &ClaimTerms, limit: usize) -> Result<Suspects, Error> {
        self.suspects(terms, limit).await.map_err(Error::doing("claim suspects"))
    }

    async fn suspects(&self, terms: &ClaimTerms, limit: usize) -> Result<Suspects, sqlx::Error> {
        // One more than can be claimed says that some wait.
        let sql = "select r.id, r.probation as width from agent_runs r where r.crashes > 0 and r.crashes >= $1 and r.crashes < $2 \
                   and (r.status = 'queued' or r.status = 'running' and r.holder is null and r.lease_until < {now}) \
                   and r.cancel_requested_at is null order by coalesce(r.probation, 1000000000) desc, r.id limit $3";
        let args = args![terms.suspicious(), terms.max_crashes, limit + 1];
        let waiting = self.database.fetch_all::<Waiting>(sql, args).await?;
        if waiting.is_empty() {
            return Ok(Suspects { claims: Vec::new(), room: Room::Enough });
        }
        let sql = "select crashes >= $2 as suspect, probation as width from agent_runs where holder = $1 and status = 'running'";
        let at_work = self.database.fetch_all::<AtWork>(sql, args![terms.holder.as_str(), terms.suspicious()]).await?;
        let suspects: Vec<_> = at_work.iter().filter(|run| run.suspect).map(|run| run.width).collect();
        let widths: Vec<_> = waiting.iter().map(|run| run.width).collect();
        let needs_worker = suspects.is_empty() && widths[0] == Some(0);
        let chosen = match needs_worker {
            false => admitted(&suspects, &widths).min(limit),
            true if at_work.is_empty() => 1,
            // Every worker but one goes on with other runs.
            true if self.is_least_busy(terms).await? => {
                return Ok(Suspects { claims: Vec::new(), room: Room::Clearing });
            }
            true => 0,
        };
        let ids: Vec<Uuid> = waiting.iter().take(chosen).map(|run| run.id).collect();
        let claims = match ids.is_empty() {
            true => Vec::new(),
            false => self.take_suspects(terms, ids).await?,
        };
        let room = match claims.len() {
            1.. if needs_worker => Room::Alone,
            claimed if claimed == waiting.len() => Room::Enough,
            _ => Room::Scarce,
        };
        Ok(Suspects { claims, room })
    }

    async fn take_suspects(&self, terms: &ClaimTerms, ids: Vec<Uuid>) -> Result<Vec<Claim>, sqlx::Error> {
        let sql = take!(
            "select r.id as candidate_id from agent_runs r where r.id {in:$6} \
             and (r.status = 'queued' or r.status = 'running' and r.holder is null and r.lease_until < {now}) \
             and r.cancel_requested_at is null and r.crashes >= $5 and r.crashes < $4"
        );
        self.take_with(sql, terms, ids.len(), args![ids]).await
    }

    /// Whether no live worker executes fewer runs than this one.
    async fn is_least_busy(&self, terms: &ClaimTerms) -> Result<bool, sqlx::Error> {
        let sql = "select holder from agent_runs where status = 'running' and holder is not null and lease_until >= {now} \
                   group by holder order by count(*), holder limit 1";
        let least_busy = self.database.fetch_optional::<(String,)>(sql, args![]).await?;
        Ok(least_busy.is_some_and(|(holder,)| holder == terms.holder.as_str()))
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
        check(&[], &[Some(1), Some(1)], 1);
        check(&[], &[Some(0)], 0);
    }
}
