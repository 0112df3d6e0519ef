//! The standing conversation with an agent, and briefings that are talked about in it.

use holdfast_shared::conversation::{Conversation, Handle};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

/// Times that a card is added to a conversation which somebody deletes at that very moment.
const CARD_TRIES: usize = 5;

impl App {
    /// The owner's standing conversation with an agent, made if there is none.
    pub async fn standing_conversation(&self, owner: &str, agent_id: Uuid) -> Result<Option<Conversation>, Problem> {
        Ok(self.storage.conversation_by_handle(self.account(owner), &Handle::Agent(agent_id)).await?)
    }

    /// Adds a briefing's card to the standing conversation with its agent; answers the conversation and the card's message.
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
        tracing::error!(briefing.id = %briefing_id, "the conversation of a briefing is deleted again and again");
        Err(Problem::internal())
    }
}
