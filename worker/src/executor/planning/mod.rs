//! Planners: agents that make plans, execute them, and ask questions that end their runs.
//!
//! A plan is made by a call of `agent_create_plan` (`draft`) and then executed step by step (`execution`). A step is the work
//! of a child run, or of the planner itself. The plan's state is in the database, so an attempt continues where the last one
//! was, and it is a part of each model request, so no summary of the conversation can lose it.

mod draft;
mod edits;
mod execution;
mod indicators;
mod project;
mod prompts;
mod questions;
mod steps;

use std::{error::Error, sync::Arc};

use holdfast_shared::{
    agent::{AgentDefinition, AgentKind, ModelRole, ModelSettings, Profiles},
    config::PlannerConfig,
    context::AgentContext,
    excerpt::READ_RESULT,
    plan::Plan,
    storage::{Claim, NewRole, Progress, StoredRole},
};
use uuid::Uuid;

use super::{Stop, attempt::Attempt, retry_query::retry_query};
use crate::{
    WorkerState,
    lease::Lease,
    model::{AnswerForm, ChosenModel, Models, ToolSpec},
    recorder::Recorder,
    tools::Tool,
};

pub use draft::{Drafting, make_plan};
pub use execution::{advance, fail_own_step};
pub use project::clarify;
pub use questions::{ask_questions, read_questions};

/// The part of a run in the work of a planner, and the plan before it.
pub struct Planner {
    /// The part of the run.
    pub role: ModelRole,
    /// The only tools of the role; `None` for all tools of the agent.
    pub tools: Option<Vec<String>>,
    /// The newest plan of the conversation.
    pub newest_plan: Option<Plan>,
    /// The project of the context in words, as of the beginning of the attempt.
    pub project: Option<String>,
    /// The text that the user has written about themselves, for a run that the user has started.
    profile: Option<String>,
    /// The model that writes the answer after a plan, if the deployment has one for that.
    pub synthesizer: Option<ChosenModel>,
}

impl Planner {
    /// Reads the role of a run and its conversation's newest plan; `None` if the run's agent is no planner.
    pub async fn of_run(
        shared: &WorkerState,
        claim: &Claim,
        (lease, recorder): (&mut Lease, &mut Recorder),
        definition: &AgentDefinition,
    ) -> Result<Option<Box<Self>>, Stop> {
        if definition.kind != AgentKind::Planner {
            return Ok(None);
        }
        let storage = &shared.worker.storage;
        let stored =
            if claim.is_child { retry_query(lease, recorder, || storage.role(claim.run_id)).await? } else { None };
        let newest_plan = retry_query(lease, recorder, || storage.newest_plan(claim.conversation_id)).await?;
        let profile = if claim.is_child {
            None
        } else {
            retry_query(lease, recorder, || storage.user_profile(&claim.owner_id)).await?.text
        };
        let StoredRole { role, tools } = stored.unwrap_or(StoredRole { role: ModelRole::Planner, tools: None });
        Ok(Some(Box::new(Self { role, tools, newest_plan, project: None, profile, synthesizer: None })))
    }

    /// Returns the definition for the role: its instructions before the agent's own, and its budget.
    pub fn adapt(&self, definition: &AgentDefinition, config: &PlannerConfig) -> AgentDefinition {
        let mut adapted = definition.clone();
        let own = definition.system_prompt.as_deref().map(|prompt| format!("\n\n{prompt}")).unwrap_or_default();
        adapted.system_prompt = Some(format!("{}{own}", prompts::of_role(self.role)));
        adapted.context_tokens = match self.role {
            ModelRole::Executor => Some(config.executor_context_tokens),
            ModelRole::Reviewer => Some(config.reviewer_context_tokens),
            _ => definition.context_tokens,
        };
        if self.role != ModelRole::Planner && self.tools.as_ref().is_some_and(Vec::is_empty) {
            // Such a child needs no connection to a server.
            adapted.mcp_servers.clear();
            adapted.subagents.clear();
        }
        adapted
    }

    /// Returns the settings of the role's model: the agent's own, or else the deployment's profile of the role. A child has the
    /// profile first.
    pub fn model(&self, definition: &AgentDefinition, profiles: &Profiles) -> Option<ModelSettings> {
        let of_role = settings_of(self.role, profiles);
        match self.role {
            ModelRole::Planner => definition.model.clone().or(of_role),
            _ => of_role.or(definition.model.clone()),
        }
    }

    /// Sets up the model of the role `synthesizer`, for a planner without a model of its own.
    pub fn set_synthesizer(&mut self, models: &Models, definition: &AgentDefinition, profiles: &Profiles) {
        let is_free = self.role == ModelRole::Planner && definition.model.is_none();
        let Some(settings) = settings_of(ModelRole::Synthesizer, profiles).filter(|_| is_free) else { return };
        match models.get(Some(&settings), profiles) {
            Ok(model) => self.synthesizer = Some(model),
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to set up the model of the role synthesizer");
            }
        }
    }

    /// Returns the row of the role of a run that no planner has started.
    pub fn own_role(&self, claim: &Claim, model: &str, token_budget: u32) -> Progress {
        let role = NewRole {
            id: Uuid::now_v7(),
            of_run: claim.run_id,
            role: self.role,
            profile: None,
            model: Some(model.to_owned()),
            token_budget,
            tools: None,
        };
        Progress { roles: vec![role], ..Progress::default() }
    }
}

/// Returns the settings of the deployment's profile of a role.
fn settings_of(role: ModelRole, profiles: &Profiles) -> Option<ModelSettings> {
    let profile = profiles.roles.get(&role).cloned();
    profile.map(|profile| ModelSettings { profile: Some(profile), ..ModelSettings::default() })
}

impl Attempt<'_> {
    /// Returns the model of the next step: after a plan, the one that writes the answer.
    pub fn model_of_step(&self) -> &ChosenModel {
        let is_after_plan = self.memory.plan.as_deref().is_some_and(|plan| !plan.is_open());
        let synthesizer = self.planner.as_ref().and_then(|planner| planner.synthesizer.as_ref());
        synthesizer.filter(|_| is_after_plan).unwrap_or(&self.chosen_model)
    }

    /// Returns a tool that the model may call now: in a step of a plan, one of the step's tools, or that for the rest of a result.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let step = self.memory.plan.as_deref().and_then(Plan::own_step);
        match step {
            Some(step) if name != READ_RESULT && !step.tools.iter().any(|tool| tool == name) => None,
            _ => self.toolbox.get(name),
        }
    }

    /// Returns the declarations of the tools that the model may call now.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        let mut specs = self.toolbox.specs();
        specs.retain(|spec| self.tool(&spec.name).is_some());
        specs
    }

    /// Returns what the run's answers are to be.
    pub fn answer_form(&self) -> AnswerForm {
        match self.planner.as_ref().map(|planner| planner.role) {
            Some(ModelRole::Reviewer) => AnswerForm::Verdict,
            // The steps of a plan have forms of their own.
            Some(_) => AnswerForm::Text,
            None => self.memory.format.clone().map_or(AnswerForm::Text, AnswerForm::Json),
        }
    }

    /// Returns what the model must know in this step beside its instructions.
    pub fn briefing(&self) -> Vec<String> {
        let Some(planner) = self.planner.as_ref().filter(|planner| planner.role == ModelRole::Planner) else {
            return Vec::new();
        };
        let place = AgentContext::of(&self.memory.metadata).map(|context| prompts::place(&context));
        let project = planner.project.as_ref().map(|project| format!("The user looks at this project:\n{project}"));
        let profile = planner.profile.as_ref().map(|profile| format!("The user writes about themselves: {profile}"));
        let tools = prompts::tools(&self.tool_specs());
        let of_earlier_run = planner.newest_plan.as_ref().filter(|plan| plan.is_open());
        let plan = self.memory.plan.as_deref().or(of_earlier_run).map(prompts::plan);
        let tasks = prompts::tasks(&self.toolbox.specs());
        place.into_iter().chain(project).chain(profile).chain(tools).chain(tasks).chain(plan).collect()
    }
}
