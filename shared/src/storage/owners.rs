//! Owners: the last visit of anonymous ones, the erasure of an owner's data, and its move to another owner.

use std::time::Duration;

use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    file_removals::{delete_some_files, move_files, retried},
    knowledge_rows::{delete_some_knowledge, move_knowledge},
    memory_rows::{delete_memories_of, move_memories},
    quota::{self, OwnerUsage},
    run::{cancel_in_conversation, unfinished_runs},
    sql::{Commit, Tx, args, statements},
    user_profiles::{delete_profile, move_profile},
    workspace_rows::{delete_workspace, lock_workspaces, move_workspace},
};
use crate::{
    approval::ApprovalStatus,
    quotas::{OtherQuotas, Quotas},
};

/// The result of one step of an erasure.
#[derive(Debug, Default)]
pub struct ErasureStep {
    /// Runs that the step ended first. The caller publishes their last events.
    pub ended: Vec<EndedRun>,
    /// Removed runs.
    pub runs: Vec<Uuid>,
    /// Removed conversations.
    pub conversations: Vec<Uuid>,
    /// True if the owner has no data left.
    pub is_done: bool,
}

/// The reason for an erasure.
#[derive(Debug, Clone, Copy)]
pub enum Erasure {
    /// The owner requested it.
    Wanted,
    /// An anonymous user was absent for this time.
    Forgotten(Duration),
}

/// Conversations that one step removes, so that it never holds locks for long.
const CONVERSATIONS: i64 = 10;
const BRIEFINGS: i64 = 500;

/// Attempts of a transaction that locks many rows of an owner. PostgreSQL may end it to resolve a deadlock. The new
/// owner of a move may also create a conflicting handle or key meanwhile.
const TRIES: usize = 5;

statements! {
    /// Stores the visit of an anonymous user, who may be new.
    REMEMBER = "
        insert into anonymous_users (owner_id, seen_at)
        values ($1, {now})
        on conflict (owner_id) do update
        set seen_at = {now}
        returning owner_id
    ",
    /// Stores the visit of an anonymous user with data.
    SEE = "
        update anonymous_users
        set seen_at = {now}
        where owner_id = $1
        returning owner_id
    ",
    /// Returns absent anonymous users, the longest absence first.
    ABSENT = "
        select owner_id
        from anonymous_users
        where seen_at < {before:$1}
        order by seen_at
        limit $2
    ",
    /// Counts an owner's conversations.
    COUNT_CONVERSATIONS = "
        select count(*)
        from chat_conversations
        where owner_id = $1 and deleted_at is null
    ",
    /// Locks the row of an anonymous user.
    LOCK_USER = "
        select owner_id
        from anonymous_users
        where owner_id = $1
        {for update}
    ",
    /// Locks all conversations of an owner.
    LOCK_CONVERSATIONS = "
        select id
        from chat_conversations
        where owner_id = $1
        order by id
        {for update}
    ",
    /// Moves conversations. One loses its handle if the new owner has an equal one.
    MOVE_CONVERSATIONS = "
        update chat_conversations
        set owner_id = $2,
            handle = case
                when exists (
                        select 1
                        from chat_conversations own
                        where own.owner_id = $2
                          and own.handle = chat_conversations.handle
                          and own.deleted_at is null
                    )
                then null
                else handle
            end
        where owner_id = $1
        returning id, deleted_at is null as is_shown
    ",
    /// Moves the runs of conversations. One loses its key if the new owner has an equal one.
    MOVE_RUNS = "
        update agent_runs
        set owner_id = $2,
            idempotency_key = case
                when exists (
                        select 1
                        from agent_runs own
                        where own.owner_id = $2
                          and own.idempotency_key = agent_runs.idempotency_key
                    )
                then null
                else idempotency_key
            end
        where owner_id = $1 and conversation_id {in:$3}
    ",
    /// Moves the messages of conversations.
    MOVE_MESSAGES = "
        update chat_messages
        set owner_id = $2
        where owner_id = $1 and conversation_id {in:$3}
    ",
    /// Moves the decisions about the runs of conversations.
    MOVE_DECISIONS = "
        update agent_run_approvals
        set decided_by = $2
        where decided_by = $1
          and run_id in (select id from agent_runs where conversation_id {in:$3})
    ",
    /// Moves the briefings of an owner.
    MOVE_BRIEFINGS = "
        update briefings
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the briefings that an owner wrote. One loses its key if the new owner has an equal one.
    MOVE_AUTHORSHIP = "
        update briefings
        set author_id = $2,
            idempotency_key = case
                when exists (
                        select 1
                        from briefings own
                        where own.author_id = $2
                          and own.idempotency_key = briefings.idempotency_key
                    )
                then null
                else idempotency_key
            end
        where author_id = $1
    ",
    /// Removes the row of an anonymous user without conversations. A conversation that began meanwhile stays with its owner,
    /// so a later claim or the sweeper must find the owner.
    FORGET_WITHOUT_CONVERSATIONS = "
        delete from anonymous_users
        where owner_id = $1
          and not exists (select 1 from chat_conversations c where c.owner_id = $1)
    ",
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
    /// Locks the running runs of conversations.
    LOCK_RUNNING = "
        select id
        from agent_runs
        where conversation_id {in:$1} and status = 'running'
        order by id
        {for update}
    ",
    /// Returns the runs of conversations.
    RUNS = "
        select id
        from agent_runs
        where conversation_id {in:$1}
    ",
    /// Removes the checkpoints of conversations.
    DELETE_CHECKPOINTS = "
        delete from agent_run_checkpoints
        where conversation_id {in:$1}
    ",
    /// Removes conversations with their messages and runs.
    DELETE_CONVERSATIONS = "
        delete from chat_conversations
        where owner_id = $1 and id {in:$2}
    ",
    /// Removes some briefings of an owner.
    DELETE_BRIEFINGS = "
        delete from briefings
        where id in (
            select id
            from briefings
            where owner_id = $1
            limit $2
        )
    ",
    /// Removes an owner's name and keys from the briefings that it wrote.
    CLEAR_AUTHORSHIP = "
        update briefings
        set author_id = null,
            idempotency_key = null,
            idempotency_fingerprint = null
        where author_id = $1
    ",
    /// Removes the row of an anonymous user.
    FORGET = "
        delete from anonymous_users
        where owner_id = $1
    ",
}

impl Storage {
    /// Stores the visit of an anonymous user who may leave data behind.
    pub async fn remember_anonymous(&self, owner: &str) -> Result<(), Error> {
        self.database.write::<(String,)>("remember an anonymous user", REMEMBER, args![owner]).await.map(drop)
    }

    /// Stores the visit of an anonymous user with data, and returns whether the user has any.
    pub async fn see_anonymous(&self, owner: &str) -> Result<bool, Error> {
        let noted = self.database.write::<(String,)>("note that an anonymous user is here", SEE, args![owner]).await?;
        Ok(!noted.is_empty())
    }

    /// Returns anonymous users who were absent for this time, the longest absence first.
    pub async fn absent_anonymous(&self, absence: Duration, limit: usize) -> Result<Vec<String>, Error> {
        let absent = self
            .database
            .fetch_all::<(String,)>("look for absent anonymous users", ABSENT, args![absence, limit])
            .await?;
        Ok(absent.into_iter().map(|row| row.0).collect())
    }

    /// Returns the number of the owner's conversations.
    pub async fn count_conversations(&self, owner: &str) -> Result<usize, Error> {
        let count =
            self.database.fetch_optional::<(i64,)>("count conversations", COUNT_CONVERSATIONS, args![owner]).await?;
        Ok(count.map_or(0, |row| row.0 as usize))
    }

    /// Removes a part of the owner's data; the caller repeats it until nothing is left. It first ends each unfinished
    /// run by the write rule, so that a worker writes nothing after it.
    pub async fn erase_some(&self, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
        retried(|| self.try_erase(owner, erasure)).await
    }

    async fn try_erase(&self, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
        let erase = async |tx: &mut Tx| Ok(Commit(erase(tx, owner, erasure).await?));
        self.database.transact("erase an owner's data", erase).await
    }

    /// Moves all data of one owner to another, in one transaction, and returns the number of moved visible
    /// conversations. A quota of the new owner may refuse it. A conversation loses its handle, and a run its
    /// idempotency key, if the new owner has an equal one.
    pub async fn move_owner(&self, from: &str, to: &str, quotas: &Quotas, others: OtherQuotas) -> Result<usize, Error> {
        for _ in 1..TRIES {
            match self.try_move(from, to, quotas, others).await {
                Err(error) if error.is_unique_violation() || error.is_conflict() => {}
                moved => return moved,
            }
        }
        self.try_move(from, to, quotas, others).await
    }

    async fn try_move(&self, from: &str, to: &str, quotas: &Quotas, others: OtherQuotas) -> Result<usize, Error> {
        let move_all = async |tx: &mut Tx| {
            lock_workspaces(tx, vec![from, to]).await?;
            lock_rows(tx, from).await?;
            let quotas = quotas_of_move(tx, from, to, quotas).await?;
            let shown = move_rows(tx, from, to).await?;
            move_workspace(tx, from, to, others.workspace).await?;
            move_knowledge(tx, from, to, others.knowledge).await?;
            move_files(tx, from, to, others.files).await?;
            move_memories(tx, from, to, others.memories).await?;
            quota::keep_within(tx, to, quotas).await?;
            Ok(Commit(shown))
        };
        self.database.transact("move an owner's data to another", move_all).await
    }
}

async fn lock_rows(tx: &mut Tx, from: &str) -> Result<(), Error> {
    // Order matters: an erasure also locks the user's row and then the conversations, so the two cannot deadlock. The
    // transaction locks conversations before runs, and no message can join them after this.
    tx.fetch_all::<(String,)>(LOCK_USER, args![from]).await?;
    let conversations = tx.fetch_all::<(Uuid,)>(LOCK_CONVERSATIONS, args![from]).await?;
    lock_running(tx, conversations.into_iter().map(|(id,)| id).collect()).await
}

/// Returns the quotas that apply to a move: those of which it moves something. Fails before any write if one of them
/// refuses the move.
async fn quotas_of_move(tx: &mut Tx, from: &str, to: &str, quotas: &Quotas) -> Result<Quotas, Error> {
    let brings = quota::usage(tx, from, *quotas).await?;
    let own = quota::usage(tx, to, *quotas).await?;
    let quotas =
        Quotas { runs: quotas.runs.filter(|_| brings.runs > 0), bytes: quotas.bytes.filter(|_| brings.bytes > 0) };
    let together = OwnerUsage { runs: brings.runs + own.runs, bytes: brings.bytes + own.bytes };
    match quota::exceeded(quotas, together) {
        Some(exceeded) => Err(tx.refused_by(exceeded)),
        None => Ok(quotas),
    }
}

async fn move_rows(tx: &mut Tx, from: &str, to: &str) -> Result<usize, Error> {
    let moved = tx.fetch_all::<(Uuid, bool)>(MOVE_CONVERSATIONS, args![from, to]).await?;
    let shown = moved.iter().filter(|(_, is_shown)| *is_shown).count();
    let ids: Vec<Uuid> = moved.into_iter().map(|(id, _)| id).collect();
    tx.execute(MOVE_RUNS, args![from, to, ids.clone()]).await?;
    tx.execute(MOVE_MESSAGES, args![from, to, ids.clone()]).await?;
    tx.execute(MOVE_DECISIONS, args![from, to, ids]).await?;
    tx.execute(MOVE_BRIEFINGS, args![from, to]).await?;
    tx.execute(MOVE_AUTHORSHIP, args![from, to]).await?;
    move_profile(tx, from, to).await?;
    tx.execute(FORGET_WITHOUT_CONVERSATIONS, args![from]).await?;
    Ok(shown)
}

async fn erase(tx: &mut Tx, owner: &str, erasure: Erasure) -> Result<ErasureStep, Error> {
    lock_workspaces(tx, vec![owner]).await?;
    // Order matters: a move to another owner also locks this row first, so the two cannot deadlock.
    let absence = match erasure {
        Erasure::Wanted => None,
        Erasure::Forgotten(absence) => Some(absence),
    };
    let args = args![owner, absence.map(|time| time.as_millis() as i64)];
    let goes = tx.fetch_optional::<(String, bool)>(LOCK_ABSENT, args).await?.is_some_and(|(_, goes)| goes);
    if absence.is_some() && !goes {
        return Ok(ErasureStep { is_done: true, ..ErasureStep::default() });
    }
    let conversations = tx.fetch_all::<(Uuid,)>(LOCK_SOME_CONVERSATIONS, args![owner, CONVERSATIONS]).await?;
    let conversations: Vec<Uuid> = conversations.into_iter().map(|row| row.0).collect();
    lock_running(tx, conversations.clone()).await?;
    let mut ended = Vec::new();
    for conversation in &conversations {
        for run in unfinished_runs(tx, *conversation).await? {
            ended.extend(cancel_in_conversation(tx, run.id, ApprovalStatus::Cancelled).await?);
        }
    }
    let runs = remove(tx, owner, &conversations).await?;
    let is_done = (conversations.len() as i64) < CONVERSATIONS && remove_rest(tx, owner).await?;
    Ok(ErasureStep { ended, runs, conversations, is_done })
}

/// Locks the running runs of conversations. Order matters: the settlement of a worker's death also locks runs in the
/// order of their ids, so the two cannot deadlock.
async fn lock_running(tx: &mut Tx, conversations: Vec<Uuid>) -> Result<(), Error> {
    tx.fetch_all::<(Uuid,)>(LOCK_RUNNING, args![conversations]).await.map(drop)
}

/// Removes conversations with their messages and runs, and returns those runs.
async fn remove(tx: &mut Tx, owner: &str, conversations: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let ids = conversations.to_vec();
    let runs = tx.fetch_all::<(Uuid,)>(RUNS, args![ids.clone()]).await?;
    tx.execute(DELETE_CHECKPOINTS, args![ids.clone()]).await?;
    tx.execute(DELETE_CONVERSATIONS, args![owner, ids]).await?;
    Ok(runs.into_iter().map(|row| row.0).collect())
}

/// Removes some of the other data, and returns whether nothing is left.
async fn remove_rest(tx: &mut Tx, owner: &str) -> Result<bool, Error> {
    if tx.execute(DELETE_BRIEFINGS, args![owner, BRIEFINGS]).await? as i64 == BRIEFINGS {
        return Ok(false);
    }
    tx.execute(CLEAR_AUTHORSHIP, args![owner]).await?;
    delete_profile(tx, owner).await?;
    delete_workspace(tx, owner).await?;
    delete_memories_of(tx, owner).await?;
    // Order matters: the next step of an erasure finds the owner by the row of an anonymous user.
    if !delete_some_knowledge(tx, owner).await? || !delete_some_files(tx, owner).await? {
        return Ok(false);
    }
    tx.execute(FORGET, args![owner]).await?;
    Ok(true)
}
