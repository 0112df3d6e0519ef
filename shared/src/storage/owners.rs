//! Owners: the last visit of anonymous ones, and the move of an owner's data to another. `erasure` removes it.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Error, Storage,
    file_removals::move_files,
    knowledge_rows::move_knowledge,
    memory_rows::move_memories,
    quota::{self, OwnerUsage},
    run::lock_running,
    sql::{Commit, Tx, args, statements},
    user_profiles::move_profile,
    workspace_rows::{lock_workspaces, move_workspace},
};
use crate::quotas::{OtherQuotas, Quotas};

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
            caller_group = null,
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
