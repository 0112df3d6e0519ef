//! Superseding: messages that are no longer part of their conversation, and the runs that wrote them.
//!
//! Storage keeps them, but no later context has them. Each function needs the conversation's lock.

use sqlx::FromRow;
use uuid::Uuid;

use super::MessageInput;
use crate::message::{Message, Role};
use crate::storage::{
    Error,
    rows::{MessageRow, message_columns},
    sql::{Tx, args, statements},
};

/// A point between two messages of a conversation, in the order of the model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct SupersedePoint {
    turn: i64,
    position: i64,
}

/// A message that a new version replaces.
#[derive(Debug, Clone, Copy)]
pub struct Replacement {
    pub point: SupersedePoint,
    /// The first version; `None` if the message is new.
    pub version_of: Option<Uuid>,
}

impl SupersedePoint {
    /// Returns whether the answer of the run at this queue position comes after the point.
    pub const fn covers(&self, run_position: i64) -> bool {
        run_position >= self.turn
    }
}

statements! {
    /// Returns the place and the first version of a message, and the first version of its answer.
    REPLACED = "
        select m.turn, m.position, m.role, coalesce(m.version_of, w.version_of, m.id) as first,
            (
                select coalesce(r.version_of, r.output_message_id)
                from agent_runs r
                where r.conversation_id = $2
                  and r.input_message_id = m.id
                  and r.superseded_at is null
                order by r.position desc
                limit 1
            ) as first_answer
        from chat_messages m
        left join agent_runs w on w.id = m.run_id and w.output_message_id = m.id
        where m.id = $1
          and m.conversation_id = $2
          and m.superseded_at is null
    ",
    /// Supersedes the messages of a conversation from a point on.
    SUPERSEDE_MESSAGES = "
        update chat_messages
        set superseded_at = {now}, superseded_in = $4
        where conversation_id = $1
          and superseded_at is null
          and (turn, position) >= ($2, $3)
    ",
    /// Supersedes the runs of a conversation from a position on.
    SUPERSEDE_RUNS = "
        update agent_runs
        set superseded_at = {now}, superseded_in = $3
        where conversation_id = $1
          and superseded_at is null
          and position >= $2
    ",
    /// Begins a branch at a point of the current branch.
    INSERT_BRANCH = "
        insert into conversation_branches (id, conversation_id, parent, turn, position)
        select $2, id, branch, $3, $4
        from chat_conversations
        where id = $1
    ",
    /// Makes a branch the current one.
    SET_BRANCH = "
        update chat_conversations
        set branch = $2
        where id = $1
    ",
    /// Supersedes the questions and the answers of runs. A question that was added without a run stays.
    SUPERSEDE_TURNS = "
        update chat_messages
        set superseded_at = {now}, superseded_in = $2
        where superseded_at is null
          and (
              run_id {in:$1}
              or run_id is not null
                  and id in (select input_message_id from agent_runs where id {in:$1})
          )
    ",
    /// Supersedes runs.
    SUPERSEDE_THESE_RUNS = "
        update agent_runs
        set superseded_at = {now}, superseded_in = $2
        where superseded_at is null and id {in:$1}
    ",
    /// Returns the newest message of a user or of the assistant.
    LAST_DIALOGUE_MESSAGE = concat!("
        select ", message_columns!(), "
        from chat_messages m
        where m.conversation_id = $1
          and m.superseded_at is null
          and m.role <> 'system'
        order by m.turn desc, m.position desc
        limit 1
    "),
}

/// Returns the message that the input replaces; `None` if the conversation has no such message.
pub async fn replacement_for(
    tx: &mut Tx,
    conversation_id: Uuid,
    message_id: Uuid,
    input: &MessageInput,
) -> Result<Option<Replacement>, Error> {
    #[derive(FromRow)]
    struct Row {
        #[sqlx(flatten)]
        point: SupersedePoint,
        #[sqlx(try_from = "String")]
        role: Role,
        first: Uuid,
        first_answer: Option<Uuid>,
    }
    let row = tx.fetch_optional::<Row>(REPLACED, args![message_id, conversation_id]).await?;
    Ok(row.map(|Row { point, role, first, first_answer }| {
        if matches!(input, MessageInput::Again { .. }) && role == Role::User {
            // The question stays, and the new answer replaces its answer.
            return Replacement {
                point: SupersedePoint { position: point.position + 1, ..point },
                version_of: first_answer,
            };
        }
        Replacement { point, version_of: Some(first) }
    }))
}

/// Supersedes each message after the point, and each run whose answer is or will be there. `change` is the id of this
/// change.
pub async fn everything_from(
    tx: &mut Tx,
    conversation_id: Uuid,
    point: SupersedePoint,
    change: Uuid,
) -> Result<(), Error> {
    tx.execute(SUPERSEDE_MESSAGES, args![conversation_id, point.turn, point.position, change]).await?;
    tx.execute(SUPERSEDE_RUNS, args![conversation_id, point.turn, change]).await.map(drop)
}

/// Begins a branch of the conversation: the rows of its current branch before the point, and then the rows of a new version.
pub async fn begin_branch(
    tx: &mut Tx,
    conversation_id: Uuid,
    point: SupersedePoint,
    branch: Uuid,
) -> Result<(), Error> {
    tx.execute(INSERT_BRANCH, args![conversation_id, branch, point.turn, point.position]).await?;
    tx.execute(SET_BRANCH, args![conversation_id, branch]).await.map(drop)
}

/// Supersedes the questions and the answers of these runs. `change` is the id of this change.
pub async fn turns_of(tx: &mut Tx, runs: Vec<Uuid>, change: Uuid) -> Result<(), Error> {
    tx.execute(SUPERSEDE_TURNS, args![runs.clone(), change]).await?;
    tx.execute(SUPERSEDE_THESE_RUNS, args![runs, change]).await.map(drop)
}

/// Returns the newest message of a user or of the assistant.
pub async fn last_dialogue_message(tx: &mut Tx, conversation_id: Uuid) -> Result<Option<Message>, Error> {
    Ok(tx.fetch_optional::<MessageRow>(LAST_DIALOGUE_MESSAGE, args![conversation_id]).await?.map(Message::from))
}
