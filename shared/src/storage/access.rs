//! Looks up the callers that an agent admits, and the callers that answer a run's questions.

use sqlx::types::Json;
use uuid::Uuid;

use super::{
    Error, Storage, Target,
    sql::{args, statements},
};
use crate::agent::{Access, Approvers};

/// The owner of a run, and the callers that decide about its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRun {
    /// Owner id.
    pub owner: String,
    /// As the run's version of the definition says; the owner for a plain conversation.
    pub approvers: Approvers,
}

/// Selects from an agent's newest definition. It includes deleted agents, because their conversations continue.
macro_rules! select_access {
    ($from:literal) => {
        concat!(
            "
            select v.definition -> 'access'
            from agent_definitions a
            join agent_definition_versions v
                on v.agent_definition_id = a.id and v.version = a.version
            ",
            $from
        )
    };
}

statements! {
    /// Returns the access of an agent.
    ACCESS_OF_AGENT = select_access!("where a.id = $1"),
    /// Returns the access of the agent of an owner's conversation.
    ACCESS_OF_CONVERSATION = select_access!("
        join chat_conversations c on c.agent_definition_id = a.id
        where c.owner_id = $1
          and c.deleted_at is null
          and c.id = $2
    "),
    /// Returns the access of the agent of the conversation with a handle.
    ACCESS_OF_HANDLE = select_access!("
        join chat_conversations c on c.agent_definition_id = a.id
        where c.owner_id = $1
          and c.deleted_at is null
          and c.handle = $2
    "),
    /// Returns the owner and the approvers of a run.
    ASKED_RUN = "
        select r.owner_id, v.definition -> 'approvers'
        from agent_runs r
        join chat_conversations c on c.id = r.conversation_id and c.deleted_at is null
        left join agent_definition_versions v
            on v.agent_definition_id = r.agent_definition_id and v.version = r.agent_version
        where r.id = $1
    ",
}

impl Storage {
    /// Returns the callers that an agent admits. An unknown agent admits each caller, because no caller can use it.
    pub async fn access_of_agent(&self, id: Uuid) -> Result<Access, Error> {
        let row = self
            .database
            .fetch_optional::<(Option<Json<Access>>,)>("read the access of an agent", ACCESS_OF_AGENT, args![id])
            .await?;
        Ok(access(row))
    }

    /// Returns the access of each agent that a run of this target could have: the conversation's agent, and the agent
    /// of a new conversation.
    pub async fn access_of_target(&self, owner: &str, target: &Target) -> Result<Vec<Access>, Error> {
        const DOING: &str = "read the access of a conversation's agent";
        let (of_conversation, named) = match target {
            Target::New { agent_id } => (None, *agent_id),
            Target::Existing(id) => (
                self.database
                    .fetch_optional::<(Option<Json<Access>>,)>(DOING, ACCESS_OF_CONVERSATION, args![owner, *id])
                    .await?,
                None,
            ),
            Target::Named { handle, agent_id } => {
                let found = self.database.fetch_optional::<(Option<Json<Access>>,)>(
                    DOING,
                    ACCESS_OF_HANDLE,
                    args![owner, handle.to_string()],
                );
                (found.await?, *agent_id)
            }
        };
        let mut found = vec![access(of_conversation)];
        if let Some(id) = named {
            found.push(self.access_of_agent(id).await?);
        }
        Ok(found)
    }

    /// Returns a run's owner and approvers, by the definition of its submission. `None` if there is no such run.
    pub async fn asked_run(&self, run_id: Uuid) -> Result<Option<AskedRun>, Error> {
        let row = self
            .database
            .fetch_optional::<(String, Option<Json<Approvers>>)>(
                "read the approvers of a run",
                ASKED_RUN,
                args![run_id],
            )
            .await?;
        Ok(row.map(|(owner, approvers)| AskedRun {
            owner,
            approvers: approvers.map(|approvers| approvers.0).unwrap_or_default(),
        }))
    }
}

fn access(row: Option<(Option<Json<Access>>,)>) -> Access {
    row.and_then(|(access,)| access).map(|access| access.0).unwrap_or_default()
}
