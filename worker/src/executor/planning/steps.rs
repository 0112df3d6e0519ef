//! The checks of the steps that a planner, a human or a client has written.

use holdfast_shared::{
    plan::{self, PlanStep, Scope, StepInput},
    tool::ToolError,
};
use holdfast_workspace::is_help;

use crate::executor::attempt::Attempt;

/// The tools that the steps of the run's plans may name.
pub fn scope<'a>(attempt: &'a Attempt<'_>) -> PlanScope<'a> {
    PlanScope { attempt }
}

pub struct PlanScope<'a> {
    attempt: &'a Attempt<'a>,
}

impl Scope for PlanScope<'_> {
    fn has(&self, tool: &str) -> bool {
        self.attempt.toolbox.get(tool).is_some_and(|tool| tool.planner().is_none())
    }

    fn is_for_executors(&self, tool: &str) -> bool {
        self.attempt.toolbox.get(tool).is_some_and(|tool| !tool.is_client_tool())
    }
}

/// Checks the steps that a planner has written. A human may want others.
pub fn check_steps(attempt: &Attempt<'_>, steps: Vec<StepInput>) -> Result<Vec<PlanStep>, ToolError> {
    let steps = plan::check_steps(steps, &scope(attempt))?;
    let creates_task = |step: &&PlanStep| step.tools.iter().any(|tool| tool == "create_onto_task");
    if let Some(step) = steps.iter().filter(creates_task).find(|step| is_help(&step.description)) {
        let problem = format!(
            "step {} creates a task for work that you can do now; a task is future work of the user. Do the work in the step, or say that the user asked to track it",
            step.step_number
        );
        return Err(ToolError::new("invalid_plan", problem));
    }
    Ok(steps)
}
