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
    sql::{Commit, Piece, Tx, args, statements},
};
use crate::trace::RequestedCall;

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
    /// Deletes a piece of the memories that have expired. Returns how many; 0 if there was none.
    pub async fn delete_expired_memories(&self) -> Result<usize, Error> {
        let delete = async |tx: &mut Tx, piece: &mut Piece| {
            let most = piece.size(LOCK_EXPIRED).rows();
            let expired = tx.fetch_all::<(Uuid,)>(LOCK_EXPIRED, args![most]).await?;
            let deleted = expired.len();
            piece.note(LOCK_EXPIRED, deleted, 0);
            if deleted > 0 {
                delete_memories(tx, expired.into_iter().map(|row| row.0).collect()).await?;
            }
            Ok(Commit(deleted))
        };
        self.database.write_piece("delete expired memories", delete).await
    }

    /// Removes the texts of a piece of the deleted memories from the traces of ended runs. Returns the number of calls; 0 if there
    /// was none.
    pub async fn clear_deleted_memories(&self) -> Result<usize, Error> {
        let clear = async |tx: &mut Tx, piece: &mut Piece| {
            let most = piece.size(LOCK_REMOVALS).rows();
            let calls = tx.fetch_all::<(Uuid, String)>(LOCK_REMOVALS, args![most]).await?;
            for (run_id, call_id) in &calls {
                clear_call(tx, *run_id, call_id).await?;
            }
            piece.note(LOCK_REMOVALS, calls.len(), 0);
            Ok(Commit(calls.len()))
        };
        self.database.write_piece("remove the texts of deleted memories", clear).await
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
