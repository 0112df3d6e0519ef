//! The outcomes of children: a child's end answers the call of its parent in its own transaction.
//! `docs/decisions/0014-subagents-are-runs.md` has the protocol, and `tests/model` its model.
//!
//! Order matters: a child's end locks the child's conversation, the child, and then its parent's row. No transaction that has
//! locked a parent locks a child.

use chrono::Utc;
use serde_json::json;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::chunk::{chunk_of, writes_of};
use crate::storage::{
    Error,
    rows::traceparent,
    sql::{FencedWrites, Statement, Tx, args, statements},
};
use crate::{
    ending::Ending,
    event::{Event, EventBody, SubagentCompleted, ToolCallCompleted},
    event_id::EventId,
    excerpt,
    run::RunStatus,
    subagent::{SubagentRole, outcome_of},
    telemetry::Traceparent,
    tool::ToolError,
    usage::Usage,
};

/// A run with a new answer. The caller publishes the event, because it is committed.
#[derive(Debug, Clone)]
pub struct AnsweredRun {
    /// The run that was waiting.
    pub run_id: Uuid,
    /// The events of the answer's attempt.
    pub events: Vec<Event>,
    /// True if a worker can claim the run now.
    pub queued: bool,
    /// The run's conversation.
    pub conversation_id: Uuid,
    /// The span of the run's submission, if it was recorded.
    pub traceparent: Option<Traceparent>,
}

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

/// Selects the reason why the run `$1` waits: `human`, `children`, or none.
macro_rules! open_question {
    () => {
        "
            case
                when exists (
                        select 1
                        from agent_run_approvals a
                        where a.run_id = $1 and a.status = 'pending'
                    )
                    or exists (
                        select 1
                        from agent_run_tool_calls t
                        where t.run_id = $1 and t.status = 'client'
                    )
                then 'human'
                when exists (
                        select 1
                        from agent_run_tool_calls t
                        where t.run_id = $1
                          and t.status = 'called'
                          and t.child_run_id is not null
                          and t.completed_at is null
                    )
                then 'children'
            end"
    };
}
pub(in crate::storage) use open_question;

statements! {
    /// Locks a parent.
    LOCK_PARENT = "
        select conversation_id, status, attempt, archived_to, children_usage, traceparent
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Returns a call that its child has not answered.
    OPEN_CALL = "
        select name, {ms since:created_at}
        from agent_run_tool_calls
        where run_id = $1
          and call_id = $2
          and child_run_id = $3
          and status = 'called'
          and completed_at is null
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
    /// Takes the parent's next attempt, and queues the parent if it waits for nothing else.
    ANSWER = concat!("
        update agent_runs
        set attempt = $2,
            archived_to = $3,
            checkpoint = $3,
            children_usage = $4,
            attempt_reason = 'resumed',
            status = case when open.question is null then 'queued' else 'waiting' end,
            awaits = open.question
        from (select ", open_question!(), " as question) open
        where id = $1
        returning id, status = 'queued' as queued
    "),
    /// Returns the outcomes that no event has reported.
    UNLOGGED_OUTCOMES = "
        select t.call_id, t.name, t.child_run_id, t.output, t.error, t.duration_ms,
            c.subagent_role as role, c.status, c.usage, c.children_usage
        from agent_run_tool_calls t
        left join agent_runs c on c.id = t.child_run_id
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

#[derive(FromRow)]
struct LockedParent {
    conversation_id: Uuid,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    children_usage: Option<Json<Usage>>,
    traceparent: Option<String>,
}

/// Commits a child's end as the outcome of its parent's call. Returns the parent if it was waiting; the caller publishes its
/// events.
pub async fn answer_parent(tx: &mut Tx, call: &ParentCall, child: ChildEnd<'_>) -> Result<Option<AnsweredRun>, Error> {
    let parent = tx.fetch_optional::<LockedParent>(LOCK_PARENT, args![call.run_id]).await?;
    let Some(parent) = parent.filter(|parent| !parent.status.is_terminal()) else { return Ok(None) };
    let open =
        tx.fetch_optional::<(String, i64)>(OPEN_CALL, args![call.run_id, call.call_id.as_str(), child.run_id]).await?;
    let Some((name, duration_ms)) = open else { return Ok(None) };
    let mut total = parent.children_usage.map(|usage| usage.0).unwrap_or_default();
    total += child.usage;
    let outcome = outcome_of(child.ending, &excerpt::bytes(child.answer.to_owned(), MAX_OUTPUT));
    let is_waiting = parent.status == RunStatus::Waiting;
    let args = args![
        call.run_id,
        call.call_id.as_str(),
        if is_waiting { "completed" } else { "called" },
        outcome.as_ref().ok().cloned(),
        outcome.as_ref().err().map(|error| json!(error)),
        duration_ms.max(0)
    ];
    tx.execute(SET_OUTCOME, args).await?;
    if !is_waiting {
        tx.execute(SET_CHILDREN_USAGE, args![call.run_id, json!(total)]).await?;
        return Ok(None);
    }
    let logged = LoggedOutcome {
        call_id: call.call_id.clone(),
        name,
        child_run_id: child.run_id,
        role: call.role,
        status: child.ending.status(),
        outcome,
        usage: child.usage,
        duration_ms: duration_ms.max(0) as u64,
    };
    let attempt = parent.attempt as u32 + 1;
    let events = logged.events(EventId::first_of(attempt), Some(parent.archived_to));
    let chunk = chunk_of(None, &events);
    // Order matters: a second update of the row in this transaction would lock the parent's conversation.
    let fenced = FencedWrites::new(
        Statement::new(ANSWER, args![call.run_id, attempt, chunk.last, json!(total)]),
        writes_of(call.run_id, &chunk),
    );
    let (_, queued) = tx.write_fenced::<(Uuid, bool)>(fenced).await?.into_iter().next().ok_or_else(|| tx.no_row())?;
    Ok(Some(AnsweredRun {
        run_id: call.run_id,
        events,
        queued,
        conversation_id: parent.conversation_id,
        traceparent: traceparent(parent.traceparent),
    }))
}

/// The outcome of a child, for its parent's log.
struct LoggedOutcome {
    call_id: String,
    name: String,
    child_run_id: Uuid,
    role: SubagentRole,
    status: RunStatus,
    outcome: Result<String, ToolError>,
    usage: Usage,
    duration_ms: u64,
}

impl LoggedOutcome {
    /// Returns the two events, from this id on.
    fn events(&self, first: EventId, base: Option<EventId>) -> Vec<Event> {
        let (output, error) = (self.outcome.as_ref().ok(), self.outcome.as_ref().err().cloned());
        let now = Utc::now();
        let completed = EventBody::SubagentCompleted(SubagentCompleted {
            base,
            call_id: self.call_id.as_str().into(),
            child_run_id: self.child_run_id,
            role: self.role,
            status: self.status,
            output: output.map(|output| output.as_str().into()),
            error: error.clone(),
            usage: self.usage,
        });
        let call = EventBody::ToolCallCompleted(ToolCallCompleted {
            base: None,
            call_id: self.call_id.as_str().into(),
            name: self.name.as_str().into(),
            input: None,
            output: output.map(|output| output.as_str().into()),
            error,
            duration_ms: self.duration_ms,
        });
        vec![Event::new(first, now, &completed), Event::new(first.next(), now, &call)]
    }
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
}

/// Logs the outcomes of children that ended while the run had a worker, in a transaction that has locked the run. Returns
/// their events, from this id on.
pub async fn log_outcomes(tx: &mut Tx, run_id: Uuid, first: EventId) -> Result<Vec<Event>, Error> {
    let rows = tx.fetch_all::<UnloggedRow>(UNLOGGED_OUTCOMES, args![run_id]).await?;
    let (mut events, mut next) = (Vec::new(), first);
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
            name: row.name,
            child_run_id: row.child_run_id,
            role: row.role.and_then(|role| role.parse().ok()).unwrap_or_default(),
            status: row.status.and_then(|status| status.parse().ok()).unwrap_or(failed_or_completed),
            outcome,
            usage: usages.sum(),
            duration_ms: row.duration_ms.unwrap_or(0).max(0) as u64,
        };
        events.extend(logged.events(next, None));
        next = next.next().next();
    }
    Ok(events)
}

/// Returns whether a child of the run has no outcome yet, in a transaction that has locked the run.
pub async fn awaits_children(tx: &mut Tx, run_id: Uuid) -> Result<bool, Error> {
    Ok(tx.fetch_optional::<(String,)>(ANY_OPEN_CALL, args![run_id]).await?.is_some())
}
