//! The erasure of an owner's data, piece by piece.

use std::time::Duration;

use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    conversation_removal::{RemovedConversations, remove_conversations},
    file_removals::{delete_some_files, retried},
    knowledge_rows::delete_some_knowledge,
    memory_rows::delete_some_memories,
    removals::remove_some,
    run::{cancel_in_conversation, lock_running, unfinished_runs},
    sql::{Commit, Piece, Tx, args, statements},
    user_profiles::delete_profile,
    workspace_rows::{delete_some_of_workspace, forget_workspace, lock_workspaces},
};
use crate::approval::ApprovalStatus;

/// The result of one step of an erasure.
#[derive(Debug, Default)]
pub struct ErasureStep {
    /// Runs that the step ended first. The caller publishes their last events.
    pub ended: Vec<EndedRun>,
    /// Removed runs.
    pub runs: Vec<Uuid>,
    /// Removed conversations.
    pub conversations: Vec<Uuid>,
    /// True if nothing is left to do.
    pub is_done: bool,
    /// True if the user was seen again meanwhile, so that the step removed nothing.
    pub has_returned: bool,
}

/// The reason for an erasure.
#[derive(Debug, Clone, Copy)]
pub enum Erasure {
    /// The owner requested it.
    Wanted,
    /// An anonymous user was absent for this time.
    Forgotten(Duration),
}

/// Conversations whose runs one step ends, and whose rows it removes.
const CONVERSATIONS: i64 = 10;

statements! {
    /// Locks the row of an anonymous user, and returns whether the user was absent for `$2` milliseconds.
    LOCK_ABSENT = "
        select owner_id, $2 is null or seen_at < {before:$2} as goes
        from anonymous_users
        where owner_id = $1
        {for update}
    ",
    /// Locks some conversations of an owner.
    LOCK_SOME_CONVERSATIONS = "
        select id
        from chat_conversations
        where owner_id = $1
        order by id
        limit $2
        {for update}
    ",
    /// Marks conversations as deleted, so that nothing joins them before their last row is removed.
    HIDE_CONVERSATIONS = "
        update chat_conversations
        set deleted_at = {now}
        where id {in:$1} and deleted_at is null
    ",
    /// Removes some briefings of an owner.
    REMOVE_BRIEFINGS = remove_some!("briefings", "id", "owner_id = $1", "bytes"),
    /// Removes an owner's name and keys from some of the briefings that it wrote.
    CLEAR_AUTHORSHIP = "
        update briefings
        set author_id = null,
            idempotency_key = null,
            idempotency_fingerprint = null
        where id in (
            select id
            from briefings
            where author_id = $1
            limit $2
        )
    ",
    /// Removes the row of an anonymous user.
    FORGET = "
        delete from anonymous_users
        where owner_id = $1
    ",
}

impl Storage {
    /// Removes a piece of the owner's data; the caller repeats it until nothing is left. It first ends each unfinished
    /// run by the write rule, so that a worker writes nothing after it.
    pub async fn erase_some(&self, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
        retried(|| self.try_erase(owner, erasure)).await
    }

    async fn try_erase(&self, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
        let erase = async |tx: &mut Tx, piece: &mut Piece| Ok(Commit(erase(tx, piece, owner, erasure).await?));
        self.database.write_piece("erase an owner's data", erase).await
    }
}

async fn erase(tx: &mut Tx, piece: &mut Piece, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
    lock_workspaces(tx, vec![owner]).await?;
    // Order matters: a move to another owner also locks this row first, so the two cannot deadlock.
    let absence = match erasure {
        Erasure::Wanted => None,
        Erasure::Forgotten(absence) => Some(absence),
    };
    let args = args![owner, absence.map(|time| time.as_millis() as i64)];
    let goes = tx.fetch_optional::<(String, bool)>(LOCK_ABSENT, args).await?.is_some_and(|(_, goes)| goes);
    if absence.is_some() && !goes {
        return Ok(ErasureStep { is_done: true, has_returned: true, ..ErasureStep::default() });
    }
    let conversations = tx.fetch_all::<(Uuid,)>(LOCK_SOME_CONVERSATIONS, args![owner, CONVERSATIONS]).await?;
    let conversations: Vec<Uuid> = conversations.into_iter().map(|row| row.0).collect();
    if conversations.is_empty() {
        let is_done = !remove_rest(tx, piece, owner).await?;
        return Ok(ErasureStep { is_done, ..ErasureStep::default() });
    }
    lock_running(tx, conversations.clone()).await?;
    let mut ended = Vec::new();
    for conversation in &conversations {
        for run in unfinished_runs(tx, *conversation).await? {
            ended.extend(cancel_in_conversation(tx, run.id, ApprovalStatus::Cancelled).await?);
        }
    }
    tx.execute(HIDE_CONVERSATIONS, args![conversations.clone()]).await?;
    let RemovedConversations { runs, conversations } = remove_conversations(tx, piece, conversations).await?;
    Ok(ErasureStep { ended, runs, conversations, ..ErasureStep::default() })
}

/// Removes a piece of the other data, and returns whether there was any. Without any, it removes the last rows about the owner.
async fn remove_rest(tx: &mut Tx, piece: &mut Piece, owner: &str) -> Result<bool, Error> {
    if piece.write_bytes(tx, REMOVE_BRIEFINGS, args![owner]).await?
        || delete_some_of_workspace(tx, piece, owner).await?
        || delete_some_memories(tx, piece, owner).await?
        || delete_some_knowledge(tx, piece, owner).await?
        || delete_some_files(tx, piece, owner).await?
        || piece.write(tx, CLEAR_AUTHORSHIP, args![owner]).await?
    {
        return Ok(true);
    }
    delete_profile(tx, owner).await?;
    forget_workspace(tx, owner).await?;
    // Order matters: the next step of an erasure finds the owner by the row of an anonymous user.
    tx.execute(FORGET, args![owner]).await?;
    Ok(false)
}
