//! The runs above a run. A transaction of the run below writes to them, by the write rule.
//!
//! Order matters: such a transaction locks its run's conversation, its run, that run's parent, and then the top run. It
//! updates the row of each run above once, because a second update would lock that run's conversation. No transaction that
//! has locked a run locks one below it.

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
    event::{Event, EventBody},
    event_id::EventId,
    run::RunStatus,
    telemetry::Traceparent,
    usage::Usage,
};

/// A run with a new answer. The caller publishes the event, because it is committed.
#[derive(Debug, Clone)]
pub struct AnsweredRun {
    /// The run that was waiting.
    pub run_id: Uuid,
    /// The events of the answer's attempt; empty for a run that was queued before.
    pub events: Vec<Event>,
    /// True if a worker can claim the run now.
    pub queued: bool,
    /// The run's conversation.
    pub conversation_id: Uuid,
    /// The span of the run's submission, if it was recorded.
    pub traceparent: Option<Traceparent>,
}

/// Selects the reason why the run `$1` waits: `human`, `children`, or none. A run that executes a plan looks after each answer
/// what it can begin, so its children are no reason.
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
                        from agent_run_approvals a
                        where a.top_run_id = $1 and a.forwarded and a.status = 'pending'
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
                    and not exists (
                        select 1
                        from agent_plans p
                        where p.run_id = $1 and p.status = 'executing'
                    )
                then 'children'
            end"
    };
}
pub(in crate::storage) use open_question;

statements! {
    /// Locks a run above another one.
    LOCK_ANCESTOR = "
        select id, conversation_id, status, awaits, attempt, archived_to, children_usage,
            traceparent
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Returns why a run waits.
    OPEN_QUESTION = concat!("
        select ", open_question!(), "
    "),
    /// Takes the next attempt of a waiting run, and queues the run if it waits for nothing else, or in any case if `$5`.
    ANSWER = concat!("
        update agent_runs
        set attempt = $2,
            archived_to = $3,
            checkpoint = $3,
            children_usage = coalesce($4, children_usage),
            attempt_reason = 'resumed',
            status = case when open.question is null or $5 then 'queued' else 'waiting' end,
            awaits = case when $5 then null else open.question end
        from (select ", open_question!(), " as question) open
        where id = $1
        returning id, status = 'queued' as queued
    "),
}

/// The locked row of a run above another one.
#[derive(FromRow)]
pub struct LockedAncestor {
    pub id: Uuid,
    pub conversation_id: Uuid,
    #[sqlx(try_from = "String")]
    pub status: RunStatus,
    awaits: Option<String>,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    pub children_usage: Option<Json<Usage>>,
    traceparent: Option<String>,
}

impl LockedAncestor {
    /// Returns a queued run without new events, for which the caller wakes a worker again.
    pub fn woken(self) -> AnsweredRun {
        let (run_id, conversation_id, traceparent) = (self.id, self.conversation_id, traceparent(self.traceparent));
        AnsweredRun { run_id, events: Vec::new(), queued: true, conversation_id, traceparent }
    }
}

/// Locks a run above another one; `None` if the run has ended or is gone.
pub async fn lock(tx: &mut Tx, run_id: Uuid) -> Result<Option<LockedAncestor>, Error> {
    let locked = tx.fetch_optional::<LockedAncestor>(LOCK_ANCESTOR, args![run_id]).await?;
    Ok(locked.filter(|run| !run.status.is_terminal()))
}

/// Returns whether a human must answer a waiting run, after what the transaction has written.
pub async fn awaits_human(tx: &mut Tx, run: &LockedAncestor) -> Result<bool, Error> {
    if run.awaits.as_deref() == Some("children") {
        return Ok(false);
    }
    let question = tx.fetch_optional::<(Option<String>,)>(OPEN_QUESTION, args![run.id]).await?;
    Ok(question.and_then(|row| row.0).as_deref() == Some("human"))
}

/// Writes to a waiting run, and queues it if it waits for nothing else, or if it must be queued. `bodies` makes at least one event; the first has the
/// base. The caller publishes the events.
pub async fn answer<'a>(
    tx: &mut Tx,
    run: LockedAncestor,
    children_usage: Option<Usage>,
    must_queue: bool,
    bodies: impl FnOnce(EventId) -> Vec<EventBody<'a>>,
) -> Result<AnsweredRun, Error> {
    let attempt = run.attempt as u32 + 1;
    let events = Event::sequence(EventId::first_of(attempt), Utc::now(), &bodies(run.archived_to));
    let chunk = chunk_of(None, &events);
    let usage = children_usage.map(|usage| json!(usage));
    let queue = Statement::new(ANSWER, args![run.id, attempt, chunk.last, usage, must_queue]);
    let written = tx.write_fenced::<(Uuid, bool)>(FencedWrites::new(queue, writes_of(run.id, &chunk))).await?;
    let (_, queued) = written.into_iter().next().ok_or_else(|| tx.no_row())?;
    let traceparent = traceparent(run.traceparent);
    Ok(AnsweredRun { run_id: run.id, events, queued, conversation_id: run.conversation_id, traceparent })
}
