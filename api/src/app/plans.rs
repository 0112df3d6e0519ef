//! Plans of an owner's runs, and their changes.

use std::sync::Arc;

use holdfast_shared::{
    plan::{Plan, PlanEdit},
    storage::EditOutcome,
};
use uuid::Uuid;

use super::App;
use crate::problem::Problem;

/// The result of a change.
pub enum EditedPlan {
    /// The plan as it is now.
    Changed(Plan),
    /// The plan as it will be when its planner has made the change.
    Accepted(Plan),
}

impl App {
    /// Returns a plan of the owner. Fails with `plan_not_found` for any other.
    pub async fn plan(&self, owner: &str, id: Uuid) -> Result<Plan, Problem> {
        let plan = self.storage.plan(id).await?.ok_or_else(|| Problem::plan_not_found(id))?;
        let run = self.storage.run_without_answer(owner, plan.run_id).await?;
        run.map(|_| plan).ok_or_else(|| Problem::plan_not_found(id))
    }

    /// Changes a plan of the owner that is executed, and cancels the executors of the steps that run again. `Accepted` if its
    /// planner works at the moment, and makes the change before its next steps.
    pub async fn edit_plan(self: &Arc<Self>, owner: &str, id: Uuid, edit: PlanEdit) -> Result<EditedPlan, Problem> {
        self.plan(owner, id).await?;
        let app = Arc::clone(self);
        let edited = self.to_completion(async move {
            let edited = app.storage.edit_plan(id, edit).await?;
            if let EditOutcome::Edited { plan, answered } = &edited {
                app.publish_answered(answered).await;
                app.cancel_replaced(plan.run_id).await;
            }
            Ok(edited)
        });
        match edited.await? {
            EditOutcome::Edited { plan, .. } => Ok(EditedPlan::Changed(*plan)),
            EditOutcome::Accepted(plan) => Ok(EditedPlan::Accepted(*plan)),
            EditOutcome::NotExecuting => Err(Problem::plan_not_executing(id)),
            EditOutcome::Invalid(problem) => Err(Problem::invalid_plan(&problem)),
            EditOutcome::NotFound => Err(Problem::plan_not_found(id)),
        }
    }
}
