//! Blocked runs: queued with a priority below 0, where no claim looks.
//!
//! - `-1`: behind an unfinished run of its conversation. SUBMIT blocks the run, and the end of the run before it unblocks
//!   it. Both hold the conversation's lock (`tests/model/src/queue.rs`).
//! - `-2`: delayed ([`super::delayed`]).

use uuid::Uuid;

use crate::storage::{
    Error,
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
}

/// Unblocks the conversation's first unfinished run, in a transaction that has locked the conversation and ended a run.
pub async fn unblock_next(tx: &mut Tx, conversation_id: Uuid) -> Result<(), Error> {
    tx.execute(UNBLOCK_NEXT, args![conversation_id]).await.map(drop)
}
