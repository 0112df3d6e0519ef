//! Who may use an agent, and who answers what a run has asked.

use holdfast_shared::{
    config::{ANONYMOUS_PREFIX, begins_with},
    storage::{AskedRun, Target},
};
use uuid::Uuid;

use super::{App, agent_of};
use crate::{auth::Caller, problem::Problem};

impl App {
    /// Refuses a caller whom an agent does not admit, in the words for an unknown agent.
    pub async fn expect_access(&self, caller: &Caller, agent_id: Uuid) -> Result<(), Problem> {
        match caller.is_operator || self.storage.access_of_agent(agent_id).await?.admits(caller.standing()) {
            true => Ok(()),
            false => Err(Problem::agent_not_found(agent_id)),
        }
    }

    /// Refuses a briefing for another owner whom the agent does not admit: that owner could not talk about it.
    pub async fn expect_access_of(&self, owner: &str, agent_id: Uuid) -> Result<(), Problem> {
        let access = self.storage.access_of_agent(agent_id).await?;
        if access.may_admit(owner, begins_with(owner, ANONYMOUS_PREFIX)) {
            Ok(())
        } else {
            Err(Problem::owner_not_admitted(owner, agent_id))
        }
    }

    /// Refuses a caller whom an agent of a run of this target does not admit. Plain new conversations have none, and cost nothing.
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

    /// The run, for its owner and for those who decide about its calls; to others it is unknown. Answers whether the caller
    /// decides.
    pub async fn asked_run(&self, caller: &Caller, run_id: Uuid) -> Result<(AskedRun, bool), Problem> {
        let run = self.storage.asked_run(run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))?;
        let decides = run.approvers.include(caller.standing(), &run.owner);
        match decides || run.owner == caller.owner {
            true => Ok((run, decides)),
            false => Err(Problem::run_not_found(run_id)),
        }
    }
}
