//! Plans: the steps by which a planner reaches a goal, and the states of the steps.
//!
//! A call of `agent_create_plan` makes a plan. Storage keeps it in two tables, and each change of it is an event.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{lenient::Growing, storable::storable, tool::ToolError};

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

/// Longest goal, description of a step and name of a tool, in characters.
const MAX_TEXT_CHARS: usize = 4000;

/// Most tools of a step.
const MAX_TOOLS: usize = 64;

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

/// What a plan is for.
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
    #[serde(default)]
    pub revisions: usize,
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

/// The arguments of `agent_create_plan`. Field names may be in camelCase too.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PlanInput {
    /// The purpose of the plan.
    pub goal: String,
    /// Tells whether someone must approve the plan.
    #[serde(default, alias = "executionMode")]
    pub execution_mode: ExecutionMode,
    /// The steps; `None` if the model has to be asked for them.
    #[serde(default)]
    pub steps: Option<Vec<StepInput>>,
    /// The outputs that the user wants.
    #[serde(default, alias = "requestedOutputs")]
    pub requested_outputs: Vec<String>,
    /// The entities that matter most.
    #[serde(default, alias = "priorityEntities")]
    pub priority_entities: Vec<String>,
}

/// A step of the arguments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepInput {
    #[serde(alias = "stepNumber")]
    step_number: u32,
    description: String,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default, alias = "executorRequired")]
    executor_required: bool,
    #[serde(default, alias = "dependsOn")]
    depends_on: Vec<u32>,
}

/// The tools that the steps of a plan may name.
pub trait Scope {
    /// Returns whether the planner has this tool.
    fn has(&self, tool: &str) -> bool;
    /// Returns whether a subagent can have it too.
    fn is_for_executors(&self, tool: &str) -> bool;
}

impl PlanInput {
    /// Reads the arguments of a call.
    pub fn of(input: &Value) -> Result<Self, ToolError> {
        let input = Self::deserialize(input).map_err(|error| invalid(error.to_string()))?;
        if input.goal.trim().is_empty() || input.goal.chars().count() > MAX_TEXT_CHARS {
            return Err(invalid(format!("goal: a text of 1 to {MAX_TEXT_CHARS} characters")));
        }
        Ok(input)
    }

    /// Returns what the plan is for.
    pub fn metadata(&self) -> PlanMetadata {
        let stored = |texts: &[String]| texts.iter().take(MAX_TOOLS).cloned().map(storable).collect();
        PlanMetadata {
            goal: storable(self.goal.clone()),
            requested_outputs: stored(&self.requested_outputs),
            priority_entities: stored(&self.priority_entities),
            reviews: Vec::new(),
            revisions: 0,
        }
    }
}

/// Reads the steps of a JSON object with the field `steps`.
pub fn read_steps(input: &Value) -> Result<Vec<StepInput>, ToolError> {
    let steps = input.get("steps").ok_or_else(|| invalid("steps: a list of steps"))?;
    Vec::deserialize(steps).map_err(|error| invalid(format!("steps: {error}")))
}

/// Checks the steps of a plan, and returns them in the order of their numbers.
pub fn check_steps(steps: Vec<StepInput>, scope: &impl Scope) -> Result<Vec<PlanStep>, ToolError> {
    let mut steps = check_shape(steps)?;
    for step in &mut steps {
        step.tools.sort();
        step.tools.dedup();
        for tool in &step.tools {
            let number = step.step_number;
            if !scope.has(tool) {
                return Err(invalid(format!("step {number}: there is no tool {tool:?}")));
            }
            if step.executor_required && !scope.is_for_executors(tool) {
                let problem = format!("step {number}: an executor cannot use {tool}; set executor_required to false");
                return Err(invalid(problem));
            }
        }
    }
    Ok(steps)
}

/// Checks everything about steps but their tools, which only the worker knows.
pub fn check_shape(steps: Vec<StepInput>) -> Result<Vec<PlanStep>, ToolError> {
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(invalid(format!("steps: 1 to {MAX_STEPS} steps, not {}", steps.len())));
    }
    let mut checked: Vec<PlanStep> = steps.into_iter().map(PlanStep::of).collect::<Result<_, _>>()?;
    checked.sort_by_key(|step| step.step_number);
    let numbers = checked.iter().map(|step| step.step_number);
    if !numbers.eq(1..=checked.len() as u32) {
        return Err(invalid(format!("step_number: the numbers 1 to {}, each once", checked.len())));
    }
    for step in &checked {
        if let Some(missing) = step.depends_on.iter().find(|number| !(1..=checked.len() as u32).contains(*number)) {
            return Err(invalid(format!(
                "step {}: depends_on names step {missing}, which does not exist",
                step.step_number
            )));
        }
    }
    match circle(&checked) {
        None => Ok(checked),
        Some(circle) => {
            let numbers: Vec<String> = circle.iter().map(u32::to_string).collect();
            Err(invalid(format!("depends_on: the steps {} need each other", numbers.join(", "))))
        }
    }
}

/// Returns the steps that can never be begun, because they need each other.
fn circle(steps: &[PlanStep]) -> Option<Vec<u32>> {
    let mut left: BTreeMap<u32, BTreeSet<u32>> =
        steps.iter().map(|step| (step.step_number, step.depends_on.iter().copied().collect())).collect();
    loop {
        let free: Vec<u32> = left.iter().filter(|(_, needed)| needed.is_empty()).map(|(number, _)| *number).collect();
        if free.is_empty() {
            return (!left.is_empty()).then(|| left.into_keys().collect());
        }
        for number in free {
            left.remove(&number);
            for needed in left.values_mut() {
                needed.remove(&number);
            }
        }
    }
}

impl PlanStep {
    fn of(step: StepInput) -> Result<Self, ToolError> {
        let StepInput { step_number, description, tools, executor_required, mut depends_on } = step;
        if description.trim().is_empty() || description.chars().count() > MAX_TEXT_CHARS {
            return Err(invalid(format!("step {step_number}: a description of 1 to {MAX_TEXT_CHARS} characters")));
        }
        if tools.len() > MAX_TOOLS {
            return Err(invalid(format!("step {step_number}: at most {MAX_TOOLS} tools")));
        }
        depends_on.sort_unstable();
        depends_on.dedup();
        Ok(Self {
            step_number,
            description: storable(description),
            tools: tools.into_iter().map(storable).collect(),
            executor_required,
            depends_on,
            status: StepStatus::Pending,
            result: None,
            error: None,
            child_run_id: None,
        })
    }

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

fn invalid(problem: impl Into<String>) -> ToolError {
    ToolError::new("invalid_plan", problem.into())
}

/// Returns the schema of the arguments of `agent_create_plan`.
pub fn tool_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "goal": {"type": "string", "minLength": 1, "description": "What the plan is for."},
            "execution_mode": {
                "enum": ["auto_execute", "draft_only", "agent_review"],
                "description": "auto_execute: at once. draft_only: after the user's approval. agent_review: after a review by another agent."
            },
            "steps": steps_schema(),
            "requested_outputs": {"type": "array", "items": {"type": "string"}},
            "priority_entities": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["goal"]
    })
}

/// Returns the schema of a list of steps.
pub fn steps_schema() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_STEPS,
        "items": {
            "type": "object",
            "properties": {
                "step_number": {"type": "integer", "minimum": 1},
                "description": {"type": "string", "minLength": 1},
                "tools": {"type": "array", "items": {"type": "string"}, "description": "The only tools of the step."},
                "executor_required": {"type": "boolean", "description": "True if a subagent takes the step, beside others."},
                "depends_on": {"type": "array", "items": {"type": "integer"}}
            },
            "required": ["description"]
        }
    })
}

/// Returns the schema of the arguments of `ask_clarifying_questions`.
pub fn questions_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "questions": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 2}
        },
        "required": ["questions"]
    })
}

/// Returns the schema of an approver's changes of a plan.
pub fn edit_schema() -> Value {
    json!({"type": "object", "properties": {"steps": steps_schema()}, "required": ["steps"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tools(&'static [&'static str]);

    impl Scope for Tools {
        fn has(&self, tool: &str) -> bool {
            self.0.contains(&tool)
        }

        fn is_for_executors(&self, tool: &str) -> bool {
            tool != "open_file"
        }
    }

    fn check(steps: Value) -> Result<Vec<PlanStep>, String> {
        let steps = read_steps(&json!({"steps": steps}))
            .and_then(|steps| check_steps(steps, &Tools(&["kb__count", "open_file"])));
        steps.map_err(|error| error.message)
    }

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
            steps: check(steps).unwrap(),
            metadata: call.metadata(),
        }
    }

    #[test]
    fn steps_are_read_in_both_cases_and_ordered() {
        let steps = check(json!([
            {"stepNumber": 2, "description": "b", "dependsOn": [1, 1], "executorRequired": true, "tools": ["kb__count"]},
            {"step_number": 1, "description": "a", "tools": ["open_file"]},
        ]))
        .unwrap();
        let read: Vec<(u32, bool, &[u32])> =
            steps.iter().map(|step| (step.step_number, step.executor_required, step.depends_on.as_slice())).collect();
        assert_eq!(read, [(1, false, &[][..]), (2, true, &[1][..])]);
    }

    #[test]
    fn a_plan_that_cannot_be_executed_is_refused_with_the_place() {
        let step = |number: u32, depends_on: &[u32]| json!({"step_number": number, "description": "x", "depends_on": depends_on});
        let tool =
            |tool: &str| json!([{"step_number": 1, "description": "x", "executor_required": true, "tools": [tool]}]);
        let many: Vec<Value> = (1..=21).map(|number| step(number, &[])).collect();
        for (steps, problem) in [
            (json!([]), "1 to 20 steps, not 0"),
            (json!(many), "1 to 20 steps, not 21"),
            (json!([step(1, &[]), step(3, &[])]), "the numbers 1 to 2, each once"),
            (json!([step(1, &[2])]), "step 1: depends_on names step 2, which does not exist"),
            (json!([step(1, &[]), step(2, &[3]), step(3, &[2])]), "the steps 2, 3 need each other"),
            (json!([step(1, &[1])]), "the steps 1 need each other"),
            (tool("kb__none"), "step 1: there is no tool \"kb__none\""),
            (tool("open_file"), "step 1: an executor cannot use open_file"),
            (json!([{"step_number": 1, "description": " "}]), "step 1: a description of 1 to 4000 characters"),
            (json!("x"), "steps: "),
        ] {
            let refused = check(steps).unwrap_err();
            assert!(refused.contains(problem), "{refused} has no {problem}");
        }
        assert_eq!(PlanInput::of(&json!({"goal": ""})).unwrap_err().code, "invalid_plan");
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
