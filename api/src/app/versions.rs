//! Restores another version of a message.

use std::{sync::Arc, time::Duration};

use holdfast_shared::{message::Message, storage::RestoreOutcome, turns::NoTurn};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, in_flight::LimitKey, problem::Problem};

/// Concurrent restorations in this process, at most one per caller. Each rewrites the rows of a whole branch, and SQLite has
/// one writer.
pub(super) const RESTORES: usize = 2;

/// Time-out of a restoration that waits for other restorations.
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
        let turn = self.restores.take(&LimitKey::of(caller).to_string(), TURN_TIMEOUT).await;
        let turn = turn.map_err(|no_turn| match no_turn {
            NoTurn::OfCaller => Problem::too_many_restores(),
            NoTurn::OfAll => Problem::restore_busy(),
        })?;
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
}
