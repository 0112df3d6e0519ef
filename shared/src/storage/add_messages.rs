//! Adds messages to a conversation without a run, after all others. They are in its history like others: lists, edits, forks and
//! the context of later runs have them.

use uuid::Uuid;

use super::{
    AddedMessage, Error, Storage, quota,
    run::{insert_from, take_positions, unfinished_runs},
    sql::{Commit, RollBack, Tx},
};
use crate::quotas::Account;

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
            let Some(before) = take_positions(tx, account.owner, conversation_id, messages).await? else {
                return Ok(RollBack(AddOutcome::ConversationNotFound));
            };
            if !unfinished_runs(tx, conversation_id).await?.is_empty() {
                return Ok(RollBack(AddOutcome::Busy));
            }
            insert_from(tx, account.owner, conversation_id, before + 1, messages).await?;
            quota::keep_within(tx, account.owner, account.quotas()).await?;
            Ok(Commit(AddOutcome::Added))
        };
        match self.database.transact("add messages to a conversation", add).await {
            Err(error) if error.is_unique_violation() => Ok(AddOutcome::MessageExists),
            added => added,
        }
    }
}
