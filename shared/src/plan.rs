//! Plans: the steps by which a planner reaches a goal, and the states of the steps.
//!
//! A call of `agent_create_plan` makes a plan. Storage keeps it in two tables, and each change of it is an event.

mod check;
mod edit;
mod schema;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lenient::Growing;

pub use check::{PlanInput, Scope, StepInput, check_shape, check_steps, read_edited_steps, read_steps};
pub use edit::{PlanEdit, StepEdit};
pub use schema::{edit_schema, questions_schema, tool_schema};

/// The tool that makes a plan.
pub const TOOL: &str = "agent_create_plan";

/// The tool that asks the user questions and ends the run.
pub const QUESTIONS_TOOL: &str = "ask_clarifying_questions";

/// The names of calls that a plan makes, which no model can request: the point is in no tool's name.
pub const EXECUTE_CALL: &str = "plan.execute_step";
/// A call that a reviewer answers.
pub const REVIEW_CALL: &str = "plan.review";

/// Most steps of a plan.
pub const MAX_STEPS: usize = 20;

/// A plan, as the API shows it and as events have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Plan {
    /// UUIDv7.
    pub id: Uuid,
    /// The run that made it.
    pub run_id: Uuid,
    /// The conversation of that run.
    pub session_id: Uuid,
    /// The call of `agent_create_plan`.
    pub call_id: String,
    /// The message that the run answers.
    pub user_message: String,
    /// The strategy of the run, `planner_stream`.
    pub strategy: String,
    /// Tells whether someone must approve the plan before its execution.
    pub execution_mode: ExecutionMode,
    /// Tells how far the plan has got.
    pub status: PlanStatus,
    /// 1 to 20 steps, by their numbers.
    pub steps: Vec<PlanStep>,
    /// Goal, requested outputs and priority entities of the call.
    pub metadata: PlanMetadata,
}

/// The purpose of a plan, and its reviews.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanMetadata {
    /// The purpose of the plan.
    pub goal: String,
    /// The outputs that the user wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested_outputs: Vec<String>,
    /// The entities that matter most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority_entities: Vec<String>,
    /// Reviews so far, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<PlanReview>,
    /// Versions that were made after a review.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revisions: usize,
    /// Changes by clients during the execution; at most 20.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub edits: usize,
}

// serde prescribes the signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanStep {
    /// Its number, from 1.
    pub step_number: u32,
    /// The task.
    pub description: String,
    /// The only tools of the step.
    pub tools: Vec<String>,
    /// Whether a subagent takes the step; otherwise the planner does.
    pub executor_required: bool,
    /// Steps that must be completed before it.
    pub depends_on: Vec<u32>,
    /// Tells how far the step has got.
    pub status: StepStatus,
    /// The answer of a completed step, up to 4,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why the step failed, or was not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The run that executes the step, if a subagent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
}

/// A judgement of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanReview {
    /// Its number, from 1.
    pub round: u32,
    /// The judgement.
    pub verdict: Verdict,
    /// The changes to make, or a remark; empty if there is none.
    pub notes: String,
    /// The party that has judged.
    pub by: ReviewedBy,
}

/// The state of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlanStatus {
    /// It waits for a review or an approval.
    Draft,
    /// It may be executed.
    Approved,
    /// Steps are under way.
    Executing,
    /// Each step is completed.
    Completed,
    /// A step failed, or the plan was refused.
    Failed,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Under way.
    Executing,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
}

/// Tells whether someone must approve a plan before its execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ExecutionMode {
    /// The plan is executed at once.
    #[default]
    AutoExecute,
    /// A human approves the plan.
    DraftOnly,
    /// A reviewer approves the plan, or else a human.
    AgentReview,
}

/// The judgement of a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PlanVerdict)]
pub enum Verdict {
    /// The plan may be executed.
    Approved,
    /// The plan needs another version.
    ChangesRequested,
}

/// The party that has judged a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewedBy {
    /// A subagent.
    Reviewer,
    /// A human.
    User,
}

crate::text_enum!(PlanStatus);
crate::text_enum!(StepStatus);
crate::text_enum!(ExecutionMode);

impl Growing for PlanStatus {
    const UNKNOWN: Self = Self::Executing;
}

impl Growing for Verdict {
    const UNKNOWN: Self = Self::ChangesRequested;
}

impl Growing for ReviewedBy {
    const UNKNOWN: Self = Self::Reviewer;
}

impl PlanStep {
    /// Returns whether the step is under way, and the planner takes it.
    pub fn is_taken_by_planner(&self) -> bool {
        self.status == StepStatus::Executing && !self.executor_required
    }
}

impl Plan {
    /// Returns whether the plan has not ended.
    pub fn is_open(&self) -> bool {
        !matches!(self.status, PlanStatus::Completed | PlanStatus::Failed)
    }

    /// Returns whether there is a version after the newest review.
    pub fn is_revised(&self) -> bool {
        self.metadata.revisions >= self.metadata.reviews.len()
    }

    /// Returns the step that the planner takes now.
    pub fn own_step(&self) -> Option<&PlanStep> {
        self.steps.iter().find(|step| step.is_taken_by_planner())
    }

    /// Returns a step by its number.
    pub fn step(&self, number: u32) -> Option<&PlanStep> {
        self.steps.iter().find(|step| step.step_number == number)
    }

    /// Returns the numbers of the steps that can begin now, while at most `most` are under way. The planner takes one step at a
    /// time.
    pub fn ready(&self, most: usize) -> Vec<u32> {
        let mut free = most.saturating_sub(self.count(StepStatus::Executing));
        let mut planner_is_free = self.own_step().is_none();
        let mut ready = Vec::new();
        for step in &self.steps {
            let is_ready = step.status == StepStatus::Pending
                && step.depends_on.iter().all(|number| self.has(*number, StepStatus::Completed));
            if !is_ready || free == 0 || (!step.executor_required && !planner_is_free) {
                continue;
            }
            planner_is_free &= step.executor_required;
            free -= 1;
            ready.push(step.step_number);
        }
        ready
    }

    /// Returns the number of steps in a state.
    pub fn count(&self, status: StepStatus) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }

    /// Returns the numbers of the steps that cannot begin any more, each with the nearest step that it needs and that failed
    /// or cannot begin.
    pub fn blocked(&self) -> Vec<(u32, u32)> {
        let mut blocked = BTreeMap::new();
        let is_lost = |number: u32, blocked: &BTreeMap<u32, u32>| {
            self.has(number, StepStatus::Failed) || blocked.contains_key(&number)
        };
        loop {
            let pending = self.steps.iter().filter(|step| step.status == StepStatus::Pending);
            let lost = pending.filter(|step| !blocked.contains_key(&step.step_number)).find_map(|step| {
                let needed = step.depends_on.iter().copied().filter(|number| is_lost(*number, &blocked)).max();
                needed.map(|needed| (step.step_number, needed))
            });
            match lost {
                Some((number, needed)) => blocked.insert(number, needed),
                None => return blocked.into_iter().collect(),
            };
        }
    }

    fn has(&self, number: u32, status: StepStatus) -> bool {
        self.step(number).is_some_and(|step| step.status == status)
    }
}

/// Returns whether a plan makes the calls of this name.
pub fn is_own_call(name: &str) -> bool {
    matches!(name, EXECUTE_CALL | REVIEW_CALL)
}

/// Returns whether a planner's executor answers the calls of this tool.
pub fn is_planner_tool(name: &str) -> bool {
    matches!(name, TOOL | QUESTIONS_TOOL)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(steps: Value) -> Plan {
        let call = PlanInput::of(&json!({"goal": "g", "executionMode": "draft_only"})).unwrap();
        Plan {
            id: Uuid::nil(),
            run_id: Uuid::nil(),
            session_id: Uuid::nil(),
            call_id: "call_1".into(),
            user_message: "m".into(),
            strategy: "planner_stream".into(),
            execution_mode: call.execution_mode,
            status: PlanStatus::Executing,
            steps: read_steps(&json!({"steps": steps})).and_then(check_shape).unwrap(),
            metadata: call.metadata(),
        }
    }

    #[test]
    fn steps_begin_when_they_have_what_they_need() {
        let step = |number: u32, executor: bool, depends_on: &[u32]| json!({"step_number": number, "description": "x", "executor_required": executor, "depends_on": depends_on});
        let mut plan = plan(json!([
            step(1, true, &[]),
            step(2, false, &[]),
            step(3, false, &[]),
            step(4, true, &[]),
            step(5, true, &[]),
            step(6, true, &[1])
        ]));
        assert_eq!(plan.ready(3), [1, 2, 4], "the planner takes one step at a time");
        for number in [0, 1, 3] {
            plan.steps[number].status = StepStatus::Executing;
        }
        assert_eq!((plan.ready(3), plan.own_step().map(|step| step.step_number)), (vec![], Some(2)));
        plan.steps[0].status = StepStatus::Completed;
        assert_eq!((plan.ready(3), plan.ready(4)), (vec![5], vec![5, 6]));
    }

    #[test]
    fn a_failed_step_blocks_those_that_need_it() {
        let step = |number: u32, depends_on: &[u32]| json!({"step_number": number, "description": "x", "depends_on": depends_on});
        let mut plan = plan(json!([step(1, &[]), step(2, &[]), step(3, &[1, 2]), step(4, &[3]), step(5, &[2])]));
        plan.steps[0].status = StepStatus::Failed;
        plan.steps[1].status = StepStatus::Completed;
        assert_eq!(plan.blocked(), [(3, 1), (4, 3)]);
        assert_eq!(plan.ready(3), [5]);
    }
}
