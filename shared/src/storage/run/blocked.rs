//! Blocked runs: queued with a priority below 0, where no claim looks.
//!
//! - `-1`: behind an unfinished run of its conversation. SUBMIT blocks the run, and the end of the run before it unblocks
//!   it. Both hold the conversation's lock (`tests/model/src/queue.rs`).
//! - `-2`: delayed ([`super::delayed`]).

use uuid::Uuid;

use crate::storage::{
    Error, Storage,
    sql::{Tx, args, statements},
};

/// The priority of a new run of an existing conversation, which is blocked if another run is unfinished.
macro_rules! priority_behind {
    ($conversation:literal) => {
        concat!(
            "case
                when exists (
                    select 1
                    from agent_runs busy
                    where busy.conversation_id = ",
            $conversation,
            "
                      and busy.status in ('queued', 'running', 'waiting')
                )
                then -1
                else 0
            end"
        )
    };
}
pub(in crate::storage) use priority_behind;

statements! {
    /// Unblocks the first unfinished run of a conversation. A delayed one waits for the sweep, which gives it its turn.
    UNBLOCK_NEXT = "
        update agent_runs
        set priority = 0
        where priority = -1
          and id = (
              select first.id
              from agent_runs first
              where first.conversation_id = $1
                and first.status in ('queued', 'running', 'waiting')
              order by first.position
              limit 1
          )
    ",
    /// Unblocks runs without an unfinished run before them.
    UNBLOCK_FORGOTTEN = "
        update agent_runs
        set priority = 0
        where id in (
            select r.id
            from agent_runs r
            join (
                select id
                from agent_runs
                where status = 'queued' and priority = -1
                order by priority desc, queue_round, id
                limit 1000
            ) blocked
                on blocked.id = r.id
            where r.status = 'queued'
              and r.priority = -1
              and not exists (
                  select 1
                  from agent_runs earlier
                  where earlier.conversation_id = r.conversation_id
                    and earlier.position < r.position
                    and earlier.status in ('queued', 'running', 'waiting')
                  limit 1 offset 0
              )
            limit 100
            {skip locked of r}
        )
        returning id
    ",
}

/// Unblocks the conversation's first unfinished run, in a transaction that has locked the conversation and ended a run.
pub async fn unblock_next(tx: &mut Tx, conversation_id: Uuid) -> Result<(), Error> {
    tx.execute(UNBLOCK_NEXT, args![conversation_id]).await.map(drop)
}

impl Storage {
    /// Unblocks runs that an earlier version of this program has left blocked, up to 100 and among the first 1,000 blocked
    /// ones. Returns their number.
    pub async fn unblock_forgotten(&self) -> Result<usize, Error> {
        let unblocked =
            self.database.write::<(Uuid,)>("unblock runs without a run before them", UNBLOCK_FORGOTTEN, args![]);
        Ok(unblocked.await?.len())
    }
}
