//! Finds the conversation of a chat's id. Clients choose their own ids, and may also use a conversation's id.

use std::sync::Arc;

use holdfast_shared::{
    conversation::{Conversation, Handle},
    storage::Target,
};
use uuid::Uuid;

use super::request::UiChatBody;
use crate::{
    app::App,
    auth::{Caller, MAX_NAME_CHARS, is_name},
    extract,
    problem::Problem,
    run_request::default_target,
    thread::find_thread,
};

/// The chat that a request addresses.
pub struct ChatTarget {
    /// The client's name for the chat; empty if the body has none.
    pub name: String,
    pub target: Target,
    /// `None` if the chat has no messages yet.
    pub conversation: Option<Conversation>,
}

impl ChatTarget {
    pub async fn of_body(app: &Arc<App>, caller: &Caller, body: &UiChatBody) -> Result<Self, Problem> {
        let agent_id = body.agent().map(extract::id).transpose().map_err(Problem::agent_not_found)?;
        let Some(name) = body.id.clone() else {
            return Ok(Self { name: String::new(), target: default_target(caller, agent_id), conversation: None });
        };
        if !is_name(&name) {
            return Err(Problem::invalid_body(format!("The id of a chat has 1 to {MAX_NAME_CHARS} characters.")));
        }
        let conversation = find_thread(app, caller, &name).await?;
        // A message for a conversation that was deleted meanwhile begins no other one.
        if body.must_exist && conversation.is_none() {
            return Err(Problem::conversation_not_found(&name));
        }
        let target = match &conversation {
            Some(conversation) if extract::id(&name) == Ok(conversation.id) => Target::Existing(conversation.id),
            _ => Target::Named { handle: Handle::Chat(name.clone()), agent_id },
        };
        Ok(Self { name, target, conversation })
    }

    /// Returns the id of the chat's conversation. Fails with `conversation_not_found` if the chat has none.
    pub fn conversation_id(&self) -> Result<Uuid, Problem> {
        let id = self.conversation.as_ref().map(|conversation| conversation.id);
        id.ok_or_else(|| Problem::conversation_not_found(&self.name))
    }
}
