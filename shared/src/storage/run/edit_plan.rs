//! EDIT: a client changes a plan that is under way, while its run waits for its children or for a human.

use serde_json::json;
use uuid::Uuid;

use super::ancestor::{self, AnsweredRun};
use crate::storage::{
    Error, Storage,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    event::{AgentState, AgentStateChanged, PlanUpdated},
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
    /// A worker holds the run, or will do so soon.
    Busy,
    /// The plan is not executed now.
    NotExecuting,
    /// The changed plan cannot be executed.
    Invalid(String),
    /// There is no such plan.
    NotFound,
}

statements! {
    /// Stores what a plan is for, with the number of its changes.
    SET_METADATA = "
        update agent_plans
        set metadata = $2,
            updated_at = {now}
        where id = $1
    ",
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
    /// Changes a plan whose run waits, and queues that run unless a human must answer.
    pub async fn edit_plan(&self, id: Uuid, edit: &PlanEdit) -> Result<EditOutcome, Error> {
        let Some(run_id) = self.plan(id).await?.map(|plan| plan.run_id) else { return Ok(EditOutcome::NotFound) };
        let edit_plan = async |tx: &mut Tx| {
            let Some(run) = ancestor::lock(tx, run_id).await? else {
                return Ok(RollBack(EditOutcome::NotExecuting));
            };
            // A queued run may have events that its next attempt supersedes.
            if run.status != RunStatus::Waiting {
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
            tx.execute(SET_METADATA, args![id, json!(plan.metadata)]).await?;
            for step in plan.steps.iter().filter(|step| effects.steps.contains(&step.step_number)) {
                write_step(tx, id, step).await?;
            }
            // A question to a human keeps the run waiting.
            let must_queue = !ancestor::awaits_human(tx, &run).await?;
            // The last event before a wait for a human says so.
            let waiting = (!must_queue).then_some(AgentStateChanged { state: AgentState::WaitingOnUser }.into());
            let updated = |base| {
                let updated = PlanUpdated { base: Some(base), plan: Box::new(plan.clone()) };
                std::iter::once(updated.into()).chain(waiting).collect()
            };
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
