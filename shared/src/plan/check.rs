//! Plans as models and approvers write them, and the checks that no plan skips.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{ExecutionMode, MAX_STEPS, PlanMetadata, PlanStep, StepStatus};
use crate::{excerpt, given_json, storable::storable, tool::ToolError};

/// Longest goal, description of a step and name of a tool, in characters.
const MAX_TEXT_CHARS: usize = 4000;

/// Most requested outputs and priority entities of a plan, and the longest one, in characters.
const MAX_NAMES: usize = 20;
const MAX_NAME_CHARS: usize = 200;

/// Most tools of a step.
const MAX_TOOLS: usize = 64;

/// The fields of a step, as the native API and the other wires show it.
const SHOWN_FIELDS: [&str; 13] = [
    "step_number",
    "stepNumber",
    "description",
    "tools",
    "executor_required",
    "executorRequired",
    "depends_on",
    "dependsOn",
    "status",
    "result",
    "error",
    "child_run_id",
    "runId",
];

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
        let input: Self = given_json::read(input).map_err(invalid)?;
        if input.goal.trim().is_empty() || input.goal.chars().count() > MAX_TEXT_CHARS {
            return Err(invalid(format!("goal: a text of 1 to {MAX_TEXT_CHARS} characters")));
        }
        Ok(input)
    }

    /// Returns what the plan is for.
    pub fn metadata(&self) -> PlanMetadata {
        let short = |text: &String| storable(excerpt::chars(text, MAX_NAME_CHARS));
        let stored = |texts: &[String]| texts.iter().take(MAX_NAMES).map(short).collect();
        PlanMetadata {
            goal: storable(self.goal.clone()),
            requested_outputs: stored(&self.requested_outputs),
            priority_entities: stored(&self.priority_entities),
            reviews: Vec::new(),
            revisions: 0,
            edits: 0,
        }
    }
}

/// Reads the steps of a JSON object with the field `steps`.
pub fn read_steps(input: &Value) -> Result<Vec<StepInput>, ToolError> {
    #[derive(Deserialize)]
    struct Steps {
        steps: Vec<StepInput>,
    }
    given_json::read::<Steps>(input).map(|input| input.steps).map_err(invalid)
}

/// Reads the steps of an approver. They may have each field that a step was shown with, and no other.
pub fn read_edited_steps(input: &Value) -> Result<Vec<StepInput>, ToolError> {
    let steps = input["steps"].as_array().into_iter().flatten();
    let fields = steps.enumerate().flat_map(|(index, step)| {
        step.as_object().into_iter().flat_map(serde_json::Map::keys).map(move |field| (index, field))
    });
    if let Some((index, field)) = fields.into_iter().find(|(_, field)| !SHOWN_FIELDS.contains(&field.as_str())) {
        return Err(invalid(format!("steps[{index}]: there is no field {field:?}")));
    }
    read_steps(input)
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
    check_order(&checked)?;
    Ok(checked)
}

/// Checks the numbers of steps in their order, and that each step can be begun.
pub(super) fn check_order(steps: &[PlanStep]) -> Result<(), ToolError> {
    let count = steps.len() as u32;
    if !steps.iter().map(|step| step.step_number).eq(1..=count) {
        return Err(invalid(format!("step_number: the numbers 1 to {count}, each once")));
    }
    for step in steps {
        if let Some(missing) = step.depends_on.iter().find(|number| !(1..=count).contains(*number)) {
            let problem = format!("step {}: depends_on names step {missing}, which does not exist", step.step_number);
            return Err(invalid(problem));
        }
    }
    match circle(steps) {
        None => Ok(()),
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
        if tools.len() > MAX_TOOLS {
            return Err(invalid(format!("step {step_number}: at most {MAX_TOOLS} tools")));
        }
        depends_on.sort_unstable();
        depends_on.dedup();
        let mut step = Self {
            step_number,
            description: String::new(),
            tools: tools.into_iter().map(storable).collect(),
            executor_required,
            depends_on,
            status: StepStatus::Pending,
            result: None,
            error: None,
            child_run_id: None,
        };
        step.set_description(storable(description))?;
        Ok(step)
    }

    /// Replaces the task. Fails if it is empty or too long.
    pub(super) fn set_description(&mut self, description: String) -> Result<(), ToolError> {
        if description.trim().is_empty() || description.chars().count() > MAX_TEXT_CHARS {
            let number = self.step_number;
            return Err(invalid(format!("step {number}: a description of 1 to {MAX_TEXT_CHARS} characters")));
        }
        self.description = description;
        Ok(())
    }
}

fn invalid(problem: impl Into<String>) -> ToolError {
    ToolError::new("invalid_plan", problem.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            (json!("x"), "steps: a list is expected, such as [], not a text"),
            (
                json!([{"stepNumber": "1", "description": "x"}]),
                "steps[0].stepNumber: a whole number from 0 is expected",
            ),
            (json!([step(1, &[]), {"step_number": 2}]), "steps[1]: missing field `description`"),
        ] {
            let refused = check(steps).unwrap_err();
            assert!(refused.contains(problem), "{refused} has no {problem}");
        }
        let step = json!({"stepNumber": 1, "description": "x", "status": "pending", "runId": null});
        assert!(read_edited_steps(&json!({"steps": [step]})).is_ok(), "an approver may send back what was shown");
        let misspelt = json!({"steps": [{"step_number": 1, "description": "x", "depend_on": []}]});
        let refused = read_edited_steps(&misspelt).unwrap_err();
        assert!(refused.message.contains("steps[0]: there is no field \"depend_on\""), "{}", refused.message);
        assert_eq!(PlanInput::of(&json!({"goal": ""})).unwrap_err().code, "invalid_plan");
    }
}
