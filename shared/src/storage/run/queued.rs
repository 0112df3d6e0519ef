//! CLAIM of queued runs, in the order of the queue.

use super::{
    abilities::executable,
    claim::{Claim, ClaimTerms},
    take::take,
};
use crate::storage::{
    Error, Storage,
    sql::{args, statements},
};

/// Counts the running runs of a share, up to a quarter of the slots of a large worker.
macro_rules! running {
    ($column:literal, $share:literal) => {
        concat!(
            "(
                    select count(*)
                    from (
                        select 1
                        from agent_runs held
                        where held.",
            $column,
            " = several.",
            $share,
            "
                          and held.finished_at is null
                          and held.status between 'running' and 'running'
                        order by held.queue_round
                        limit 1024
                    ) running
                )"
        )
    };
}

/// Locks the runs with these turns in this order, one by one, and selects those that nothing else has locked.
macro_rules! locked {
    ($turns:literal) => {
        concat!(
            "
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
                    where ",
            $turns,
            "
                    order by priority desc, turn, queue_round, id
                    limit 1000000 offset 0
                ) ordered
                limit 1000000 offset 0
            ) locked
            where candidate_id is not null"
        )
    };
}

/// The first runs of the queue with this condition, without those that wait for another run of their conversation.
macro_rules! first {
    ($condition:literal) => {
        concat!(
            "
                select r.id, coalesce(r.caller_group, r.owner_id) as share, r.caller_group,
                    r.priority, r.queue_round
                from agent_runs r
                where r.status = 'queued'
                  and r.priority >= 0
                  and r.crashes < $5
                  and r.crashes < $4
                  and ",
            executable!("r"),
            " and ",
            $condition,
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
    /// Claims queued runs, among them at most `$6` ingestions of documents, so that these leave slots for conversations. Shares
    /// without a run at work go first, and only they get the last slots: with them, at most `$7` runs of other shares are taken.
    /// `$8` is how much further the claim looks for such a share.
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
            from (", first!("not r.ingests"), "
            ) longest
            limit $3 * 4 + 64 + $8
        ),
        documents as materialized (
            select *
            from (", first!("r.ingests"), "
            ) longest
            limit $6
        ),
        head as materialized (
            select * from answers
            union all
            select * from documents
        ),
        shares as materialized (
            select share,
                case
                    when caller_group is null
                    then ", running!("owner_id", "share"), "
                    else ", running!("caller_group", "caller_group"), "
                end as running
            from (
                select share, max(caller_group) as caller_group
                from head
                where $7 < $3 or (select min(share) < max(share) from head)
                group by share
            ) several
        ),
        turns as materialized (
            select head.id, head.priority, head.queue_round,
                coalesce(shares.running, 0) + row_number() over (
                    partition by head.priority, head.share order by head.queue_round, head.id
                ) as turn
            from head
            left join shares on shares.share = head.share
        ),
        first_turns as materialized (", locked!("turn = 1"), "
            limit $3
        ),
        later_turns as materialized (", locked!("turn > 1"), "
            limit (
                select case when count(*) < $7 then $7 - count(*) else 0 end
                from first_turns
            )
        ),
        taken as materialized (
            select * from first_turns
            union all
            select * from later_turns
        )
        select candidate_id
        from taken
    ")),
}

/// Further runs of the queue that a claim of reserved slots looks at. The shares that wait have at most about one run of each
/// round, so a share without a run at work is among the first of a round.
const FURTHER: usize = 512;

impl Storage {
    /// Claims up to `limit` queued runs, only the first of each conversation. A share is an owner, or a group of anonymous
    /// callers. Shares without a run at work go first, and then come those with fewer running runs (up to 1,024). After them,
    /// the share's turn decides, then age; runs with a priority, which no caller can set, go before others of their kind.
    ///
    /// The last of these runs, as many as the terms reserve, are of shares without a run at work alone.
    ///
    /// The claim reads only the head of the queue, in which shares take turns (`queue_round`), and no blocked run. So it costs
    /// the same with 100,000 queued runs as with a hundred; it walks only past the queued documents before them, of which each
    /// owner has few. Ingestions beyond the worker's free places stay in the queue.
    pub async fn claim_queued(&self, terms: &ClaimTerms, limit: usize) -> Result<Vec<Claim>, Error> {
        let open = limit.saturating_sub(terms.reserved);
        let further = if open == 0 { FURTHER } else { 0 };
        let args = args![
            terms.holder.as_str(),
            terms.lease,
            limit,
            terms.max_crashes,
            terms.suspicious(),
            terms.ingestions,
            open,
            further
        ];
        self.take_with("claim queued runs", TAKE_QUEUED, args, terms.max_crashes).await
    }
}
