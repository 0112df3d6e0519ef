//! The outcomes of children: a child's end answers the call of its parent in its own transaction.
//! `docs/decisions/0014-subagents-are-runs.md` has the protocol, and `tests/model` its model.

use chrono::Utc;
use serde_json::json;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    CallState, NewChild,
    ancestor::{self, AnsweredRun},
    forwarded::{answer_at_top, answers},
};
use crate::storage::{
    Error,
    sql::{Tx, args, statements},
};
use crate::{
    ending::Ending,
    event::{
        AgentState, AgentStateChanged, ApprovalResolved, Event, EventBody, ExecutedBy, SubagentCompleted,
        ToolCallCompleted,
    },
    event_id::EventId,
    excerpt,
    plan::is_own_call,
    run::RunStatus,
    subagent::{SubagentRole, outcome_of},
    tool::ToolError,
    usage::Usage,
};

/// The call that a child answers.
#[derive(Debug, Clone)]
pub struct ParentCall {
    /// The parent.
    pub run_id: Uuid,
    /// Its call.
    pub call_id: String,
    /// The child's part.
    pub role: SubagentRole,
}

/// A child's end.
pub struct ChildEnd<'a> {
    /// The child.
    pub run_id: Uuid,
    /// How it ended.
    pub ending: &'a Ending,
    /// Its text.
    pub answer: &'a str,
    /// Its usage, with that of its own children.
    pub usage: Usage,
}

/// Longest output of a child, in bytes. The parent's model reads fewer characters.
const MAX_OUTPUT: usize = 256 * 1024;

statements! {
    /// Returns a call that its child has not answered.
    OPEN_CALL = "
        select t.name, {ms since:t.created_at} as duration_ms, s.plan_id, s.step_number
        from agent_run_tool_calls t
        left join agent_plan_steps s on s.child_run_id = t.child_run_id
        where t.run_id = $1
          and t.call_id = $2
          and t.child_run_id = $3
          and t.status = 'called'
          and t.completed_at is null
    ",
    /// Stores the outcome of a call.
    SET_OUTCOME = "
        update agent_run_tool_calls
        set status = $3,
            output = $4,
            error = $5,
            duration_ms = $6,
            completed_at = {now}
        where run_id = $1 and call_id = $2
    ",
    /// Stores the usage of the runs below a run.
    SET_CHILDREN_USAGE = "
        update agent_runs
        set children_usage = $2
        where id = $1
    ",
    /// Returns the outcomes that no event has reported.
    UNLOGGED_OUTCOMES = "
        select t.call_id, t.name, t.child_run_id, t.output, t.error, t.duration_ms,
            c.subagent_role as role, c.status, c.usage, c.children_usage, s.plan_id, s.step_number
        from agent_run_tool_calls t
        left join agent_runs c on c.id = t.child_run_id
        left join agent_plan_steps s on s.child_run_id = t.child_run_id
        where t.run_id = $1
          and t.status = 'called'
          and t.child_run_id is not null
          and t.completed_at is not null
        order by t.completed_at, t.step, t.position
    ",
    /// Marks a call whose outcome an event reports.
    SET_LOGGED = "
        update agent_run_tool_calls
        set status = 'completed'
        where run_id = $1 and call_id = $2
    ",
    /// Returns a call of the run that its child has not answered.
    ANY_OPEN_CALL = "
        select call_id
        from agent_run_tool_calls
        where run_id = $1
          and status = 'called'
          and child_run_id is not null
          and completed_at is null
        limit 1
    ",
}

/// Commits a child's end as the outcome of its parent's call, and the answers to the child's questions in the log of the top
/// run. Returns the runs that were waiting; the caller publishes their events.
pub async fn answer_ancestors(
    tx: &mut Tx,
    call: &ParentCall,
    top: Uuid,
    child: ChildEnd<'_>,
    resolved: Vec<ApprovalResolved<'static>>,
) -> Result<Vec<AnsweredRun>, Error> {
    let (of_parent, of_top) = if top == call.run_id { (resolved, Vec::new()) } else { (Vec::new(), resolved) };
    let parent = answer_parent(tx, call, child, of_parent).await?;
    let top = answer_at_top(tx, top, of_top).await?;
    Ok(parent.into_iter().chain(top).collect())
}

async fn answer_parent(
    tx: &mut Tx,
    call: &ParentCall,
    child: ChildEnd<'_>,
    resolved: Vec<ApprovalResolved<'static>>,
) -> Result<Option<AnsweredRun>, Error> {
    let Some(parent) = ancestor::lock(tx, call.run_id).await? else { return Ok(None) };
    let args = args![call.run_id, call.call_id.as_str(), child.run_id];
    let Some(open) = tx.fetch_optional::<OpenChildCall>(OPEN_CALL, args).await? else { return Ok(None) };
    let duration_ms = open.duration_ms.max(0);
    let mut total = parent.children_usage.as_ref().map(|usage| usage.0).unwrap_or_default();
    total += child.usage;
    let outcome = outcome_of(child.ending, &excerpt::bytes(child.answer.to_owned(), MAX_OUTPUT));
    let is_waiting = parent.status == RunStatus::Waiting;
    let args = args![
        call.run_id,
        call.call_id.as_str(),
        if is_waiting { "completed" } else { "called" },
        outcome.as_ref().ok().cloned(),
        outcome.as_ref().err().map(|error| json!(error)),
        duration_ms
    ];
    tx.execute(SET_OUTCOME, args).await?;
    if !is_waiting {
        tx.execute(SET_CHILDREN_USAGE, args![call.run_id, json!(total)]).await?;
        // A claim skips a locked row, so a worker that was woken before may not have seen the parent.
        return Ok((parent.status == RunStatus::Queued).then(|| parent.woken()));
    }
    let logged = LoggedOutcome {
        call_id: call.call_id.clone(),
        name: open.name,
        child_run_id: child.run_id,
        role: call.role,
        status: child.ending.status(),
        outcome,
        usage: child.usage,
        duration_ms: duration_ms as u64,
        plan_id: open.plan_id,
        step_number: open.step_number,
    };
    // The last event before a wait says so.
    let waits = ancestor::awaits_human(tx, &parent).await?;
    let waiting =
        waits.then_some(EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser, usage: None }));
    let bodies = |base| {
        let outcome_base = resolved.is_empty().then_some(base);
        answers(resolved, base).into_iter().chain(logged.bodies(outcome_base)).chain(waiting).collect()
    };
    let is_queued = call.role.works_for_plan() && !waits;
    ancestor::answer(tx, parent, Some(total), is_queued, bodies).await.map(Some)
}

/// The outcome of a child, for its parent's log.
pub struct LoggedOutcome {
    call_id: String,
    name: String,
    child_run_id: Uuid,
    role: SubagentRole,
    status: RunStatus,
    outcome: Result<String, ToolError>,
    usage: Usage,
    duration_ms: u64,
    plan_id: Option<Uuid>,
    step_number: Option<i64>,
}

impl LoggedOutcome {
    /// Returns the outcome of a call whose child does not start.
    pub fn refused(call: &CallState, child: &NewChild, error: ToolError) -> Self {
        let of_plan = |name: &str| call.input.get(name).filter(|_| is_own_call(&call.name));
        Self {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            child_run_id: child.child_run_id,
            role: child.role.parse().unwrap_or_default(),
            status: RunStatus::Failed,
            outcome: Err(error),
            usage: Usage::default(),
            duration_ms: 0,
            plan_id: of_plan("plan_id").and_then(|id| id.as_str()?.parse().ok()),
            step_number: of_plan("step_number").and_then(serde_json::Value::as_i64),
        }
    }

    /// Returns whether a plan continues after the outcome.
    pub const fn is_for_plan(&self) -> bool {
        self.role.works_for_plan()
    }

    /// Returns the events of the outcome. A call that a plan made has no event of its own.
    pub fn bodies(&self, base: Option<EventId>) -> Vec<EventBody<'_>> {
        let (output, error) = (self.outcome.as_ref().ok(), self.outcome.as_ref().err().cloned());
        let completed = EventBody::SubagentCompleted(SubagentCompleted {
            base,
            call_id: self.call_id.as_str().into(),
            child_run_id: self.child_run_id,
            role: self.role,
            status: self.status,
            output: output.map(|output| output.as_str().into()),
            error: error.clone(),
            usage: self.usage,
            plan_id: self.plan_id,
            step_number: self.step_number.map(|number| number as u32),
        });
        if self.role.works_for_plan() {
            return vec![completed];
        }
        let call = EventBody::ToolCallCompleted(ToolCallCompleted {
            base: None,
            call_id: self.call_id.as_str().into(),
            name: self.name.as_str().into(),
            by: Some(ExecutedBy::Worker),
            input: None,
            output: output.map(|output| output.as_str().into()),
            error,
            entities: Vec::new(),
            files: Vec::new(),
            duration_ms: self.duration_ms,
        });
        vec![completed, call]
    }
}

#[derive(FromRow)]
struct OpenChildCall {
    name: String,
    duration_ms: i64,
    plan_id: Option<Uuid>,
    step_number: Option<i64>,
}

#[derive(FromRow)]
struct UnloggedRow {
    call_id: String,
    name: String,
    child_run_id: Uuid,
    output: Option<String>,
    error: Option<Json<ToolError>>,
    duration_ms: Option<i64>,
    role: Option<String>,
    status: Option<String>,
    usage: Option<Json<Usage>>,
    children_usage: Option<Json<Usage>>,
    plan_id: Option<Uuid>,
    step_number: Option<i64>,
}

/// Outcomes that LEAVE logs.
pub struct LoggedOutcomes {
    /// Their events.
    pub events: Vec<Event>,
    /// True if a plan has work because of them.
    pub for_plan: bool,
}

/// Logs the outcomes of children that ended while the run had a worker, in a transaction that has locked the run. Returns
/// their events, from this id on.
pub async fn log_outcomes(tx: &mut Tx, run_id: Uuid, first: EventId) -> Result<LoggedOutcomes, Error> {
    let rows = tx.fetch_all::<UnloggedRow>(UNLOGGED_OUTCOMES, args![run_id]).await?;
    let (mut events, mut next, mut for_plan) = (Vec::new(), first, false);
    for row in rows {
        tx.execute(SET_LOGGED, args![run_id, row.call_id.as_str()]).await?;
        let usages = [row.usage, row.children_usage].into_iter().flatten().map(|usage| usage.0);
        let outcome = match row.error {
            Some(error) => Err(error.0),
            None => Ok(row.output.unwrap_or_default()),
        };
        let failed_or_completed = if outcome.is_ok() { RunStatus::Completed } else { RunStatus::Failed };
        let logged = LoggedOutcome {
            call_id: row.call_id,
            // A child that its tree has refused has no row.
            role: row.role.and_then(|role| role.parse().ok()).unwrap_or_else(|| SubagentRole::of_call(&row.name)),
            name: row.name,
            child_run_id: row.child_run_id,
            status: row.status.and_then(|status| status.parse().ok()).unwrap_or(failed_or_completed),
            outcome,
            usage: usages.sum(),
            duration_ms: row.duration_ms.unwrap_or(0).max(0) as u64,
            plan_id: row.plan_id,
            step_number: row.step_number,
        };
        for_plan |= logged.role.works_for_plan();
        let new = Event::sequence(next, Utc::now(), &logged.bodies(None));
        next = new.last().map_or(next, |event| event.id.next());
        events.extend(new);
    }
    Ok(LoggedOutcomes { events, for_plan })
}

/// Returns whether a child of the run has no outcome yet, in a transaction that has locked the run.
pub async fn awaits_children(tx: &mut Tx, run_id: Uuid) -> Result<bool, Error> {
    Ok(tx.fetch_optional::<(String,)>(ANY_OPEN_CALL, args![run_id]).await?.is_some())
}
