//! Blocked runs: queued behind an unfinished run of their conversation. SUBMIT blocks a run, and the end of the run before
//! it unblocks it. Both hold the conversation's lock (`tests/model/src/queue.rs`).

use uuid::Uuid;

use crate::storage::{
    Error, Storage,
    sql::{Tx, args},
};

/// Whether a run of the conversation is unfinished.
macro_rules! is_busy {
    ($conversation:literal) => {
        concat!(
            "exists (select 1 from agent_runs busy where busy.conversation_id = ",
            $conversation,
            " and busy.status in ('queued', 'running', 'waiting'))"
        )
    };
}
pub(in crate::storage) use is_busy;

/// Unblocks the conversation's first unfinished run, in a transaction that has locked the conversation and ended a run.
pub async fn unblock_next(tx: &mut Tx, conversation_id: Uuid) -> Result<(), Error> {
    let sql = "update agent_runs set blocked = false where blocked and id = ( \
               select first.id from agent_runs first where first.conversation_id = $1 \
               and first.status in ('queued', 'running', 'waiting') order by first.position limit 1)";
    tx.execute(sql, args![conversation_id]).await.map(drop)
}

impl Storage {
    /// Unblocks the runs that an earlier version of this program has left blocked. Returns their number.
    pub async fn unblock_forgotten(&self) -> Result<usize, Error> {
        let sql = "update agent_runs set blocked = false where blocked and status = 'queued' and id in ( \
                   select first.id from ( \
                   select conversation_id, min(position) as position from agent_runs where status = 'queued' and blocked \
                   group by conversation_id) head \
                   join agent_runs first on first.conversation_id = head.conversation_id and first.position = head.position \
                   where not exists (select 1 from agent_runs earlier where earlier.conversation_id = head.conversation_id \
                   and earlier.position < head.position and earlier.status in ('queued', 'running', 'waiting'))) \
                   returning id";
        let unblocked = self.database.write::<(Uuid,)>("unblock runs without a run before them", sql, args![]);
        Ok(unblocked.await?.len())
    }
}
