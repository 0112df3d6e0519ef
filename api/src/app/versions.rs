//! Restores another version of a message.

use std::sync::Arc;

use holdfast_shared::{message::Message, storage::RestoreOutcome};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

impl App {
    /// Restores a superseded version of a message in the caller's conversation, which supersedes the current version.
    /// Fails if the message is unknown, or if no version of it is current.
    pub async fn restore_message(
        self: &Arc<Self>,
        caller: &Caller,
        conversation_id: Uuid,
        message_id: Uuid,
    ) -> Result<Message, Problem> {
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        let restored = self.to_completion(async move {
            let restored = app.storage.restore_message(&owner, conversation_id, message_id).await?;
            Ok(match restored {
                RestoreOutcome::Done { message, ended, cancel_requested } => {
                    app.follow_up(ended, cancel_requested);
                    Ok(*message)
                }
                refused => Err(refused),
            })
        });
        restored.await?.map_err(|refused| match refused {
            RestoreOutcome::NoPlace => Problem::message_not_restorable(message_id, conversation_id),
            RestoreOutcome::MessageNotFound => Problem::message_not_found(message_id, &conversation_id.to_string()),
            _ => Problem::conversation_not_found(conversation_id),
        })
    }
}
