//! EDIT: a client changes a plan that is under way. The run must have no worker: it waits for its children or stands in the
//! queue.

use serde_json::json;
use uuid::Uuid;

use super::ancestor::{self, AnsweredRun};
use crate::storage::{
    Error, Storage,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    event::PlanUpdated,
    plan::{Plan, PlanEdit, PlanStatus, PlanStep},
    run::RunStatus,
};

/// The outcome of an edit.
#[derive(Debug)]
pub enum EditOutcome {
    /// The plan is changed. The caller publishes the run, and cancels the executors.
    Edited {
        /// The plan as it is now.
        plan: Box<Plan>,
        /// The run of the plan.
        answered: Box<AnsweredRun>,
        /// Runs that took steps which run again.
        executors: Vec<Uuid>,
    },
    /// A worker holds the run.
    Busy,
    /// The plan is not executed now.
    NotExecuting,
    /// The changed plan cannot be executed.
    Invalid(String),
    /// There is no such plan.
    NotFound,
}

statements! {
    /// Changes a step of a plan.
    EDIT_STEP = "
        update agent_plan_steps
        set description = $3,
            executor_required = $4,
            depends_on = $5,
            status = $6,
            result = $7,
            error = $8,
            child_run_id = $9,
            updated_at = {now}
        where plan_id = $1 and step_number = $2
    ",
}

impl Storage {
    /// Changes a plan whose run has no worker, and queues that run.
    pub async fn edit_plan(&self, id: Uuid, edit: &PlanEdit) -> Result<EditOutcome, Error> {
        let Some(run_id) = self.plan(id).await?.map(|plan| plan.run_id) else { return Ok(EditOutcome::NotFound) };
        let edit_plan = async |tx: &mut Tx| {
            let Some(run) = ancestor::lock(tx, run_id).await? else {
                return Ok(RollBack(EditOutcome::NotExecuting));
            };
            if run.status == RunStatus::Running {
                return Ok(RollBack(EditOutcome::Busy));
            }
            // The run's lock keeps everybody else from writing the plan.
            let Some(mut plan) = crate::storage::plans::plan_in(tx, id).await? else {
                return Ok(RollBack(EditOutcome::NotFound));
            };
            if plan.status != PlanStatus::Executing {
                return Ok(RollBack(EditOutcome::NotExecuting));
            }
            let effects = match plan.edit(edit.clone()) {
                Ok(effects) => effects,
                Err(error) => return Ok(RollBack(EditOutcome::Invalid(error.message))),
            };
            for step in plan.steps.iter().filter(|step| effects.steps.contains(&step.step_number)) {
                write_step(tx, id, step).await?;
            }
            // A question to a human keeps the run waiting.
            let must_queue = !ancestor::awaits_human(tx, &run).await?;
            let updated = |base| vec![PlanUpdated { base: Some(base), plan: Box::new(plan.clone()) }.into()];
            let answered = ancestor::answer(tx, run, None, must_queue, updated).await?;
            let (plan, answered) = (Box::new(plan), Box::new(answered));
            Ok(Commit(EditOutcome::Edited { plan, answered, executors: effects.executors }))
        };
        self.database.transact("change a plan", edit_plan).await
    }
}

async fn write_step(tx: &mut Tx, plan_id: Uuid, step: &PlanStep) -> Result<(), Error> {
    let args = args![
        plan_id,
        step.step_number,
        step.description.as_str(),
        step.executor_required,
        json!(step.depends_on),
        step.status.as_str(),
        step.result.clone(),
        step.error.clone(),
        step.child_run_id
    ];
    tx.execute(EDIT_STEP, args).await.map(drop)
}
