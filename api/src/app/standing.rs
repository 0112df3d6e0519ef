//! The standing conversation with an agent, and the cards of briefings in it.

use holdfast_shared::conversation::{Conversation, Handle};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

/// Attempts to add a card while another request deletes the conversation.
const CARD_TRIES: usize = 5;

impl App {
    /// Returns the owner's standing conversation with an agent, and creates it if necessary. `None` if there is no such
    /// agent.
    pub async fn standing_conversation(&self, owner: &str, agent_id: Uuid) -> Result<Option<Conversation>, Problem> {
        Ok(self.storage.conversation_by_handle(self.account(owner), &Handle::Agent(agent_id)).await?)
    }

    /// Adds a briefing's card to the standing conversation with its agent. Returns the ids of the conversation and the
    /// card's message.
    pub async fn add_briefing_card(&self, caller: &Caller, briefing_id: Uuid) -> Result<(Uuid, Uuid), Problem> {
        let not_found = || Problem::briefing_not_found(briefing_id);
        let owner = caller.owner.as_str();
        let briefing = self.storage.briefing(owner, briefing_id).await?.ok_or_else(not_found)?;
        let agent_id = briefing.agent_id;
        self.expect_access(caller, agent_id).await?;
        for _ in 0..CARD_TRIES {
            let conversation = self.standing_conversation(owner, agent_id).await?;
            let conversation_id = conversation.ok_or_else(|| Problem::agent_not_found(agent_id))?.id;
            if let Some(card) = self.storage.add_card(self.account(owner), conversation_id, briefing.clone()).await? {
                return Ok((conversation_id, card));
            }
        }
        tracing::error!(briefing.id = %briefing_id, "failed to add a briefing's card: other requests kept deleting its conversation");
        Err(Problem::internal())
    }
}
