//! Adds messages to a conversation without a run, after all others. They are in its history like others: lists, edits, forks and
//! the context of later runs have them.

use serde_json::json;
use uuid::Uuid;

use super::{
    Error, Storage, quota,
    run::unfinished_runs,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{file::UserContent, message::Role, quotas::Account};

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

/// The outcome of adding messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddOutcome {
    /// All messages are stored.
    Added,
    /// The conversation has an unfinished run, whose answer would come later.
    Busy,
    /// Another message of the conversation has one of the client ids.
    MessageExists,
    /// The owner has no such conversation.
    ConversationNotFound,
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

impl Storage {
    /// Adds messages to the owner's conversation, in their order, unless it has an unfinished run. Fails if the owner's quota has
    /// no room.
    pub async fn add_messages(
        &self,
        account: impl Into<Account<'_>>,
        conversation_id: Uuid,
        messages: &[AddedMessage],
    ) -> Result<AddOutcome, Error> {
        let account = account.into();
        let add = async |tx: &mut Tx| {
            let bytes: usize = messages.iter().map(|message| quota::MESSAGE_ROW + message.content.stored_bytes()).sum();
            let args = args![conversation_id, account.owner, messages.len() as i64, bytes];
            let Some((before,)) = tx.fetch_optional::<(i64,)>(TAKE_POSITIONS, args).await? else {
                return Ok(RollBack(AddOutcome::ConversationNotFound));
            };
            if !unfinished_runs(tx, conversation_id).await?.is_empty() {
                return Ok(RollBack(AddOutcome::Busy));
            }
            for (position, message) in (before + 1..).zip(messages) {
                insert(tx, account.owner, conversation_id, position, message).await?;
            }
            quota::keep_within(tx, account.owner, account.quotas()).await?;
            Ok(Commit(AddOutcome::Added))
        };
        match self.database.transact("add messages to a conversation", add).await {
            Err(error) if error.is_unique_violation() => Ok(AddOutcome::MessageExists),
            added => added,
        }
    }
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
