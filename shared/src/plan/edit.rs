//! Changes of a plan that is under way.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{MAX_STEPS, Plan, PlanStep, StepStatus, check::check_order};
use crate::{storable::storable, tool::ToolError};

/// Most changes of one plan. Each is an event with the whole plan.
const MAX_EDITS: usize = 20;

/// A client's changes of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanEdit {
    /// The steps that change; the others stay as they are.
    pub steps: Vec<StepEdit>,
}

/// A client's changes of one step. A field that is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepEdit {
    /// The step.
    #[serde(alias = "stepNumber")]
    pub step_number: u32,
    /// The task.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether a subagent takes the step.
    #[serde(default, alias = "executorRequired")]
    pub executor_required: Option<bool>,
    /// Steps that must be completed before it.
    #[serde(default, alias = "dependsOn")]
    pub depends_on: Option<Vec<u32>>,
}

impl PlanEdit {
    /// Returns the edit as it is stored. Fails if it names no step, one of them twice, or more than a plan has.
    pub fn checked(mut self) -> Result<Self, ToolError> {
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(refused(format!("steps: 1 to {MAX_STEPS} steps, not {}", self.steps.len())));
        }
        let mut named = BTreeSet::new();
        for step in &mut self.steps {
            let number = step.step_number;
            if !named.insert(number) {
                return Err(refused(format!("step {number} is named twice")));
            }
            step.description = step.description.take().map(storable);
            if let Some(needed) = &mut step.depends_on {
                needed.sort_unstable();
                needed.dedup();
                if needed.len() > MAX_STEPS {
                    return Err(refused(format!("step {number}: depends_on names at most {MAX_STEPS} steps")));
                }
            }
        }
        Ok(self)
    }
}

impl Plan {
    /// Changes the steps by a checked edit. They and all steps that need them become pending, and their executors have no step any more. Returns
    /// the numbers of these steps. Fails, and changes nothing, if the changed plan cannot be executed, or if the planner takes
    /// one of them now.
    pub fn edit(&mut self, edit: PlanEdit) -> Result<BTreeSet<u32>, ToolError> {
        let mut plan = self.clone();
        let named = plan.change_steps(edit)?;
        check_order(&plan.steps)?;
        let changed = plan.and_dependents(named);
        if let Some(own) = self.own_step().filter(|own| changed.contains(&own.step_number)) {
            return Err(refused(format!("step {}: the planner takes it now", own.step_number)));
        }
        plan.steps.iter_mut().filter(|step| changed.contains(&step.step_number)).for_each(PlanStep::reset);
        plan.metadata.edits += 1;
        *self = plan;
        Ok(changed)
    }

    /// Changes the steps that the edit names, and returns their numbers.
    fn change_steps(&mut self, edit: PlanEdit) -> Result<BTreeSet<u32>, ToolError> {
        if self.metadata.edits >= MAX_EDITS {
            return Err(refused(format!("a plan can be changed {MAX_EDITS} times")));
        }
        let mut named = BTreeSet::new();
        for StepEdit { step_number, description, executor_required, depends_on } in edit.steps {
            let step = self.steps.iter_mut().find(|step| step.step_number == step_number);
            let step = step.ok_or_else(|| refused(format!("step {step_number} does not exist")))?;
            if let Some(description) = description {
                step.set_description(description)?;
            }
            step.executor_required = executor_required.unwrap_or(step.executor_required);
            step.depends_on = depends_on.unwrap_or_else(|| std::mem::take(&mut step.depends_on));
            named.insert(step_number);
        }
        Ok(named)
    }

    fn and_dependents(&self, mut steps: BTreeSet<u32>) -> BTreeSet<u32> {
        loop {
            let needs = |step: &&PlanStep| {
                !steps.contains(&step.step_number) && step.depends_on.iter().any(|number| steps.contains(number))
            };
            match self.steps.iter().find(needs) {
                Some(step) => steps.insert(step.step_number),
                None => return steps,
            };
        }
    }
}

impl PlanStep {
    fn reset(&mut self) {
        self.status = StepStatus::Pending;
        (self.result, self.error, self.child_run_id) = (None, None, None);
    }
}

fn refused(problem: String) -> ToolError {
    ToolError::new("invalid_plan", problem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::plan::{ExecutionMode, PlanMetadata, PlanStatus, check_shape, read_steps};

    fn plan() -> Plan {
        let step = |number: u32, depends_on: &[u32]| json!({"step_number": number, "description": "x", "executor_required": true, "depends_on": depends_on});
        let steps = json!({"steps": [step(1, &[]), step(2, &[1]), step(3, &[2]), step(4, &[])]});
        let mut plan = Plan {
            id: Uuid::nil(),
            run_id: Uuid::nil(),
            session_id: Uuid::nil(),
            call_id: "call_1".into(),
            user_message: "m".into(),
            strategy: "planner_stream".into(),
            execution_mode: ExecutionMode::AutoExecute,
            status: PlanStatus::Executing,
            steps: read_steps(&steps).and_then(check_shape).unwrap(),
            metadata: PlanMetadata::default(),
        };
        for (index, status) in [StepStatus::Completed, StepStatus::Completed, StepStatus::Executing, StepStatus::Failed]
            .into_iter()
            .enumerate()
        {
            plan.steps[index].status = status;
            plan.steps[index].child_run_id = Some(Uuid::from_u128(index as u128));
        }
        plan
    }

    fn edit(plan: &mut Plan, steps: Value) -> Result<BTreeSet<u32>, String> {
        let edit: PlanEdit = serde_json::from_value(json!({"steps": steps})).unwrap();
        edit.checked().and_then(|edit| plan.edit(edit)).map_err(|error| error.message)
    }

    #[test]
    fn an_edited_step_and_those_that_need_it_run_again() {
        let mut plan = plan();
        let changed = edit(&mut plan, json!([{"stepNumber": 2, "description": "y"}])).unwrap();
        assert_eq!(changed, [2, 3].into());
        let statuses: Vec<StepStatus> = plan.steps.iter().map(|step| step.status).collect();
        assert_eq!(statuses, [StepStatus::Completed, StepStatus::Pending, StepStatus::Pending, StepStatus::Failed]);
        assert_eq!((plan.steps[1].description.as_str(), plan.steps[2].child_run_id), ("y", None));
    }

    #[test]
    fn an_edit_that_cannot_be_executed_is_refused() {
        let refused = |steps: Value| edit(&mut plan(), steps).unwrap_err();
        assert!(refused(json!([])).contains("1 to 20 steps, not 0"));
        let many = |count: u32| Value::from((1..=count).map(|n| json!({"step_number": n})).collect::<Vec<_>>());
        assert!(refused(many(20)).contains("step 5 does not exist"));
        assert!(refused(many(21)).contains("1 to 20 steps, not 21"));
        assert!(refused(json!([{"step_number": 1}, {"step_number": 1}])).contains("step 1 is named twice"));
        let needed =
            |count: u32| json!([{"step_number": 1, "depends_on": (2..2 + count).chain([2]).collect::<Vec<_>>()}]);
        assert!(refused(needed(20)).contains("which does not exist"));
        assert!(refused(needed(21)).contains("at most 20 steps"));
        assert!(refused(json!([{"step_number": 9}])).contains("step 9 does not exist"));
        assert!(refused(json!([{"step_number": 1, "description": " "}])).contains("step 1: a description"));
        assert!(refused(json!([{"step_number": 1, "depends_on": [3]}])).contains("need each other"));
        let mut own = plan();
        own.steps[2].executor_required = false;
        for taken in [json!([{"step_number": 1}]), json!([{"step_number": 3, "executor_required": true}])] {
            assert!(edit(&mut own.clone(), taken).unwrap_err().contains("step 3: the planner takes it now"));
        }
        edit(&mut plan(), json!([{"step_number": 3, "executor_required": false}])).unwrap();
        let mut often = plan();
        (0..20).for_each(|_| drop(edit(&mut often, json!([{"step_number": 4}])).unwrap()));
        assert!(edit(&mut often, json!([{"step_number": 4}])).unwrap_err().contains("20 times"));
    }
}
