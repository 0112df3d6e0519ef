//! Turns of owners: the round in which a new run stands in the queue.

/// The round of the next turn of the owner, or of its group of anonymous callers: one after its last queued run, but not before
/// the round that the queue has reached. So a new owner does not wait for another owner's whole queue.
macro_rules! next_round {
    ($owner:literal, $group:literal) => {
        concat!(
            "(
            select coalesce(max(place), 0)
            from (
                select min(place) as place
                from (
                    select *
                    from (
                        select first.queue_round as place
                        from agent_runs first
                        where first.status = 'queued' and first.priority = 0
                        order by first.queue_round
                        limit 1
                    ) free
                    union all
                    select *
                    from (
                        select first.queue_round as place
                        from agent_runs first
                        where first.status = 'queued' and first.priority = -1
                        order by first.queue_round
                        limit 1
                    ) blocked
                ) reached
                union all
                select *
                from (
                    select own.queue_round + 1 as place
                    from agent_runs own
                    where own.owner_id = ",
            $owner,
            "
                      and own.finished_at is null
                      and own.status = 'queued'
                    order by own.queue_round desc
                    limit 1
                ) behind
                union all
                select *
                from (
                    select grouped.queue_round + 1 as place
                    from agent_runs grouped
                    where grouped.caller_group = ",
            $group,
            "
                      and grouped.finished_at is null
                      and grouped.status = 'queued'
                    order by grouped.queue_round desc
                    limit 1
                ) behind_group
            ) rounds
        )"
        )
    };
}
pub(in crate::storage) use next_round;
