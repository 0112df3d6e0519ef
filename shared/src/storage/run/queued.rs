//! CLAIM of queued runs, in the order of the queue.

use super::claim::{Claim, ClaimTerms, take};
use crate::storage::{
    Error, Storage,
    sql::{args, statements},
};

/// The first runs of the queue with this condition, without those that wait for another run of their conversation.
macro_rules! first {
    ($needs:literal) => {
        concat!(
            "
                select r.id, r.owner_id, r.priority, r.queue_round
                from agent_runs r
                where r.status = 'queued'
                  and r.priority >= 0
                  and r.crashes < $5
                  and r.crashes < $4
                  and r.needs ",
            $needs,
            "
                  and not exists (
                      select 1
                      from agent_runs earlier
                      where earlier.conversation_id = r.conversation_id
                        and earlier.position < r.position
                        and earlier.status in ('queued', 'running', 'waiting')
                      limit 1 offset 0
                  )
                order by r.priority desc, r.queue_round, r.id
                limit 2048"
        )
    };
}

statements! {
    /// Claims queued runs, among them at most `$6` ingestions of documents, so that these leave slots for conversations.
    ///
    /// PostgreSQL plans a worker's statements without their parameters. The constant limit of 2048 makes it read the queue by
    /// its index; for an unknown limit it would sort the whole queue. The offset prevents a join of all unfinished runs, so
    /// PostgreSQL looks each one up. It locks the rows one by one, in order, until there are enough, and skips locked runs.
    /// The status is no condition there: with it, PostgreSQL may find each row by a scan of the queue's whole index. After the
    /// lock of a row that another transaction has changed, PostgreSQL computes the column again. The range of one status
    /// keeps PostgreSQL from the index of all running runs.
    TAKE_QUEUED = take!(concat!("
        with answers as materialized (
            select *
            from (", first!("<> 5 and r.needs <= 6"), "
            ) longest
            limit $3 * 4 + 64
        ),
        documents as materialized (
            select *
            from (", first!("= 5"), "
            ) longest
            limit $6
        ),
        head as materialized (
            select * from answers
            union all
            select * from documents
        ),
        owners as materialized (
            select owner_id,
                (
                    select count(*)
                    from (
                        select 1
                        from agent_runs held
                        where held.owner_id = several.owner_id
                          and held.finished_at is null
                          and held.status between 'running' and 'running'
                        order by held.queue_round
                        limit 100
                    ) running
                ) as running
            from (
                select distinct owner_id
                from head
                where (select min(owner_id) < max(owner_id) from head)
            ) several
        ),
        turns as (
            select head.id, head.priority, head.queue_round,
                coalesce(owners.running, 0) + row_number() over (
                    partition by head.priority, head.owner_id order by head.queue_round, head.id
                ) as turn
            from head
            left join owners on owners.owner_id = head.owner_id
        )
        select candidate_id
        from (
            select (
                select case when r.status = 'queued' then r.id end
                from agent_runs r
                where r.id = ordered.id
                {skip locked}
            ) as candidate_id
            from (
                select id
                from turns
                order by priority desc, turn, queue_round, id
                limit 1000000 offset 0
            ) ordered
            limit 1000000 offset 0
        ) locked
        where candidate_id is not null
    ")),
}

impl Storage {
    /// Claims up to `limit` queued runs, only the first of each conversation. The order is priority, then the owner
    /// with fewer running runs (up to 100), then the owner's turn, then age. The claim reads only the head of the
    /// queue, in which owners take turns (`queue_round`), and no blocked run. So it costs the same with 100,000 queued
    /// runs as with a hundred; it walks only past the queued documents before them, of which each owner has few. Ingestions
    /// beyond the worker's free places stay in the queue.
    pub async fn claim_queued(&self, terms: &ClaimTerms, limit: usize) -> Result<Vec<Claim>, Error> {
        let args =
            args![terms.holder.as_str(), terms.lease, limit, terms.max_crashes, terms.suspicious(), terms.ingestions];
        self.take_with("claim queued runs", TAKE_QUEUED, args, terms.max_crashes).await
    }
}
