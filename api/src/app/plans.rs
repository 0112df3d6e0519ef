//! Plans of an owner's runs, and their changes.

use std::sync::Arc;

use holdfast_shared::{
    plan::{Plan, PlanEdit},
    storage::EditOutcome,
};
use uuid::Uuid;

use super::App;
use crate::problem::Problem;

impl App {
    /// Returns a plan of the owner. Fails with `plan_not_found` for any other.
    pub async fn plan(&self, owner: &str, id: Uuid) -> Result<Plan, Problem> {
        let plan = self.storage.plan(id).await?.ok_or_else(|| Problem::plan_not_found(id))?;
        let run = self.storage.run_without_answer(owner, plan.run_id).await?;
        run.map(|_| plan).ok_or_else(|| Problem::plan_not_found(id))
    }

    /// Changes a plan of the owner that is executed, and cancels the executors of the steps that run again.
    pub async fn edit_plan(self: &Arc<Self>, owner: &str, id: Uuid, edit: PlanEdit) -> Result<Plan, Problem> {
        self.plan(owner, id).await?;
        let (app, user) = (Arc::clone(self), owner.to_owned());
        let edited = self.to_completion(async move {
            let edited = app.storage.edit_plan(id, &edit).await?;
            if let EditOutcome::Edited { answered, executors, .. } = &edited {
                app.publish_answered(answered).await;
                for executor in executors {
                    // The edit is stored: an executor that is not cancelled only works in vain.
                    if let Err(error) = app.cancel(&user, *executor).await {
                        tracing::warn!(plan.id = %id, run.id = %executor, error.code, error.detail, "failed to cancel a replaced executor; it works to its end");
                    }
                }
            }
            Ok(edited)
        });
        match edited.await? {
            EditOutcome::Edited { plan, .. } => Ok(*plan),
            EditOutcome::Busy => Err(Problem::plan_busy(id)),
            EditOutcome::NotExecuting => Err(Problem::plan_not_executing(id)),
            EditOutcome::Invalid(problem) => Err(Problem::invalid_plan(&problem)),
            EditOutcome::NotFound => Err(Problem::plan_not_found(id)),
        }
    }
}
