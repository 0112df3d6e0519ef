//! The rows of plans and of roles, which a planner's holder writes with its events.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::ModelRole;
use crate::plan::{Plan, PlanStep};
use crate::storage::{
    Error,
    sql::{Statement, Tx, args, id_text, optional_id_text, statements},
};

/// A step of a plan with its current state.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    /// The plan.
    pub plan_id: Uuid,
    /// The step.
    pub step: PlanStep,
}

/// The part of a run in the work of a planner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewRole {
    /// UUIDv7.
    #[serde(serialize_with = "id_text")]
    pub id: Uuid,
    /// The run that has the role: the planner's own, or a child's.
    #[serde(serialize_with = "id_text")]
    pub of_run: Uuid,
    /// The role.
    pub role: ModelRole,
    /// The model profile of the role, if it has one.
    pub profile: Option<String>,
    /// The model, as `<provider>/<name>`, if it is known.
    pub model: Option<String>,
    /// Tokens that the conversation may have for the model.
    pub token_budget: u32,
    /// The only tools of the role; `None` for all tools of the agent.
    pub tools: Option<Vec<String>>,
}

/// A client's change of a plan that its holder has made or refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TakenEdit {
    /// The plan.
    #[serde(serialize_with = "id_text")]
    pub plan_id: Uuid,
    /// The number of the change.
    pub number: i64,
}

impl StepState {
    /// Returns whether both are states of one step.
    pub fn is_of_step(&self, other: &Self) -> bool {
        self.plan_id == other.plan_id && self.step.step_number == other.step.step_number
    }
}

statements! {
    /// Stores plans with their current state.
    UPSERT_PLANS = "
        insert into agent_plans (
            id, run_id, conversation_id, call_id, user_message, strategy, execution_mode, status,
            metadata, created_at, updated_at
        )
        select {uuid:value->>'id'}, {uuid:value->>'run_id'}, {uuid:value->>'conversation_id'},
            value->>'call_id', value->>'user_message', value->>'strategy',
            value->>'execution_mode', value->>'status', value->'metadata', {now}, {now}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (id) do update
        set status = excluded.status,
            metadata = excluded.metadata,
            updated_at = excluded.updated_at
    ",
    /// Removes the steps that a later version of a plan does not have.
    DROP_STEPS = "
        delete from agent_plan_steps
        where exists (
            select 1
            from {each:$1}
            where {uuid:value->>'id'} = agent_plan_steps.plan_id
              and cast(value->>'step_count' as bigint) < agent_plan_steps.step_number
              and {fenced:cast(value->>'run_id' as uuid)}
        )
    ",
    /// Stores steps with their current state.
    UPSERT_STEPS = "
        insert into agent_plan_steps (
            plan_id, step_number, description, tools, executor_required, depends_on, status, result,
            error, child_run_id, updated_at
        )
        select {uuid:value->>'plan_id'}, cast(value->>'step_number' as bigint),
            value->>'description', value->'tools',
            cast(value->>'executor_required' as boolean), value->'depends_on', value->>'status',
            value->>'result', value->>'error', {uuid:value->>'child_run_id'}, {now}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (plan_id, step_number) do update
        set description = excluded.description,
            tools = excluded.tools,
            executor_required = excluded.executor_required,
            depends_on = excluded.depends_on,
            status = excluded.status,
            result = excluded.result,
            error = excluded.error,
            child_run_id = excluded.child_run_id,
            updated_at = excluded.updated_at
    ",
    /// Stores new roles. A later attempt writes the role of its run again.
    INSERT_ROLES = "
        insert into agent_agents (
            id, run_id, role, profile, model, token_budget, permissions, created_at
        )
        select {uuid:value->>'id'}, {uuid:value->>'of_run'}, value->>'role', value->>'profile',
            value->>'model', cast(value->>'token_budget' as bigint), value->'tools', {now}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (run_id) do nothing
    ",
    /// Removes the changes that a holder has made or refused.
    TAKE_EDITS = "
        delete from agent_plan_edits
        where exists (
            select 1
            from {each:$1}
            where {uuid:value->>'plan_id'} = agent_plan_edits.plan_id
              and cast(value->>'number' as bigint) = agent_plan_edits.number
              and {fenced:cast(value->>'run_id' as uuid)}
        )
    ",
    /// Removes the changes that an ended plan has not got.
    DROP_EDITS = "
        delete from agent_plan_edits
        where exists (
            select 1
            from {each:$1}
            where {uuid:value->>'id'} = agent_plan_edits.plan_id
              and value->>'status' in ('completed', 'failed')
              and {fenced:cast(value->>'run_id' as uuid)}
        )
    ",
    /// Counts the changes that wait for the plans of a run that are executed.
    PENDING_EDITS = "
        select count(*)
        from agent_plan_edits e
        join agent_plans p on p.id = e.plan_id
        where p.run_id = $1
          and p.status = 'executing'
    ",
}

impl Serialize for StepState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            #[serde(serialize_with = "id_text")]
            plan_id: Uuid,
            step_number: u32,
            description: &'a str,
            tools: &'a [String],
            executor_required: bool,
            depends_on: &'a [u32],
            status: &'static str,
            result: Option<&'a str>,
            error: Option<&'a str>,
            #[serde(serialize_with = "optional_id_text")]
            child_run_id: Option<Uuid>,
        }
        let Self { plan_id, step } = self;
        let row = Row {
            plan_id: *plan_id,
            step_number: step.step_number,
            description: &step.description,
            tools: &step.tools,
            executor_required: step.executor_required,
            depends_on: &step.depends_on,
            status: step.status.as_str(),
            result: step.result.as_deref(),
            error: step.error.as_deref(),
            child_run_id: step.child_run_id,
        };
        row.serialize(serializer)
    }
}

/// Returns whether changes wait for the plan of a run, beside those that this write takes.
pub async fn awaits_edits(tx: &mut Tx, run_id: Uuid, taken: usize) -> Result<bool, Error> {
    let (pending,) = tx.fetch_one::<(i64,)>(PENDING_EDITS, args![run_id]).await?;
    Ok(pending > taken as i64)
}

/// Returns the row of a plan, without its steps.
pub fn plan_row(plan: &Plan) -> Value {
    json!({
        "id": plan.id.simple().to_string(),
        "conversation_id": plan.session_id.simple().to_string(),
        "call_id": plan.call_id,
        "user_message": plan.user_message,
        "strategy": plan.strategy,
        "execution_mode": plan.execution_mode,
        "status": plan.status,
        "metadata": plan.metadata,
        "step_count": plan.steps.len(),
    })
}

/// Returns the writes of plans, steps, roles and taken changes, whose elements have the `run_id` of the holder's run.
pub fn planning_rows(plans: Vec<Value>, steps: Vec<Value>, roles: Vec<Value>, taken: Vec<Value>) -> Vec<Statement> {
    let writes = [
        (UPSERT_PLANS, plans.clone()),
        (DROP_STEPS, plans.clone()),
        (DROP_EDITS, plans),
        (UPSERT_STEPS, steps),
        (INSERT_ROLES, roles),
        (TAKE_EDITS, taken),
    ];
    let some = writes.into_iter().filter(|(_, elements)| !elements.is_empty());
    some.map(|(sql, elements)| Statement::new(sql, args![Value::from(elements)])).collect()
}
