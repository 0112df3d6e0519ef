//! Restores another version of a message, and forks a conversation.

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    conversation::Conversation,
    message::Message,
    storage::RestoreOutcome,
    turns::{NoTurn, TurnPermit},
};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, in_flight::LimitKey, problem::Problem};

/// Concurrent restorations and forks in this process, at most one per caller. Each writes the rows of a whole branch, and
/// SQLite has one writer.
pub(super) const RESTORES: usize = 2;

/// Time-out of a restoration or fork that waits for others.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

impl App {
    /// Restores a superseded version of a message in the caller's conversation, which supersedes the current version.
    /// Fails if the message is unknown, if no version of it is current, or if no turn becomes free in time.
    pub async fn restore_message(
        self: &Arc<Self>,
        caller: &Caller,
        conversation_id: Uuid,
        message_id: Uuid,
    ) -> Result<Message, Problem> {
        let turn = self.turn_to_restore(caller).await?;
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        // A client that hangs up does not end the transaction, so the transaction's task owns the turn.
        let restored = self.to_completion(async move {
            let restored = app.storage.restore_message(&owner, conversation_id, message_id).await;
            drop(turn);
            Ok(match restored? {
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
            RestoreOutcome::Done { .. } | RestoreOutcome::ConversationNotFound => {
                Problem::conversation_not_found(conversation_id)
            }
        })
    }
    /// Creates a conversation that continues from a checkpoint of the caller's conversation; `None` if there is no such
    /// checkpoint. Fails if the quota has no room, or if no turn becomes free in time.
    pub async fn fork_conversation(
        self: &Arc<Self>,
        caller: &Caller,
        conversation_id: Uuid,
        checkpoint_id: Uuid,
    ) -> Result<Option<Conversation>, Problem> {
        let turn = self.turn_to_restore(caller).await?;
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        let fork = async move {
            let forked = app.storage.fork_conversation(app.account(&owner), conversation_id, checkpoint_id).await;
            drop(turn);
            Ok(forked?)
        };
        self.to_completion(fork).await
    }

    async fn turn_to_restore(&self, caller: &Caller) -> Result<TurnPermit, Problem> {
        let turn = self.restores.take(&LimitKey::of(caller).to_string(), TURN_TIMEOUT).await;
        turn.map_err(|no_turn| match no_turn {
            NoTurn::OfCaller => Problem::too_many_restores(),
            NoTurn::OfAll => Problem::restore_busy(),
        })
    }
}
