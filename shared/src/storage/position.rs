//! The lock of a conversation, and the positions of its messages.
//!
//! Order matters: a transaction locks a run's row only after the row of its conversation.

use uuid::Uuid;

use super::{
    Error,
    quota::trace_bytes,
    sql::{Tx, args, statements},
};

statements! {
    /// Locks a conversation's row.
    LOCK_CONVERSATION = "
        select id
        from chat_conversations
        where id = $1
        {for update}
    ",
    /// Takes the next position of a conversation, for a message of `$2` bytes and the trace of the run `$3`.
    TAKE_POSITION = concat!("
        update chat_conversations
        set last_position = last_position + 1,
            last_message_at = {now},
            activity_at = {now},
            bytes = bytes + $2 + ", trace_bytes!("$3"), "
        where id = $1
        returning last_position
    "),
}

/// Locks a conversation's row.
pub(super) async fn lock_conversation(tx: &mut Tx, id: Uuid) -> Result<(), Error> {
    tx.fetch_optional::<(Uuid,)>(LOCK_CONVERSATION, args![id]).await.map(drop)
}

/// Locks the conversation and returns its next position, for a message of `bytes`; `None` if it is gone. An answer also
/// adds the bytes of its run's trace to the conversation.
pub(super) async fn take_position(
    tx: &mut Tx,
    conversation_id: Uuid,
    run_id: Option<Uuid>,
    bytes: usize,
) -> Result<Option<i64>, Error> {
    Ok(tx.fetch_optional::<(i64,)>(TAKE_POSITION, args![conversation_id, bytes, run_id]).await?.map(|row| row.0))
}

/// Attempts to find a conversation by its handle, or else to create it.
pub(super) const HANDLE_TRIES: usize = 5;
