//! The place of a new message in a thread: clients that send their whole list say by its ids after which message the new one stands.

use std::sync::Arc;

use holdfast_shared::{conversation::Conversation, message::Role};
use uuid::Uuid;

use crate::{app::App, auth::Caller, problem::Problem};

/// The ids by which a client names its newest message and the one before it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedPlace<'a> {
    /// The name of the newest message.
    pub own: Option<&'a str>,
    /// The name of the message before it, if the request has that.
    pub before: Option<&'a str>,
}

/// Returns the message that a user's new one replaces, with all that follows: its own earlier version, or else what follows the
/// message before it. A name that the thread does not know says nothing about the place.
///
/// A client that has gone back to an older version names a message of that version, which the thread takes back first.
pub async fn replaced_at(
    app: &Arc<App>,
    caller: &Caller,
    thread: Option<&Conversation>,
    place: NamedPlace<'_>,
) -> Result<Option<Uuid>, Problem> {
    let Some(thread) = thread else { return Ok(None) };
    if let Some(own) = place.own
        && let Some(earlier) = app.storage().message_called(&caller.owner, thread.id, own).await?
    {
        return Ok((earlier.role == Role::User).then_some(earlier.id));
    }
    let Some(before) = place.before else { return Ok(None) };
    let (storage, owner) = (app.storage(), &caller.owner);
    if let Some(following) = storage.message_after(owner, thread.id, before).await? {
        return Ok(Some(following));
    }
    if let Some(older) = storage.superseded_with(owner, thread.id, before).await? {
        match app.restore_message(caller, thread.id, older).await {
            Ok(_) => return Ok(storage.message_after(owner, thread.id, before).await?),
            // No current message has the place of that version.
            Err(problem) if problem.code == "message_not_restorable" || problem.code == "message_not_found" => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(None)
}
