//! The lines that the chat shows about plans.

use holdfast_shared::{
    event::{PlanReviewed, PlanStepStarted},
    excerpt,
    hidden::visible,
    plan::{Plan, PlanStatus, PlanStep, StepStatus, Verdict},
};

/// Longest part of a description and of a result that a line shows, in characters.
const MOST: usize = 120;

/// Returns the lines of a new plan.
pub fn made(plan: &Plan) -> String {
    let steps = plan.steps.iter().map(|step| format!("\n  {}. {}", step.step_number, short(&step.description)));
    format!("plan: {}{}", short(&plan.metadata.goal), steps.collect::<String>())
}

/// Returns a line for a plan with another status, if it tells something new.
pub fn changed(plan: &Plan) -> Option<String> {
    let count = plan.count(StepStatus::Completed);
    match plan.status {
        PlanStatus::Completed => Some("the plan is completed".to_owned()),
        PlanStatus::Failed => Some(format!("the plan has failed: {count} of {} steps are completed", plan.steps.len())),
        PlanStatus::Draft | PlanStatus::Approved | PlanStatus::Executing => None,
    }
}

/// Returns the line of a judgement.
pub fn reviewed(review: &PlanReviewed<'_>) -> String {
    let notes = if review.notes.is_empty() { String::new() } else { format!(": {}", short(&review.notes)) };
    match review.verdict {
        Verdict::Approved => format!("the plan was approved{notes}"),
        Verdict::ChangesRequested => format!("changes of the plan are requested{notes}"),
    }
}

/// Returns the line of a step that begins.
pub fn begun(started: &PlanStepStarted) -> String {
    format!("step {} of {}: {}", started.step.step_number, started.of, short(&started.step.description))
}

/// Returns the line of a step that has ended.
pub fn ended(step: &PlanStep) -> String {
    match (&step.error, &step.result) {
        (Some(error), _) => format!("step {} has failed: {}", step.step_number, short(error)),
        (None, Some(result)) => format!("step {} is completed: {}", step.step_number, short(result)),
        (None, None) => format!("step {} is completed", step.step_number),
    }
}

fn short(text: &str) -> String {
    visible(&excerpt::chars(text.lines().next().unwrap_or_default(), MOST)).into_owned()
}
