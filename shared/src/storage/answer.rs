//! ANSWER: a human decides about a call, or a client brings the result of its own, while nobody holds the run.
//!
//! The write rule: the answer takes an attempt whose one event tells of it, and a later attempt goes on from there. The run
//! returns to the queue with the last answer that it waits for.

use chrono::Utc;
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    archive::{ArchiveChunk, writes_of},
    database::{Tx, args},
    fenced::{FencedWrites, Statement},
    rows::traceparent,
    trace::{ApprovalRow, approval_columns},
};
use crate::{
    approval::{Approval, ApprovalKind, ApprovalStatus, Decision},
    event::{Event, EventBody},
    event_id::EventId,
    run::RunStatus,
    storable::{storable, storable_json},
    telemetry::Traceparent,
    tool::{ToolCallStatus, ToolError},
};

/// What became of an answer.
#[derive(Debug)]
pub enum AnswerOutcome {
    /// It counts; the run goes on if it waits for nothing else.
    Accepted(AnsweredRun),
    /// Another answer was first: that one.
    Decided(Box<Approval>),
    /// The result of this call is known already.
    Completed,
    /// It comes after the time for it.
    Expired,
    /// The run has ended, or does not wait for it.
    NotWaiting,
    /// The edited input breaks the tool's schema.
    InvalidInput(String),
    NotFound,
}

/// A run whose question was outcome; the event is to be shown now that it is committed.
#[derive(Debug, Clone)]
pub struct AnsweredRun {
    pub run_id: Uuid,
    pub event: Event,
    /// Whether a worker can go on with it.
    pub queued: bool,
    pub conversation_id: Uuid,
    /// The span under which the run was submitted, if that was recorded.
    pub traceparent: Option<Traceparent>,
}

/// The result of a call that the client has executed.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientResult {
    Output(String),
    Error(String),
}

/// A decision, and who has made it.
#[derive(Debug, Clone)]
pub struct DecisionBy<'a> {
    pub by: &'a str,
    pub decision: &'a Decision,
    /// Whether its edited arguments fit the tool's schema.
    pub checked: Result<(), InvalidInput>,
}

/// The row as whoever answers finds it.
#[derive(FromRow)]
struct WaitingRunRow {
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
}

/// What is wrong with edited arguments; who answers has checked them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidInput(pub String);

#[derive(FromRow)]
struct PendingApprovalRow {
    #[sqlx(flatten)]
    approval: ApprovalRow,
    expired: bool,
}

/// Ids that one look of the sweeper takes.
const BATCH: i64 = 100;

impl Storage {
    /// The schema that the arguments of a pending question must fit.
    pub async fn approval_schema(&self, owner: &str, run_id: Uuid, approval_id: Uuid) -> Result<Option<Value>, Error> {
        let schema = self.database.fetch_optional::<(Json<Value>,)>(
            "select a.schema from agent_run_approvals a join agent_runs r on r.id = a.run_id \
             where a.id = $1 and a.run_id = $2 and r.owner_id = $3 and a.status = 'pending'",
            args![approval_id, run_id, owner.to_owned()],
        );
        let schema = schema.await.map_err(Error::doing("read the schema of an approval"))?;
        Ok(schema.map(|(Json(schema),)| schema))
    }

    /// Answers what a run of this owner has asked about one call. The first answer counts.
    pub async fn decide(
        &self,
        owner: &str,
        run_id: Uuid,
        approval_id: Uuid,
        decision: DecisionBy<'_>,
    ) -> Result<AnswerOutcome, Error> {
        let decide = async {
            let mut tx = self.database.begin().await?;
            let outcome = match lock(&mut tx, run_id, Some(owner)).await? {
                None => AnswerOutcome::NotFound,
                Some(run) => decide_locked(&mut tx, run_id, run, approval_id, Some(decision)).await?,
            };
            settle(tx, outcome).await
        };
        decide.await.map_err(Error::doing("store the answer to an approval"))
    }

    /// Stores the result of a call that the client has executed. The first result counts.
    pub async fn complete_client_call(
        &self,
        owner: &str,
        run_id: Uuid,
        call_id: &str,
        result: &ClientResult,
    ) -> Result<AnswerOutcome, Error> {
        let complete = async {
            let mut tx = self.database.begin().await?;
            let outcome = match lock(&mut tx, run_id, Some(owner)).await? {
                None => AnswerOutcome::NotFound,
                Some(run) => complete_locked(&mut tx, run_id, run, call_id, Some(result)).await?,
            };
            settle(tx, outcome).await
        };
        complete.await.map_err(Error::doing("store the result of a client's tool"))
    }

    /// Answers in the place of people whose time is over: no.
    pub async fn expire_questions(&self) -> Result<Vec<AnsweredRun>, Error> {
        let doing = || Error::doing("look for questions that nobody has answered in time");
        let approvals = self.database.fetch_all::<(Uuid, Uuid)>(
            "select a.id, a.run_id from agent_run_approvals a join agent_runs r on r.id = a.run_id \
             where a.status = 'pending' and a.expires_at < {now} and r.status = 'waiting' limit $1",
            args![BATCH],
        );
        let calls = self.database.fetch_all::<(String, Uuid)>(
            "select t.call_id, t.run_id from agent_run_tool_calls t join agent_runs r on r.id = t.run_id \
             where t.status = 'client' and t.expires_at < {now} and r.status = 'waiting' limit $1",
            args![BATCH],
        );
        let (approvals, calls) = futures::try_join!(approvals, calls).map_err(doing())?;
        let mut outcome = Vec::new();
        for (approval_id, run_id) in approvals {
            outcome.push((run_id, self.expire(run_id, OpenQuestion::Approval(approval_id)).await));
        }
        for (call_id, run_id) in calls {
            outcome.push((run_id, self.expire(run_id, OpenQuestion::Call(call_id)).await));
        }
        // One run that cannot be outcome must not keep the others from it.
        let accepted = outcome.into_iter().filter_map(|(run_id, outcome)| match outcome {
            Ok(AnswerOutcome::Accepted(run)) => Some(run),
            Ok(_) => None,
            Err(error) => {
                tracing::error!(run.id = %run_id, error = &error as &dyn std::error::Error, "cannot answer for those who did not");
                None
            }
        });
        Ok(accepted.collect())
    }

    async fn expire(&self, run_id: Uuid, open: OpenQuestion) -> Result<AnswerOutcome, sqlx::Error> {
        let mut tx = self.database.begin().await?;
        let outcome = match (lock(&mut tx, run_id, None).await?, open) {
            (None, _) => AnswerOutcome::NotFound,
            (Some(run), OpenQuestion::Approval(id)) => decide_locked(&mut tx, run_id, run, id, None).await?,
            (Some(run), OpenQuestion::Call(call_id)) => complete_locked(&mut tx, run_id, run, &call_id, None).await?,
        };
        settle(tx, outcome).await
    }
}

/// What a run waits for.
enum OpenQuestion {
    Approval(Uuid),
    Call(String),
}

/// Without an answer, the question has expired.
async fn decide_locked(
    tx: &mut Tx,
    run_id: Uuid,
    run: WaitingRunRow,
    approval_id: Uuid,
    answer: Option<DecisionBy<'_>>,
) -> Result<AnswerOutcome, sqlx::Error> {
    let sql = concat!(
        "select ",
        approval_columns!(),
        ", expires_at < {now} as expired from agent_run_approvals where id = $1 and run_id = $2"
    );
    let Some(question) = tx.fetch_optional::<PendingApprovalRow>(sql, args![approval_id, run_id]).await? else {
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
        // The key stands for the call as it was.
        Some(DecisionBy { decision: Decision::Approve { edited_input: Some(_), .. }, .. })
            if approval.kind == ApprovalKind::UnknownOutcome =>
        {
            return Ok(AnswerOutcome::InvalidInput("at the top: an interrupted call is repeated as it was".to_owned()));
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
    tx.execute(
        "update agent_run_approvals set status = $2, reason = $3, edited_input = $4, decided_at = {now}, decided_by = $5 where id = $1",
        args![approval_id, status.as_str(), reason.clone(), edited_input.clone(), by],
    )
    .await?;
    let body = EventBody::ApprovalResolved {
        base: Some(run.archived_to),
        approval_id,
        call_id: approval.call_id,
        decision: status,
        reason,
        edited_input,
    };
    Ok(AnswerOutcome::Accepted(write_answer(tx, run_id, run, &body).await?))
}

/// Without a result, the time for it is over.
async fn complete_locked(
    tx: &mut Tx,
    run_id: Uuid,
    run: WaitingRunRow,
    call_id: &str,
    result: Option<&ClientResult>,
) -> Result<AnswerOutcome, sqlx::Error> {
    #[derive(FromRow)]
    struct Row {
        #[sqlx(try_from = "String")]
        status: ToolCallStatus,
        name: String,
        expired: bool,
        waited_ms: i64,
    }
    let sql = "select status, name, coalesce(expires_at < {now}, false) as expired, {ms since:created_at} as waited_ms \
               from agent_run_tool_calls where run_id = $1 and call_id = $2";
    let Some(call) = tx.fetch_optional::<Row>(sql, args![run_id, call_id]).await? else {
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
        None => (None, Some(ToolError::new("expired", "the client has brought no result in time"))),
    };
    let duration_ms = call.waited_ms.max(0);
    tx.execute(
        "update agent_run_tool_calls set status = 'completed', output = $3, error = $4, duration_ms = $5, completed_at = {now} \
         where run_id = $1 and call_id = $2",
        args![run_id, call_id, output.clone(), error.as_ref().map(|error| serde_json::json!(error)), duration_ms],
    )
    .await?;
    let body = EventBody::ToolCallCompleted {
        input: None,
        base: Some(run.archived_to),
        call_id: call_id.to_owned(),
        name: call.name,
        output,
        error,
        duration_ms: duration_ms as u64,
    };
    Ok(AnswerOutcome::Accepted(write_answer(tx, run_id, run, &body).await?))
}

/// Takes an attempt for the event, and queues the run if it waits for nothing else.
async fn write_answer(
    tx: &mut Tx,
    run_id: Uuid,
    run: WaitingRunRow,
    body: &EventBody,
) -> Result<AnsweredRun, sqlx::Error> {
    let event = Event::new(EventId::first_of(run.attempt as u32 + 1), Utc::now(), body);
    let sql = "update agent_runs set attempt = attempt + 1, archived_to = $2, checkpoint = $2, \
               status = case when exists (select 1 from agent_run_approvals a where a.run_id = $1 and a.status = 'pending') \
               or exists (select 1 from agent_run_tool_calls t where t.run_id = $1 and t.status = 'client') \
               then 'waiting' else 'queued' end, attempt_reason = 'resumed' where id = $1 returning status = 'queued' as queued, conversation_id, traceparent";
    let fenced =
        FencedWrites::new(Statement::new(sql, args![run_id, event.id]), writes_of(run_id, &ArchiveChunk::of(&event)));
    let outcome = tx.write_fenced::<(bool, Uuid, Option<String>)>(fenced).await?.into_iter().next();
    let (queued, conversation_id, stored) = outcome.ok_or(sqlx::Error::RowNotFound)?;
    Ok(AnsweredRun { run_id, event, queued, conversation_id, traceparent: traceparent(stored) })
}

async fn lock(tx: &mut Tx, run_id: Uuid, owner: Option<&str>) -> Result<Option<WaitingRunRow>, sqlx::Error> {
    let sql = "select status, attempt, archived_to from agent_runs where id = $1 and ($2 is null or owner_id = $2) \
               and exists (select 1 from chat_conversations c where c.id = conversation_id and c.deleted_at is null) {for update}";
    tx.fetch_optional(sql, args![run_id, owner.map(str::to_owned)]).await
}

async fn settle(tx: Tx, outcome: AnswerOutcome) -> Result<AnswerOutcome, sqlx::Error> {
    match outcome {
        AnswerOutcome::Accepted(_) => tx.commit().await?,
        _ => tx.rollback().await?,
    }
    Ok(outcome)
}
