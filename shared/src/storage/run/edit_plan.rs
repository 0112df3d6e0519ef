//! EDIT: a client changes a plan that is under way. If its run waits for its children or for a human, the change is made here;
//! otherwise the run's holder makes it before it begins the next steps, because it has the plan in memory.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::types::Json;
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
    /// The plan is changed. The caller publishes the run, and cancels the executors of changed steps.
    Edited {
        /// The plan as it is now.
        plan: Box<Plan>,
        /// The run of the plan.
        answered: Box<AnsweredRun>,
    },
    /// The holder of the run will change the plan so, unless it ends before.
    Accepted(Box<Plan>),
    /// The plan is not executed now.
    NotExecuting,
    /// The changed plan cannot be executed.
    Invalid(String),
    /// There is no such plan.
    NotFound,
}

/// A change that the holder of a planner's run has to make.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingEdit {
    /// Its number among the changes of the plan.
    pub number: i64,
    /// The change; `None` if only a later version can read it.
    pub edit: Option<PlanEdit>,
}

/// A row: the number and the change.
type EditRow = (i64, Json<Value>);

statements! {
    /// Stores a change for the holder.
    INSERT_EDIT = "
        insert into agent_plan_edits (plan_id, number, edit, created_at)
        values (
            $1,
            (select coalesce(max(number), 0) + 1 from agent_plan_edits where plan_id = $1),
            $2,
            {now}
        )
    ",
    /// Returns the changes that wait for the holder, in the order of their acceptance.
    PLAN_EDITS = "
        select number, edit
        from agent_plan_edits
        where plan_id = $1
        order by number
    ",
    /// Removes a change that is made.
    DELETE_EDIT = "
        delete from agent_plan_edits
        where plan_id = $1 and number = $2
    ",
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
    /// Returns the changes of a plan that wait for the holder of its run, oldest first.
    pub async fn plan_edits(&self, plan_id: Uuid) -> Result<Vec<PendingEdit>, Error> {
        let doing = "look for changes of a plan";
        let rows = self.database.fetch_all::<EditRow>(doing, PLAN_EDITS, args![plan_id]).await?;
        Ok(rows.into_iter().map(pending).collect())
    }

    /// Changes a plan. If its run waits, the run is queued, unless a human must answer; otherwise its holder makes the change.
    pub async fn edit_plan(&self, id: Uuid, edit: PlanEdit) -> Result<EditOutcome, Error> {
        let edit = match edit.checked() {
            Ok(edit) => edit,
            Err(error) => return Ok(EditOutcome::Invalid(error.message)),
        };
        let Some(run_id) = self.plan(id).await?.map(|plan| plan.run_id) else { return Ok(EditOutcome::NotFound) };
        let edit_plan = async |tx: &mut Tx| {
            let Some(run) = ancestor::lock(tx, run_id).await? else {
                return Ok(RollBack(EditOutcome::NotExecuting));
            };
            // The run's lock keeps everybody else from writing the plan.
            let Some(mut plan) = crate::storage::plans::plan_in(tx, id).await? else {
                return Ok(RollBack(EditOutcome::NotFound));
            };
            if plan.status != PlanStatus::Executing {
                return Ok(RollBack(EditOutcome::NotExecuting));
            }
            let (mut changed, mut made) = (BTreeSet::new(), Vec::new());
            for PendingEdit { number, edit } in tx.fetch_all(PLAN_EDITS, args![id]).await?.into_iter().map(pending) {
                // The holder has the last word about a change that cannot be made now.
                if let Some(Ok(now)) = edit.map(|edit| plan.edit(edit)) {
                    changed.extend(now);
                    made.push(number);
                }
            }
            match plan.edit(edit.clone()) {
                Ok(now) => changed.extend(now),
                Err(error) => return Ok(RollBack(EditOutcome::Invalid(error.message))),
            }
            // A queued run may have events that its next attempt supersedes.
            if run.status != RunStatus::Waiting {
                tx.execute(INSERT_EDIT, args![id, json!(edit)]).await?;
                return Ok(Commit(EditOutcome::Accepted(Box::new(plan))));
            }
            for number in made {
                tx.execute(DELETE_EDIT, args![id, number]).await?;
            }
            tx.execute(SET_METADATA, args![id, json!(plan.metadata)]).await?;
            for step in plan.steps.iter().filter(|step| changed.contains(&step.step_number)) {
                write_step(tx, id, step).await?;
            }
            // A question to a human keeps the run waiting.
            let must_queue = !ancestor::awaits_human(tx, &run).await?;
            // The last event before a wait for a human says so.
            let waiting =
                (!must_queue).then_some(AgentStateChanged { state: AgentState::WaitingOnUser, usage: None }.into());
            let updated = |base| {
                let updated = PlanUpdated { base: Some(base), plan: Box::new(plan.clone()) };
                std::iter::once(updated.into()).chain(waiting).collect()
            };
            let answered = ancestor::answer(tx, run, None, must_queue, updated).await?;
            let (plan, answered) = (Box::new(plan), Box::new(answered));
            Ok(Commit(EditOutcome::Edited { plan, answered }))
        };
        self.database.transact("change a plan", edit_plan).await
    }
}

fn pending((number, Json(edit)): EditRow) -> PendingEdit {
    PendingEdit { number, edit: PlanEdit::deserialize(edit).ok() }
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
