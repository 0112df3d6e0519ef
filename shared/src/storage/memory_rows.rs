//! The rows of memories, and their end: with their owner, at a move to another, or when a user, an agent or the sweeper deletes
//! them.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error,
    quota::LOCK_OWNER,
    sql::{Piece, Tx, args, statements},
};
use crate::{
    memory::{MemoryScope, MemorySource, MemoryWriter, StoredMemory},
    quotas::QuotaExceeded,
};

#[derive(FromRow)]
pub(super) struct MemoryRow {
    pub id: Uuid,
    agent: String,
    #[sqlx(try_from = "String")]
    scope: MemoryScope,
    text: String,
    pub version: i64,
    #[sqlx(try_from = "String")]
    writer: MemoryWriter,
    pub created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    run_id: Uuid,
    message_id: Uuid,
    conversation_id: Option<Uuid>,
}

/// The columns of `MemoryRow`, of the memory `m`. The conversation is that of the run above all others.
macro_rules! memory_columns {
    () => {
        "m.id, m.agent, m.scope, m.text, m.version, m.writer, m.created_at, m.updated_at,
            m.expires_at, m.run_id, m.message_id,
            (
                select c.id
                from agent_runs r
                join agent_runs t on t.id = coalesce(r.top_run_id, r.id)
                join chat_conversations c on c.id = t.conversation_id
                where r.id = m.run_id and c.owner_id = m.owner_id and c.deleted_at is null
            ) as conversation_id"
    };
}
pub(super) use memory_columns;

impl From<MemoryRow> for StoredMemory {
    fn from(row: MemoryRow) -> Self {
        let MemoryRow { id, agent, scope, text, version, writer, .. } = row;
        let MemoryRow { created_at, updated_at, expires_at, run_id, message_id, conversation_id, .. } = row;
        let source = MemorySource { run_id, message_id, conversation_id };
        Self { id, agent, scope, text, version: version as u32, writer, created_at, updated_at, expires_at, source }
    }
}

statements! {
    /// Notes the calls that wrote memories, because their arguments have the texts.
    NOTE_REMOVALS = "
        insert into memory_removals (run_id, call_id, noted_at)
        select m.run_id, m.call_id, {now}
        from memories m
        where m.id {in:$1}
          and exists (select 1 from agent_runs r where r.id = m.run_id)
        on conflict (run_id, call_id) do nothing
    ",
    /// Removes memories with their versions.
    DELETE = "
        delete from memories
        where id {in:$1}
    ",
    /// Locks the memories of an owner.
    LOCK_OF_OWNER = "
        select id
        from memories
        where owner_id = $1
        order by id
        {for update}
    ",
    /// Locks some memories of an owner.
    LOCK_SOME_OF_OWNER = "
        select id
        from memories
        where owner_id = $1
        order by id
        limit $2
        {for update}
    ",
    /// Counts the memories of an owner that have not expired.
    COUNT = "
        select count(*)
        from memories
        where owner_id = $1
          and (expires_at is null or expires_at > {now})
    ",
    /// Moves memories to another owner.
    MOVE = "
        update memories
        set owner_id = $2
        where owner_id = $1
    ",
}

/// Removes memories with their versions at once, and notes what else has their texts.
pub(super) async fn delete_memories(tx: &mut Tx, ids: Vec<Uuid>) -> Result<(), Error> {
    tx.execute(NOTE_REMOVALS, args![ids.clone()]).await?;
    tx.execute(DELETE, args![ids]).await.map(drop)
}

/// Removes all memories of an owner.
pub(super) async fn delete_memories_of(tx: &mut Tx, owner: &str) -> Result<(), Error> {
    let ids = tx.fetch_all::<(Uuid,)>(LOCK_OF_OWNER, args![owner]).await?;
    delete_memories(tx, ids.into_iter().map(|row| row.0).collect()).await
}

/// Removes a piece of an owner's memories, and returns whether there were any.
pub(super) async fn delete_some_memories(tx: &mut Tx, piece: &mut Piece, owner: &str) -> Result<bool, Error> {
    let args = args![owner, piece.size(DELETE).rows()];
    let ids = tx.fetch_all::<(Uuid,)>(LOCK_SOME_OF_OWNER, args).await?;
    piece.note(DELETE, ids.len(), 0);
    let has_any = !ids.is_empty();
    delete_memories(tx, ids.into_iter().map(|row| row.0).collect()).await?;
    Ok(has_any)
}

/// Moves the memories of one owner to another. Fails if the other one would have more than `most`.
pub(super) async fn move_memories(tx: &mut Tx, from: &str, to: &str, most: Option<usize>) -> Result<(), Error> {
    tx.execute(LOCK_OWNER, args![from]).await?;
    tx.execute(LOCK_OWNER, args![to]).await?;
    if tx.execute(MOVE, args![from, to]).await? == 0 {
        return Ok(());
    }
    let count = count_memories(tx, to).await?;
    match most.filter(|most| count > *most) {
        Some(most) => Err(tx.refused_by(QuotaExceeded::Memories(most))),
        None => Ok(()),
    }
}

/// Returns the number of an owner's memories.
pub(super) async fn count_memories(tx: &mut Tx, owner: &str) -> Result<usize, Error> {
    Ok(tx.fetch_one::<(i64,)>(COUNT, args![owner]).await?.0 as usize)
}
