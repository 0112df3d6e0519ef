//! The questions of runs below a top run, in the log of the top run, because its readers know no other run.
//!
//! A run that leaves with questions forwards them to its top run if that one waits; otherwise the top run's holder logs them
//! at LEAVE. Both look at the rows with the top run's lock, so each question is forwarded once.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::ancestor::{self, AnsweredRun};
use crate::{
    approval::{ApprovalKind, ApprovalStatus},
    event::{AgentState, AgentStateChanged, ApprovalRequested, ApprovalResolved, EventBody},
    event_id::EventId,
    run::RunStatus,
    storage::{
        Error,
        sql::{Tx, args, statements},
    },
};

statements! {
    /// Marks the open questions of the runs below a top run as forwarded; returns the new ones.
    FORWARD = "
        update agent_run_approvals
        set forwarded = true
        where top_run_id = $1
          and status = 'pending'
          and not forwarded
        returning id, run_id, call_id, kind, name, input, expires_at
    ",
    /// Returns the forwarded questions of a run.
    FORWARDED_OF_RUN = "
        select id
        from agent_run_approvals
        where top_run_id = $1
          and run_id = $2
          and forwarded
    ",
    /// Returns the open questions that a top run's log has of the runs below.
    OPEN_FORWARDED = "
        select id, run_id, call_id
        from agent_run_approvals
        where top_run_id = $1
          and forwarded
          and status = 'pending'
        order by id
    ",
}

#[derive(FromRow)]
struct QuestionRow {
    id: Uuid,
    run_id: Uuid,
    call_id: String,
    #[sqlx(try_from = "String")]
    kind: ApprovalKind,
    name: String,
    input: Json<Value>,
    expires_at: DateTime<Utc>,
}

/// Returns the events of questions that a top run's log does not have yet, in a transaction that has locked the top run. The
/// last event says that the run waits for a human.
pub async fn new_questions(tx: &mut Tx, top: Uuid) -> Result<Vec<EventBody<'static>>, Error> {
    let mut rows = tx.fetch_all::<QuestionRow>(FORWARD, args![top]).await?;
    rows.sort_by_key(|row| row.id);
    let mut bodies: Vec<_> = rows.into_iter().map(QuestionRow::into_body).collect();
    if !bodies.is_empty() {
        bodies.push(EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser, usage: None }));
    }
    Ok(bodies)
}

/// Forwards the questions of a run that leaves. Returns the top run if it waits; the caller publishes its events.
pub async fn ask_at_top(tx: &mut Tx, top: Uuid) -> Result<Option<AnsweredRun>, Error> {
    let Some(run) = ancestor::lock(tx, top).await?.filter(|run| run.status == RunStatus::Waiting) else {
        return Ok(None);
    };
    let mut bodies = new_questions(tx, top).await?;
    if bodies.is_empty() {
        return Ok(None);
    }
    let with_base = |base| {
        if let Some(EventBody::ApprovalRequested(first)) = bodies.first_mut() {
            first.base = Some(base);
        }
        bodies
    };
    ancestor::answer(tx, run, None, false, with_base).await.map(Some)
}

/// Returns those answers of a run which the log of the top run asks for, for that log.
pub async fn forwarded_answers(
    tx: &mut Tx,
    top: Uuid,
    run_id: Uuid,
    answers: &[EventBody<'static>],
) -> Result<Vec<ApprovalResolved<'static>>, Error> {
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx.fetch_all::<(Uuid,)>(FORWARDED_OF_RUN, args![top, run_id]).await?;
    let forwarded: HashSet<Uuid> = rows.into_iter().map(|row| row.0).collect();
    let resolved = answers.iter().filter_map(|body| match body {
        EventBody::ApprovalResolved(resolved) if forwarded.contains(&resolved.approval_id) => {
            Some(ApprovalResolved { base: None, child_run_id: Some(run_id), ..resolved.clone() })
        }
        _ => None,
    });
    Ok(resolved.collect())
}

/// Logs answers in the log of the top run, if it waits.
pub async fn answer_at_top(
    tx: &mut Tx,
    top: Uuid,
    resolved: Vec<ApprovalResolved<'static>>,
) -> Result<Option<AnsweredRun>, Error> {
    if resolved.is_empty() {
        return Ok(None);
    }
    match ancestor::lock(tx, top).await? {
        Some(run) if run.status == RunStatus::Waiting => {
            ancestor::answer(tx, run, None, false, |base| answers(resolved, base)).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the events of answers, the first with the base.
pub fn answers(resolved: Vec<ApprovalResolved<'static>>, base: EventId) -> Vec<EventBody<'static>> {
    let with_base = |(index, resolved)| {
        EventBody::ApprovalResolved(ApprovalResolved { base: (index == 0).then_some(base), ..resolved })
    };
    resolved.into_iter().enumerate().map(with_base).collect()
}

/// Returns the answers by the end of a top run to the questions in its log. The runs below settle their own questions.
pub async fn unanswered(
    tx: &mut Tx,
    top: Uuid,
    decision: ApprovalStatus,
) -> Result<Vec<ApprovalResolved<'static>>, Error> {
    let open = tx.fetch_all::<(Uuid, Uuid, String)>(OPEN_FORWARDED, args![top]).await?;
    let resolved = open.into_iter().map(|(approval_id, run_id, call_id)| ApprovalResolved {
        base: None,
        approval_id,
        call_id: call_id.into(),
        child_run_id: Some(run_id),
        decision,
        reason: None,
        edited_input: None,
    });
    Ok(resolved.collect())
}

impl QuestionRow {
    fn into_body(self) -> EventBody<'static> {
        EventBody::ApprovalRequested(ApprovalRequested {
            base: None,
            approval_id: self.id,
            call_id: self.call_id.into(),
            child_run_id: Some(self.run_id),
            kind: self.kind,
            name: self.name.into(),
            input: self.input.0.into(),
            expires_at: self.expires_at,
        })
    }
}
