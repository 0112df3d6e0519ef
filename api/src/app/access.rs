//! Access rules: which callers may use an agent, and which may decide approvals of a run.

use holdfast_shared::{
    config::{ANONYMOUS_PREFIX, begins_with},
    conversation::Conversation,
    storage::{AskedRun, Target},
};
use uuid::Uuid;

use super::{App, submit::agent_of};
use crate::{auth::Caller, problem::Problem};

impl App {
    /// Returns the agent of a name or an id, if it admits the caller: other agents look unknown.
    pub async fn agent_named(&self, caller: &Caller, name: &str) -> Result<Option<Uuid>, Problem> {
        let found = self.storage.agents_named(&[name.to_owned()]).await?;
        let Some(agent) = found.get(name) else { return Ok(None) };
        Ok(self.admits(caller, agent.id).await?.then_some(agent.id))
    }

    /// Returns whether the caller may use the agent.
    async fn admits(&self, caller: &Caller, agent_id: Uuid) -> Result<bool, Problem> {
        Ok(caller.is_operator || self.storage.access_of_agent(agent_id).await?.admits(caller.standing()))
    }

    /// Fails with `agent_not_found` if the agent does not admit the caller, as for an unknown agent.
    pub async fn expect_access(&self, caller: &Caller, agent_id: Uuid) -> Result<(), Problem> {
        if self.admits(caller, agent_id).await? { Ok(()) } else { Err(Problem::agent_not_found(agent_id)) }
    }

    /// Gives a conversation without runs its agent. Returns whether the conversation has this agent now: the agent of its first run
    /// stays.
    pub async fn gives_agent(
        &self,
        caller: &Caller,
        conversation: &Conversation,
        agent_id: Uuid,
    ) -> Result<bool, Problem> {
        if conversation.agent_id == Some(agent_id) {
            return Ok(true);
        }
        self.admit_write(caller).await?;
        Ok(self.storage.assign_agent(&caller.owner, conversation.id, agent_id).await?)
    }

    /// Fails if the agent does not admit the owner of a briefing, who could not open it.
    pub async fn expect_access_of(&self, owner: &str, agent_id: Uuid) -> Result<(), Problem> {
        let access = self.storage.access_of_agent(agent_id).await?;
        if access.may_admit(owner, begins_with(owner, ANONYMOUS_PREFIX)) {
            Ok(())
        } else {
            Err(Problem::owner_not_admitted(owner, agent_id))
        }
    }

    /// Fails if an agent of the target does not admit the caller. A plain new conversation has no agent and needs no
    /// query.
    pub(super) async fn expect_access_to(&self, caller: &Caller, target: &Target) -> Result<(), Problem> {
        if caller.is_operator || matches!(target, Target::New { agent_id: None }) {
            return Ok(());
        }
        let all = self.storage.access_of_target(&caller.owner, target).await?;
        match (all.iter().all(|access| access.admits(caller.standing())), agent_of(target)) {
            (true, _) => Ok(()),
            (false, agent_id) if agent_id.is_nil() => Err(Problem::agent_of_conversation_not_found()),
            (false, agent_id) => Err(Problem::agent_not_found(agent_id)),
        }
    }

    /// Returns the run and whether the caller may decide its approvals. Fails with `run_not_found` if the caller is
    /// neither the owner nor an approver.
    pub async fn asked_run(&self, caller: &Caller, run_id: Uuid) -> Result<(AskedRun, bool), Problem> {
        let run = self.storage.asked_run(run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))?;
        let decides = run.approvers.include(caller.standing(), &run.owner);
        if decides || run.owner == caller.owner { Ok((run, decides)) } else { Err(Problem::run_not_found(run_id)) }
    }
}
