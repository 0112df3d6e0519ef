//! Adding messages to a conversation without a run.

use holdfast_shared::storage::{AddOutcome, AddedMessage, Target};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

impl App {
    /// Adds messages to the caller's conversation, after all others. The caller's write is admitted already. Fails if the
    /// conversation has an unfinished run, or if a limit forbids a message.
    pub async fn add_messages(
        &self,
        caller: &Caller,
        conversation_id: Uuid,
        messages: Vec<AddedMessage>,
    ) -> Result<(), Problem> {
        let target = Target::Existing(conversation_id);
        for message in &messages {
            self.check_content(&message.content)?;
        }
        self.expect_access_to(caller, &target).await?;
        for message in &messages {
            self.expect_taken(caller, &target, &message.content).await?;
        }
        let account = self.account(&caller.owner);
        match self.storage.add_messages(account, conversation_id, &messages).await? {
            AddOutcome::Added => Ok(()),
            AddOutcome::Busy => Err(Problem::thread_busy(conversation_id)),
            AddOutcome::MessageExists => Err(Problem::message_exists(&conversation_id.to_string())),
            AddOutcome::ConversationNotFound => Err(Problem::conversation_not_found(conversation_id)),
        }
    }
}
