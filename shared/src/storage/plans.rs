//! Plans, as planners resume them and as the API shows them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{Tx, args, statements},
};
use crate::{
    agent::ModelRole,
    parts::MessageParts,
    plan::{Plan, PlanMetadata, PlanStatus, PlanStep, StepStatus},
    run::Run,
};

/// The stored role of a run in the work of a planner.
#[derive(Debug, Clone)]
pub struct StoredRole {
    /// The role.
    pub role: ModelRole,
    /// The only tools of the role; `None` for all tools of the agent.
    pub tools: Option<Vec<String>>,
}

/// Plans of one list.
const MAX_PLANS: usize = 20;

#[derive(FromRow)]
struct PlanRow {
    id: Uuid,
    run_id: Uuid,
    conversation_id: Uuid,
    call_id: String,
    user_message: String,
    strategy: String,
    execution_mode: String,
    status: String,
    metadata: Json<PlanMetadata>,
}

#[derive(FromRow)]
struct StepRow {
    plan_id: Uuid,
    step_number: i64,
    description: String,
    tools: Json<Vec<String>>,
    executor_required: bool,
    depends_on: Json<Vec<u32>>,
    status: String,
    result: Option<String>,
    error: Option<String>,
    child_run_id: Option<Uuid>,
}

#[derive(FromRow)]
struct RoleRow {
    role: String,
    permissions: Option<Json<Vec<String>>>,
}

/// The columns of `PlanRow`.
macro_rules! plan_columns {
    () => {
        "id, run_id, conversation_id, call_id, user_message, strategy, execution_mode, status,
            metadata"
    };
}

statements! {
    /// Returns a plan.
    PLAN = concat!("
        select ", plan_columns!(), "
        from agent_plans
        where id = $1
    "),
    /// Lists the plans of a run, newest first.
    PLANS_OF_RUN = concat!("
        select ", plan_columns!(), "
        from agent_plans
        where run_id = $1
        order by id desc
        limit $2
    "),
    /// Lists the plans of a conversation, newest first.
    PLANS_OF_CONVERSATION = concat!("
        select ", plan_columns!(), "
        from agent_plans
        where conversation_id = $1
        order by id desc
        limit $2
    "),
    /// Returns the newest plan of a conversation that an earlier run made.
    PLAN_BEFORE = concat!("
        select ", plan_columns!(), "
        from agent_plans
        where conversation_id = $1
          and run_id <> $2
          and created_at <= $3
        order by id desc
        limit 1
    "),
    /// Returns the steps of these plans.
    STEPS = "
        select plan_id, step_number, description, tools, executor_required, depends_on, status,
            result, error, child_run_id
        from agent_plan_steps
        where plan_id {in:$1}
        order by plan_id, step_number
    ",
    /// Returns the parts of the answer before a run of its conversation.
    PARTS_BEFORE = "
        select r.parts
        from agent_runs r
        join chat_messages m on m.id = r.output_message_id
        where r.conversation_id = $1
          and r.position < $2
          and r.parts is not null
          and m.superseded_at is null
        order by r.position desc
        limit 1
    ",
    /// Returns the role of a run.
    ROLE = "
        select role, permissions
        from agent_agents
        where run_id = $1
    ",
}

impl Storage {
    /// Returns a plan.
    pub async fn plan(&self, id: Uuid) -> Result<Option<Plan>, Error> {
        let rows = self.database.fetch_all("read a plan", PLAN, args![id]).await?;
        Ok(self.with_steps(rows).await?.pop())
    }

    /// Returns the newest plans of a run, newest first, at most 20.
    pub async fn plans_of_run(&self, run_id: Uuid) -> Result<Vec<Plan>, Error> {
        let rows = self.database.fetch_all("list the plans of a run", PLANS_OF_RUN, args![run_id, MAX_PLANS]).await?;
        self.with_steps(rows).await
    }

    /// Returns the newest plans of a conversation, newest first, at most 20.
    pub async fn plans_of_conversation(&self, id: Uuid) -> Result<Vec<Plan>, Error> {
        self.newest_plans(id, MAX_PLANS).await
    }

    /// Returns the newest plan of a conversation.
    pub async fn newest_plan(&self, conversation_id: Uuid) -> Result<Option<Plan>, Error> {
        Ok(self.newest_plans(conversation_id, 1).await?.pop())
    }

    /// Returns the open plan of an earlier run of the conversation.
    pub async fn open_plan_before(&self, run: &Run) -> Result<Option<Plan>, Error> {
        let args = args![run.conversation_id, run.id, Some(run.created_at)];
        let rows = self.database.fetch_all("read the plan before a run", PLAN_BEFORE, args).await?;
        Ok(self.with_steps(rows).await?.pop().filter(Plan::is_open))
    }

    /// Returns the round of the questions that the answer before a run has asked; 0 if it asked none.
    pub async fn round_before(&self, conversation_id: Uuid, position: i64) -> Result<u32, Error> {
        let doing = "read the questions of the last answer";
        let args = args![conversation_id, position];
        let row: Option<(Json<Value>,)> = self.database.fetch_optional(doing, PARTS_BEFORE, args).await?;
        // A later version may write other fields.
        let parts = row.and_then(|(Json(parts),)| MessageParts::deserialize(parts).ok());
        Ok(parts.map_or(0, |parts| parts.round_of_questions()))
    }

    /// Returns the role of a run; `None` if the run has none yet.
    pub async fn role(&self, run_id: Uuid) -> Result<Option<StoredRole>, Error> {
        let row = self.database.fetch_optional::<RoleRow>("read the role of a run", ROLE, args![run_id]).await?;
        Ok(row.and_then(|row| {
            Some(StoredRole { role: row.role.parse().ok()?, tools: row.permissions.map(|tools| tools.0) })
        }))
    }

    async fn newest_plans(&self, conversation_id: Uuid, most: usize) -> Result<Vec<Plan>, Error> {
        let doing = "list the plans of a conversation";
        let rows = self.database.fetch_all(doing, PLANS_OF_CONVERSATION, args![conversation_id, most]).await?;
        self.with_steps(rows).await
    }

    async fn with_steps(&self, rows: Vec<PlanRow>) -> Result<Vec<Plan>, Error> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let mut steps = BTreeMap::<Uuid, Vec<PlanStep>>::new();
        for row in self.database.fetch_all::<StepRow>("read the steps of plans", STEPS, args![ids]).await? {
            steps.entry(row.plan_id).or_default().push(row.into());
        }
        Ok(rows.into_iter().map(|row| row.with(&mut steps)).collect())
    }
}

/// Returns a plan within a transaction.
pub async fn plan_in(tx: &mut Tx, id: Uuid) -> Result<Option<Plan>, Error> {
    let Some(row) = tx.fetch_optional::<PlanRow>(PLAN, args![id]).await? else { return Ok(None) };
    let rows = tx.fetch_all::<StepRow>(STEPS, args![vec![id]]).await?;
    Ok(Some(row.with(&mut BTreeMap::from([(id, rows.into_iter().map(PlanStep::from).collect())]))))
}

impl PlanRow {
    fn with(self, steps: &mut BTreeMap<Uuid, Vec<PlanStep>>) -> Plan {
        Plan {
            id: self.id,
            run_id: self.run_id,
            session_id: self.conversation_id,
            call_id: self.call_id,
            user_message: self.user_message,
            strategy: self.strategy,
            execution_mode: self.execution_mode.parse().unwrap_or_default(),
            status: self.status.parse().unwrap_or(PlanStatus::Failed),
            steps: steps.remove(&self.id).unwrap_or_default(),
            metadata: self.metadata.0,
        }
    }
}

impl From<StepRow> for PlanStep {
    fn from(row: StepRow) -> Self {
        Self {
            step_number: row.step_number as u32,
            description: row.description,
            tools: row.tools.0,
            executor_required: row.executor_required,
            depends_on: row.depends_on.0,
            status: row.status.parse().unwrap_or(StepStatus::Failed),
            result: row.result,
            error: row.error,
            child_run_id: row.child_run_id,
        }
    }
}
