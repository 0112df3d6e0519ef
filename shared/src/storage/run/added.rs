//! Messages that no run writes or answers: SUBMIT stores the history that a client brings, and `add_messages` adds others.

use serde_json::json;
use uuid::Uuid;

use crate::storage::{
    Error, quota,
    sql::{Tx, args, statements},
};
use crate::{file::UserContent, message::Role};

/// A message that no run writes or answers.
#[derive(Debug, Clone)]
pub struct AddedMessage {
    /// UUIDv7.
    pub id: Uuid,
    /// The id that the client gave its message; unique in the conversation.
    pub client_id: Option<String>,
    /// `user` or `assistant`.
    pub role: Role,
    /// The text, with its files.
    pub content: UserContent,
}

impl AddedMessage {
    /// Returns the bytes that count for the quota, roughly.
    pub fn bytes(&self) -> usize {
        quota::MESSAGE_ROW + self.content.stored_bytes()
    }
}

statements! {
    /// Locks an owner's conversation, and takes its next `$3` positions for messages of `$4` bytes. Returns the last position before
    /// them.
    TAKE_POSITIONS = "
        update chat_conversations
        set last_position = last_position + $3,
            last_message_at = {now},
            activity_at = {now},
            bytes = bytes + $4
        where id = $1
          and owner_id = $2
          and deleted_at is null
        returning last_position - $3
    ",
    /// Adds a message, which is a turn of its own, to the current branch of its conversation.
    INSERT = "
        insert into chat_messages (
            id, conversation_id, owner_id, position, turn, role, content, client_id, attachments,
            status, branch, created_at
        )
        select $1, id, owner_id, $3, $3, $4, $5, $6, $7, 'complete', branch, {now}
        from chat_conversations
        where id = $2
    ",
    /// Notes that the conversation names files of its owner.
    USE_FILES = "
        insert into file_uses (file_id, conversation_id)
        select f.id, $1
        from files f
        where f.owner_id = $2 and f.id {in:$3}
        on conflict (file_id, conversation_id) do nothing
    ",
}

/// Locks an owner's conversation, and takes positions for these messages. Returns the last position before them; `None` without such
/// a conversation.
pub async fn take_positions(
    tx: &mut Tx,
    owner: &str,
    conversation_id: Uuid,
    messages: &[AddedMessage],
) -> Result<Option<i64>, Error> {
    let bytes: usize = messages.iter().map(AddedMessage::bytes).sum();
    let args = args![conversation_id, owner, messages.len() as i64, bytes];
    Ok(tx.fetch_optional::<(i64,)>(TAKE_POSITIONS, args).await?.map(|row| row.0))
}

/// Adds messages to a conversation from a position on. The caller has taken as many positions.
pub async fn insert_from(
    tx: &mut Tx,
    owner: &str,
    conversation_id: Uuid,
    first: i64,
    messages: &[AddedMessage],
) -> Result<(), Error> {
    for (position, message) in (first..).zip(messages) {
        insert(tx, owner, conversation_id, position, message).await?;
    }
    Ok(())
}

async fn insert(
    tx: &mut Tx,
    owner: &str,
    conversation_id: Uuid,
    position: i64,
    message: &AddedMessage,
) -> Result<(), Error> {
    let UserContent { text, attachments, .. } = &message.content;
    let args = args![
        message.id,
        conversation_id,
        position,
        message.role.as_str(),
        text.as_str(),
        message.client_id.clone(),
        (!attachments.is_empty()).then(|| json!(attachments))
    ];
    tx.execute(INSERT, args).await?;
    if !attachments.is_empty() {
        let files: Vec<Uuid> = attachments.iter().map(|attachment| attachment.file_id).collect();
        tx.execute(USE_FILES, args![conversation_id, owner, files]).await?;
    }
    Ok(())
}
