//! Changes of the plan by clients, which the holder makes before it begins the next steps.

use std::{error::Error, time::Duration};

use holdfast_shared::{
    event::{EventBody, PlanUpdated, WarningRaised},
    storage::{PendingEdit, Progress, TakenEdit},
    tool::ToolError,
};
use tokio::time::timeout;

use super::draft::note_plan;
use crate::{
    executor::{Stop, attempt::Attempt},
    family,
    lease::Signal,
};

/// Longest look for changes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes the changes that wait for the plan, and cancels the executors of changed steps. A change that cannot be made any more
/// is a warning in the log.
pub async fn take_edits(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let plan_id = attempt.memory.plan.as_deref().expect("a plan is executed").id;
    let storage = attempt.shared.worker.storage.clone();
    // While the database is away, the run continues without the changes, which wait for the next steps.
    let look = async move { timeout(PATIENCE, storage.plan_edits(plan_id)).await };
    let edits = match attempt.alongside(look).await? {
        Ok(Ok(edits)) => edits,
        Ok(Err(error)) => {
            tracing::warn!(plan.id = %plan_id, error = &error as &dyn Error, "failed to look for changes of a plan; they wait for its next steps");
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    if edits.is_empty() {
        return Ok(());
    }
    edits.into_iter().for_each(|edit| take(attempt, edit));
    attempt.durable_until(Signal::Yield).await?;
    attempt.recorder.append_deferred();
    let (shared, run_id) = (attempt.shared, attempt.claim.run_id);
    attempt.alongside(family::cancel_replaced(shared, run_id)).await
}

fn take(attempt: &mut Attempt<'_>, PendingEdit { number, edit }: PendingEdit) {
    let plan = attempt.memory.plan.as_deref_mut().expect("a plan is executed");
    let plan_id = plan.id;
    let unreadable = || ToolError::new("invalid_plan", "only a later version can read the change");
    match edit.ok_or_else(unreadable).and_then(|edit| plan.edit(edit)) {
        Ok(changed) => {
            let steps = plan.steps.iter().filter(|step| changed.contains(&step.step_number)).cloned().collect();
            let plan = Box::new(plan.clone());
            attempt.recorder.emit_on_release(&EventBody::PlanUpdated(PlanUpdated { base: None, plan }));
            note_plan(attempt, steps);
        }
        Err(error) => {
            let message = format!("the plan was not changed: {}", error.message);
            let body = WarningRaised { code: "plan_not_changed".into(), message: message.into() };
            attempt.recorder.emit_on_release(&EventBody::WarningRaised(body));
        }
    }
    let (taken_edits, resume_at) = (vec![TakenEdit { plan_id, number }], Some(attempt.recorder.last()));
    attempt.recorder.note(Progress { taken_edits, resume_at, ..Progress::default() });
}
