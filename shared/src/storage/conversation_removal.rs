//! The removal of conversations, piece by piece: first the parts of their runs, then the runs, then their own parts, and at last
//! the conversations.
//!
//! Invariant: the conversations are deleted and their runs have ended, so nothing reads or writes the rows that are left.

use uuid::Uuid;

use super::{
    Error,
    removals::remove_some,
    sql::{Piece, Sql, Tx, args, statements},
};

/// The rows that a piece has removed.
#[derive(Debug, Default)]
pub(super) struct RemovedConversations {
    /// Runs, whose logs the caller removes.
    pub runs: Vec<Uuid>,
    /// Conversations.
    pub conversations: Vec<Uuid>,
}

statements! {
    /// Removes some events of runs.
    REMOVE_EVENTS = remove_some!(
        "run_events", "run_id, last_id", "run_id {in:$1}", "octet_length(body)"
    ),
    /// Removes some messages of traces.
    REMOVE_TRACES = remove_some!(
        "agent_run_messages", "run_id, position", "run_id {in:$1}",
        "octet_length(content) + coalesce(octet_length(cast(tool_calls as text)), 0)"
    ),
    /// Removes some tool calls.
    REMOVE_CALLS = remove_some!(
        "agent_run_tool_calls", "run_id, call_id", "run_id {in:$1}",
        "octet_length(cast(input as text)) + coalesce(octet_length(output), 0)"
    ),
    /// Removes some questions to humans.
    REMOVE_APPROVALS = remove_some!(
        "agent_run_approvals", "id", "run_id {in:$1}",
        "octet_length(cast(input as text)) + coalesce(octet_length(cast(edited_input as text)), 0)"
    ),
    /// Removes some notes of passages that runs have used.
    REMOVE_USED_PASSAGES = "
        delete from run_passages
        where (run_id, number) in (
            select run_id, number
            from run_passages
            where run_id {in:$1}
            limit $2
        )
    ",
    /// Removes some plans with their steps.
    REMOVE_PLANS = "
        delete from agent_plans
        where id in (
            select id
            from agent_plans
            where run_id {in:$1}
            limit $2
        )
    ",
    /// Returns some runs of conversations.
    SOME_RUNS = "
        select id
        from agent_runs
        where conversation_id {in:$1}
        limit $2
    ",
    /// Removes runs with what is left of them.
    REMOVE_RUNS = "
        delete from agent_runs
        where id {in:$1}
    ",
    /// Removes some messages of conversations.
    REMOVE_MESSAGES = remove_some!(
        "chat_messages", "id", "conversation_id {in:$1}", "octet_length(content)"
    ),
    /// Removes some checkpoints of conversations.
    REMOVE_CHECKPOINTS = "
        delete from agent_run_checkpoints
        where (conversation_id, id) in (
            select conversation_id, id
            from agent_run_checkpoints
            where conversation_id {in:$1}
            limit $2
        )
    ",
    /// Removes some notes of files that messages name.
    REMOVE_FILE_USES = "
        delete from file_uses
        where (file_id, conversation_id) in (
            select file_id, conversation_id
            from file_uses
            where conversation_id {in:$1}
            limit $2
        )
    ",
    /// Removes conversations with what is left of them.
    REMOVE_CONVERSATIONS = "
        delete from chat_conversations
        where id {in:$1}
    ",
}

/// The parts of a run whose rows may be large.
const LARGE_PARTS_OF_RUN: [Sql; 4] = [REMOVE_EVENTS, REMOVE_TRACES, REMOVE_CALLS, REMOVE_APPROVALS];

/// The other parts of a run that may have many rows.
const PARTS_OF_RUN: [Sql; 2] = [REMOVE_USED_PASSAGES, REMOVE_PLANS];

const PARTS_OF_CONVERSATION: [Sql; 2] = [REMOVE_CHECKPOINTS, REMOVE_FILE_USES];

/// Removes a piece of these conversations.
pub(super) async fn remove_conversations(
    tx: &mut Tx,
    piece: &mut Piece,
    conversations: Vec<Uuid>,
) -> Result<RemovedConversations, Error> {
    let mut removed = RemovedConversations::default();
    if conversations.is_empty() {
        return Ok(removed);
    }
    let most = piece.size(REMOVE_RUNS).rows();
    let runs = tx.fetch_all::<(Uuid,)>(SOME_RUNS, args![conversations.clone(), most]).await?;
    let runs: Vec<Uuid> = runs.into_iter().map(|row| row.0).collect();
    if !runs.is_empty() {
        if !remove_parts(tx, piece, &LARGE_PARTS_OF_RUN, &PARTS_OF_RUN, &runs).await? {
            tx.execute(REMOVE_RUNS, args![runs.clone()]).await?;
            piece.note(REMOVE_RUNS, runs.len(), 0);
            removed.runs = runs;
        }
        return Ok(removed);
    }
    if !remove_parts(tx, piece, &[REMOVE_MESSAGES], &PARTS_OF_CONVERSATION, &conversations).await? {
        tx.execute(REMOVE_CONVERSATIONS, args![conversations.clone()]).await?;
        piece.note(REMOVE_CONVERSATIONS, conversations.len(), 0);
        removed.conversations = conversations;
    }
    Ok(removed)
}

/// Removes a piece of the events of runs. Returns whether there was one.
pub(super) async fn remove_events(tx: &mut Tx, piece: &mut Piece, runs: &[Uuid]) -> Result<bool, Error> {
    piece.write_bytes(tx, REMOVE_EVENTS, args![runs.to_vec()]).await
}

/// Removes rows of the first table that has any of these ids. Returns whether there was one.
async fn remove_parts(
    tx: &mut Tx,
    piece: &mut Piece,
    large: &[Sql],
    small: &[Sql],
    ids: &[Uuid],
) -> Result<bool, Error> {
    for sql in large {
        if piece.write_bytes(tx, *sql, args![ids.to_vec()]).await? {
            return Ok(true);
        }
    }
    for sql in small {
        if piece.write(tx, *sql, args![ids.to_vec()]).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
