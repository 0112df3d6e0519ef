//! Superseding: messages that are no longer part of their conversation, and the runs that wrote them.
//!
//! They are kept, and no context has them any more. Everything here happens under the conversation's lock.

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Said,
    database::{Tx, args},
    rows::{MessageRow, message_columns},
};
use crate::message::{Message, Role};

/// A place between two messages of a conversation, in the order in which the model reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    turn: i64,
    position: i64,
}

impl Cut {
    /// Whether the answer of the run at this place of the queue comes after it.
    pub const fn covers(&self, run_position: i64) -> bool {
        run_position >= self.turn
    }
}

/// Where the conversation is cut so that this message can be said in another way; `None` if it has no such message.
pub(super) async fn cut_at(
    tx: &mut Tx,
    conversation_id: Uuid,
    message_id: Uuid,
    said: &Said,
) -> Result<Option<Cut>, sqlx::Error> {
    #[derive(FromRow)]
    struct Row {
        turn: i64,
        position: i64,
        #[sqlx(try_from = "String")]
        role: Role,
    }
    let sql = "select turn, position, role from chat_messages where id = $1 and conversation_id = $2 and superseded_at is null";
    let row = tx.fetch_optional::<Row>(sql, args![message_id, conversation_id]).await?;
    Ok(row.map(|Row { turn, position, role }| match said {
        // Who wants another answer keeps the question.
        Said::Again { .. } if role == Role::User => Cut { turn, position: position + 1 },
        _ => Cut { turn, position },
    }))
}

/// Supersedes every message behind the cut, and every run whose answer is or will be there.
pub(super) async fn everything_from(tx: &mut Tx, conversation_id: Uuid, cut: Cut) -> Result<(), sqlx::Error> {
    let sql = "update chat_messages set superseded_at = {now} where conversation_id = $1 and superseded_at is null and (turn, position) >= ($2, $3)";
    tx.execute(sql, args![conversation_id, cut.turn, cut.position]).await?;
    let sql = "update agent_runs set superseded_at = {now} where conversation_id = $1 and superseded_at is null and position >= $2";
    tx.execute(sql, args![conversation_id, cut.turn]).await.map(drop)
}

/// Supersedes what these runs were asked, and what they say.
pub(super) async fn turns_of(tx: &mut Tx, runs: Vec<Uuid>) -> Result<(), sqlx::Error> {
    let sql = "update chat_messages set superseded_at = {now} where superseded_at is null \
               and (run_id {in:$1} or id in (select input_message_id from agent_runs where id {in:$1}))";
    tx.execute(sql, args![runs.clone()]).await?;
    let sql = "update agent_runs set superseded_at = {now} where superseded_at is null and id {in:$1}";
    tx.execute(sql, args![runs]).await.map(drop)
}

/// The newest message of the dialogue.
pub(super) async fn last_said(tx: &mut Tx, conversation_id: Uuid) -> Result<Option<Message>, sqlx::Error> {
    let sql = concat!(
        "select ",
        message_columns!(),
        " from chat_messages m where m.conversation_id = $1 and m.superseded_at is null and m.role <> 'system' ",
        "order by m.turn desc, m.position desc limit 1"
    );
    Ok(tx.fetch_optional::<MessageRow>(sql, args![conversation_id]).await?.map(Message::from))
}
