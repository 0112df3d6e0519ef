//! ANSWER: a human decides about a call, or a client sends the result of its own call. No worker holds the run
//! meanwhile.
//!
//! By the write rule, the answer takes an attempt with one event, and a later attempt resumes there. The last missing
//! answer returns the run to the queue.

use chrono::Utc;
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    ArchiveChunk,
    ancestor::{AnsweredRun, open_question},
    attempt::{LockedRun, TakenAttempt, lock_run, take_attempt},
    chunk::writes_of,
    forwarded::{answer_at_top, forwarded_answers},
};
use crate::storage::{
    Error, Storage,
    rows::{ApprovalRow, approval_columns, traceparent},
    sql::{Commit, FencedWrites, RollBack, Settle, Statement, Tx, args, statements},
};
use crate::{
    approval::{Approval, ApprovalKind, ApprovalStatus, Decision},
    event::{ApprovalResolved, Event, EventBody, ExecutedBy, ToolCallCompleted},
    file::ToolFile,
    plan,
    run::RunStatus,
    storable::{storable, storable_json},
    tool::{ToolCallStatus, ToolError},
};

/// The outcome of an answer.
#[derive(Debug)]
pub enum AnswerOutcome {
    /// The answer counts. The run resumes if it waits for no other answer.
    Accepted {
        /// The run that asked.
        run: AnsweredRun,
        /// The top run above it, if its log has the question.
        top: Option<AnsweredRun>,
    },
    /// An earlier answer has settled the question; this is its record.
    Decided(Box<Approval>),
    /// The call has a result already.
    Completed,
    /// The answer came after the expiry.
    Expired,
    /// The run has ended, or does not wait for this answer.
    NotWaiting,
    /// The edited input breaks the tool's schema; the sentence says how.
    InvalidInput(String),
    /// There is no such question, call or run.
    NotFound,
}

/// The result of a call that the client executed.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientResult {
    /// The tool's output.
    Output(String),
    /// The client's message about a failed call.
    Error(String),
}

/// A decision with its author.
#[derive(Debug, Clone)]
pub struct DecisionBy<'a> {
    /// Owner id of the author.
    pub by: &'a str,
    /// The decision itself.
    pub decision: &'a Decision,
    /// The check of its edited arguments against the tool's schema, made by the caller.
    pub checked: Result<(), InvalidInput>,
}

/// The problem of edited arguments, as a sentence. The caller of `decide` checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidInput(
    /// The violations, with their paths.
    pub String,
);

#[derive(FromRow)]
struct ResumedRow {
    queued: bool,
    conversation_id: Uuid,
    traceparent: Option<String>,
    top_run_id: Option<Uuid>,
}

#[derive(FromRow)]
struct PendingApprovalRow {
    #[sqlx(flatten)]
    approval: ApprovalRow,
    expired: bool,
}

statements! {
    /// Returns the run that asks a question of this run's log.
    ASKING_RUN = "
        select run_id
        from agent_run_approvals
        where id = $1 and (run_id = $2 or top_run_id = $2)
    ",
    /// Returns the schema of a pending question of an owner's run.
    APPROVAL_SCHEMA = "
        select a.schema
        from agent_run_approvals a
        join agent_runs r on r.id = a.run_id
        where a.id = $1
          and a.run_id = $2
          and r.owner_id = $3
          and a.status = 'pending'
    ",
    /// Returns a question, and whether it has expired.
    APPROVAL = concat!("
        select ", approval_columns!(), ", expires_at < {now} as expired
        from agent_run_approvals
        where id = $1 and run_id = $2
    "),
    /// Stores a decision.
    DECIDE = "
        update agent_run_approvals
        set status = $2,
            reason = $3,
            edited_input = $4,
            decided_at = {now},
            decided_by = $5
        where id = $1
    ",
    /// Returns a call of the client, and whether it has expired.
    CALL = "
        select status, name, files, coalesce(expires_at < {now}, false) as expired,
            {ms since:created_at} as waited_ms
        from agent_run_tool_calls
        where run_id = $1 and call_id = $2
    ",
    /// Stores the result of a client's call.
    COMPLETE_CALL = "
        update agent_run_tool_calls
        set status = 'completed',
            output = $3,
            error = $4,
            duration_ms = $5,
            completed_at = {now}
        where run_id = $1 and call_id = $2
    ",
    /// Archives the answer's event. Queues the run if it waits for no other answer.
    RESUME = concat!("
        update agent_runs
        set archived_to = $2,
            checkpoint = $2,
            status = case when open.question is null then 'queued' else 'waiting' end,
            awaits = open.question,
            attempt_reason = 'resumed'
        from (select ", open_question!(), " as question) open
        where id = $1
        returning id, status = 'queued' as queued, conversation_id, traceparent, top_run_id
    "),
    /// Returns the run, if it is this owner's and its conversation is not deleted. `$2` may be null for any owner.
    WAITING_RUN = "
        select r.id
        from agent_runs r
        join chat_conversations c on c.id {is:r.conversation_id}
        where r.id = $1
          and ($2 is null or r.owner_id = $2)
          and coalesce(c.deleted_at is null, false)
    ",
}

impl Storage {
    /// Returns the run that asks a question: this one, or one below it. `None` if there is no such question.
    pub async fn asking_run(&self, run_id: Uuid, approval_id: Uuid) -> Result<Option<Uuid>, Error> {
        let doing = "find the run that asks a question";
        let row = self.database.fetch_optional::<(Uuid,)>(doing, ASKING_RUN, args![approval_id, run_id]).await?;
        Ok(row.map(|row| row.0))
    }

    /// Returns the schema for the arguments of a pending question; `None` if there is no such question.
    pub async fn approval_schema(&self, owner: &str, run_id: Uuid, approval_id: Uuid) -> Result<Option<Value>, Error> {
        let schema = self.database.fetch_optional::<(Json<Value>,)>(
            "read the schema of an approval",
            APPROVAL_SCHEMA,
            args![approval_id, run_id, owner.to_owned()],
        );
        let schema = schema.await?;
        Ok(schema.map(|(Json(schema),)| schema))
    }

    /// Stores the decision about one call of this owner's run. The first answer counts.
    pub async fn decide(
        &self,
        owner: &str,
        run_id: Uuid,
        approval_id: Uuid,
        decision: DecisionBy<'_>,
    ) -> Result<AnswerOutcome, Error> {
        let decide = async |tx: &mut Tx| {
            Ok(settled(match lock(tx, run_id, Some(owner)).await? {
                None => AnswerOutcome::NotFound,
                Some(run) => decide_locked(tx, run_id, run, approval_id, Some(decision)).await?,
            }))
        };
        self.database.transact("store the answer to an approval", decide).await
    }

    /// Stores the result of a call that the client executed. The first result counts.
    pub async fn complete_client_call(
        &self,
        owner: &str,
        run_id: Uuid,
        call_id: &str,
        result: &ClientResult,
    ) -> Result<AnswerOutcome, Error> {
        let complete = async |tx: &mut Tx| {
            Ok(settled(match lock(tx, run_id, Some(owner)).await? {
                None => AnswerOutcome::NotFound,
                Some(run) => complete_locked(tx, run_id, run, call_id, Some(result)).await?,
            }))
        };
        self.database.transact("store the result of a client's tool", complete).await
    }
}

/// Settles a question. Without an answer, the question expires.
pub async fn decide_locked(
    tx: &mut Tx,
    run_id: Uuid,
    run: LockedRun,
    approval_id: Uuid,
    answer: Option<DecisionBy<'_>>,
) -> Result<AnswerOutcome, Error> {
    let Some(question) = tx.fetch_optional::<PendingApprovalRow>(APPROVAL, args![approval_id, run_id]).await? else {
        return Ok(AnswerOutcome::NotFound);
    };
    let approval = Approval::from(question.approval);
    if approval.status != ApprovalStatus::Pending {
        return Ok(AnswerOutcome::Decided(Box::new(approval)));
    }
    if run.status != RunStatus::Waiting {
        return Ok(AnswerOutcome::NotWaiting);
    }
    if question.expired && answer.is_some() {
        return Ok(AnswerOutcome::Expired);
    }
    let by = answer.as_ref().map(|answer| answer.by.to_owned());
    let (status, edited_input, reason) = match answer {
        None => (ApprovalStatus::Expired, None, None),
        // The tool's key belongs to the call with its first arguments.
        Some(DecisionBy { decision: Decision::Approve { edited_input: Some(_), .. }, .. })
            if approval.kind == ApprovalKind::UnknownOutcome =>
        {
            return Ok(AnswerOutcome::InvalidInput("at the top: an interrupted call is repeated as it was".to_owned()));
        }
        Some(DecisionBy { decision: Decision::Approve { edited_input: Some(edited), .. }, .. })
            if approval.kind == ApprovalKind::Plan
                && let Err(error) = plan::read_edited_steps(edited).and_then(plan::check_shape) =>
        {
            return Ok(AnswerOutcome::InvalidInput(error.message));
        }
        Some(DecisionBy { checked: Err(InvalidInput(problem)), .. }) => {
            return Ok(AnswerOutcome::InvalidInput(problem));
        }
        Some(DecisionBy { decision: Decision::Approve { edited_input, reason }, .. }) => {
            (ApprovalStatus::Approved, edited_input.clone().map(storable_json), reason.clone())
        }
        Some(DecisionBy { decision: Decision::Deny { reason }, .. }) => (ApprovalStatus::Denied, None, reason.clone()),
    };
    let reason = reason.map(storable);
    tx.execute(DECIDE, args![approval_id, status.as_str(), reason.clone(), edited_input.clone(), by]).await?;
    let body = EventBody::ApprovalResolved(ApprovalResolved {
        base: Some(run.archived_to),
        approval_id,
        call_id: approval.call_id.into(),
        child_run_id: None,
        decision: status,
        reason: reason.map(Into::into),
        edited_input: edited_input.map(Into::into),
    });
    write_answer(tx, run, body).await
}

/// Completes a client's call. Without a result, the call expires.
pub async fn complete_locked(
    tx: &mut Tx,
    run_id: Uuid,
    run: LockedRun,
    call_id: &str,
    result: Option<&ClientResult>,
) -> Result<AnswerOutcome, Error> {
    #[derive(FromRow)]
    struct Row {
        #[sqlx(try_from = "String")]
        status: ToolCallStatus,
        name: String,
        files: Option<Json<Vec<ToolFile>>>,
        expired: bool,
        waited_ms: i64,
    }
    let Some(call) = tx.fetch_optional::<Row>(CALL, args![run_id, call_id]).await? else {
        return Ok(AnswerOutcome::NotFound);
    };
    match call.status {
        ToolCallStatus::Completed => return Ok(AnswerOutcome::Completed),
        ToolCallStatus::Client if run.status == RunStatus::Waiting => {}
        _ => return Ok(AnswerOutcome::NotWaiting),
    }
    if call.expired && result.is_some() {
        return Ok(AnswerOutcome::Expired);
    }
    let (output, error) = match result {
        Some(ClientResult::Output(output)) => (Some(storable(output.clone())), None),
        Some(ClientResult::Error(message)) => (None, Some(ToolError::new("tool_failed", message.as_str()))),
        None => (None, Some(ToolError::new("expired", "the client has sent no result in time"))),
    };
    let duration_ms = call.waited_ms.max(0);
    tx.execute(
        COMPLETE_CALL,
        args![run_id, call_id, output.clone(), error.as_ref().map(|error| serde_json::json!(error)), duration_ms],
    )
    .await?;
    let body = EventBody::ToolCallCompleted(ToolCallCompleted {
        input: None,
        base: Some(run.archived_to),
        call_id: call_id.to_owned().into(),
        name: call.name.into(),
        by: Some(ExecutedBy::Client),
        output: output.map(Into::into),
        error,
        entities: Vec::new(),
        files: call.files.map(|files| files.0).unwrap_or_default(),
        duration_ms: duration_ms as u64,
    });
    write_answer(tx, run, body).await
}

/// Writes the answer's event in an attempt of its own, and queues the run if it waits for no other answer. The log of the top
/// run has the answer if it has the question.
async fn write_answer(tx: &mut Tx, run: LockedRun, body: EventBody<'static>) -> Result<AnswerOutcome, Error> {
    let write = async |tx: &mut Tx, attempt: TakenAttempt| {
        let run_id = attempt.run.id;
        let event = Event::new(attempt.first_event(), Utc::now(), &body);
        let writes = writes_of(run_id, &ArchiveChunk::of(&event));
        let fenced = FencedWrites::new(Statement::new(RESUME, args![run_id, event.id]), writes);
        let row = tx.write_fenced::<ResumedRow>(fenced).await?.into_iter().next().ok_or_else(|| tx.no_row())?;
        let top = match row.top_run_id {
            None => None,
            Some(top) => {
                let resolved = forwarded_answers(tx, top, run_id, &[body]).await?;
                answer_at_top(tx, top, resolved).await?
            }
        };
        let (conversation_id, traceparent) = (row.conversation_id, traceparent(row.traceparent));
        let run = AnsweredRun { run_id, events: vec![event], queued: row.queued, conversation_id, traceparent };
        Ok(AnswerOutcome::Accepted { run, top })
    };
    take_attempt(tx, run, write).await
}

/// Locks the run of this owner, if there is one, in a conversation that is not deleted.
pub async fn lock(tx: &mut Tx, run_id: Uuid, owner: Option<&str>) -> Result<Option<LockedRun>, Error> {
    match tx.fetch_optional::<(Uuid,)>(WAITING_RUN, args![run_id, owner.map(str::to_owned)]).await? {
        Some(_) => lock_run(tx, run_id).await,
        None => Ok(None),
    }
}

/// An accepted answer stays. No other outcome has written anything.
pub fn settled(outcome: AnswerOutcome) -> Settle<AnswerOutcome> {
    match outcome {
        AnswerOutcome::Accepted { .. } => Commit(outcome),
        _ => RollBack(outcome),
    }
}
