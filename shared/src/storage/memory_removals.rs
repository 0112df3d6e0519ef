//! The sweeper's part in the end of memories: those that have expired, and the arguments of calls that wrote a deleted one.
//!
//! A trace names what `recall` has returned by id and version, so only the calls of `remember` have a text. Their events go
//! with the events of their run.

use serde_json::{Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    memory_rows::delete_memories,
    sql::{Commit, Tx, args, statements},
};
use crate::trace::RequestedCall;

/// Memories or calls of one transaction.
const BATCH: usize = 100;

#[derive(FromRow)]
struct RequestRow {
    position: i64,
    tool_calls: Json<Vec<RequestedCall>>,
}

statements! {
    /// Locks memories that have expired.
    LOCK_EXPIRED = "
        select id
        from memories
        where expires_at <= {now}
        order by expires_at
        limit $1
        {skip locked}
    ",
    /// Locks calls that wrote deleted memories, and whose runs have ended or are removed.
    LOCK_REMOVALS = "
        select x.run_id, x.call_id
        from memory_removals x
        where not exists (
                select 1
                from agent_runs r
                where r.id = x.run_id and r.finished_at is null
            )
        order by x.noted_at
        limit $1
        {skip locked}
    ",
    /// Replaces the arguments of a call.
    CLEAR_CALL = "
        update agent_run_tool_calls
        set input = $3
        where run_id = $1 and call_id = $2
    ",
    /// Returns the messages of a trace that request calls.
    REQUESTS = "
        select position, tool_calls
        from agent_run_messages
        where run_id = $1 and role = 'assistant' and tool_calls is not null
    ",
    /// Replaces the calls that a message of a trace requests.
    CLEAR_REQUEST = "
        update agent_run_messages
        set tool_calls = $3
        where run_id = $1 and position = $2
    ",
    /// Forgets that the arguments of a call are to be removed.
    FORGET = "
        delete from memory_removals
        where run_id = $1 and call_id = $2
    ",
}

impl Storage {
    /// Deletes memories that have expired. Returns how many, and whether there may be more.
    pub async fn delete_expired_memories(&self) -> Result<(usize, bool), Error> {
        let delete = async |tx: &mut Tx| {
            let expired = tx.fetch_all::<(Uuid,)>(LOCK_EXPIRED, args![BATCH]).await?;
            let deleted = expired.len();
            if deleted > 0 {
                delete_memories(tx, expired.into_iter().map(|row| row.0).collect()).await?;
            }
            Ok(Commit(deleted))
        };
        let deleted = self.database.transact("delete expired memories", delete).await?;
        Ok((deleted, deleted == BATCH))
    }

    /// Removes the texts of deleted memories from the traces of ended runs. Returns the number of calls, and whether there may
    /// be more.
    pub async fn clear_deleted_memories(&self) -> Result<(usize, bool), Error> {
        let clear = async |tx: &mut Tx| {
            let calls = tx.fetch_all::<(Uuid, String)>(LOCK_REMOVALS, args![BATCH]).await?;
            for (run_id, call_id) in &calls {
                clear_call(tx, *run_id, call_id).await?;
            }
            Ok(Commit(calls.len()))
        };
        let cleared = self.database.transact("remove the texts of deleted memories", clear).await?;
        Ok((cleared, cleared == BATCH))
    }
}

async fn clear_call(tx: &mut Tx, run_id: Uuid, call_id: &str) -> Result<(), Error> {
    tx.execute(CLEAR_CALL, args![run_id, call_id, deleted()]).await?;
    for RequestRow { position, tool_calls: Json(mut requested) } in
        tx.fetch_all::<RequestRow>(REQUESTS, args![run_id]).await?
    {
        let Some(call) = requested.iter_mut().find(|call| call.call_id == call_id) else { continue };
        call.input = deleted();
        tx.execute(CLEAR_REQUEST, args![run_id, position, json!(requested)]).await?;
    }
    tx.execute(FORGET, args![run_id, call_id]).await.map(drop)
}

/// Returns the arguments that a call of `remember` has after the deletion of its memory.
fn deleted() -> Value {
    json!({"text": "[deleted]"})
}
