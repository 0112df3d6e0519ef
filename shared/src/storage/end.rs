//! The end of a run: the writes of each ending, and the write rule for writers without a claim.

use chrono::Utc;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    ArchiveChunk, Error, Storage,
    archive::{chunk_of, durable_answer, writes_of},
    flush::log_refused_checkpoint,
    quota::trace_bytes,
    rows::MessageRow,
    sql::{Commit, RollBack, Tx, args},
    sql::{FencedWrites, Spare, Statement},
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    event::{ApprovalResolved, Event, EventBody},
    event_id::EventId,
    finish_reason::FinishReason,
    message::Message,
    parts::MessageParts,
    run::{RunError, RunStatus},
    storable::storable,
    usage::Usage,
};

/// A run that a writer without a claim ended. The caller publishes its last events, because they are committed.
#[derive(Debug, Clone)]
pub struct EndedRun {
    /// The ended run.
    pub run_id: Uuid,
    /// The attempt of the closing events.
    pub attempt: u32,
    /// The terminal status.
    pub status: RunStatus,
    /// The closing events, in order.
    pub events: Vec<Event>,
    /// True if a queued run of the conversation was waiting for this end.
    pub next_waits: bool,
}

/// The parameters of the last write of a run.
#[derive(Clone)]
pub(super) struct RunEnd<'a> {
    pub run_id: Uuid,
    pub conversation_id: Uuid,
    pub output_message_id: Uuid,
    /// Id of the first closing event.
    pub first: EventId,
    /// The event that the closing events follow, if they begin an attempt.
    pub base: Option<EventId>,
    /// The events before them that are not archived yet.
    pub tail: Option<&'a ArchiveChunk>,
    /// The answer's position in the conversation, if the transaction took it already.
    pub position: Option<i64>,
    /// Events of this attempt that precede the closing ones. The first of them has `base`.
    pub before: Vec<EventBody<'static>>,
    pub answer: &'a Answer,
    pub ending: &'a Ending,
}

impl RunEnd<'_> {
    /// Returns the run's last events.
    pub(super) fn events(&self, message: Option<Message>) -> Vec<Event> {
        let closing = self.ending.closing_bodies(self.base, message, self.output_message_id, self.answer.usage);
        let ids = std::iter::successors(Some(self.first), |id| Some(id.next()));
        let now = Utc::now();
        ids.zip(self.before.iter().chain(&closing)).map(|(id, body)| Event::new(id, now, body)).collect()
    }

    /// Returns the parts as the database stores them, with the questions that the end settles.
    pub(super) fn parts(&self, events: &[Event]) -> serde_json::Value {
        let mut parts = self.answer.parts.clone();
        parts.ended_ms = events.last().map_or(parts.ended_ms, |event| event.at_ms);
        for body in &self.before {
            if let EventBody::ApprovalResolved(resolved) = body {
                parts.resolve(resolved);
            }
        }
        serde_json::json!(parts.into_storable())
    }

    /// Returns the run's usage, if there is any.
    pub(super) fn used(&self) -> Option<serde_json::Value> {
        (self.answer.usage != Usage::default()).then(|| serde_json::json!(self.answer.usage))
    }

    /// Returns the model's reason for ending a complete answer. A broken-off answer has none.
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        self.answer.finish_reason.filter(|_| *self.ending == Ending::Completed)
    }

    /// Returns `finish_reason` as the database stores it.
    pub(super) fn finish_text(&self) -> Option<String> {
        self.finish_reason().map(|reason| reason.as_str().to_owned())
    }
}

/// The text and the usage of a run at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The text of all steps.
    pub text: String,
    /// The parts of the message with this text.
    pub parts: MessageParts,
    /// Usage of all steps.
    pub usage: Usage,
    /// The finish reason of the last step.
    pub finish_reason: Option<FinishReason>,
}

impl Answer {
    /// Returns the bytes that count in the owner's quota, beside those of the trace.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.parts.reasoning_bytes()
    }
}

#[derive(FromRow)]
struct UnheldRunRow {
    conversation_id: Uuid,
    output_message_id: Uuid,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    crashes: i64,
    stream: bool,
    usage: Option<Json<Usage>>,
    cancel_requested: bool,
    expired: bool,
}

impl Storage {
    /// Ends an unfinished run, with or without a holder. It takes an attempt, which fences the holder. `None` if the
    /// run has ended or is gone.
    pub async fn end_run(&self, run_id: Uuid, ending: &Ending) -> Result<Option<EndedRun>, Error> {
        self.end_when(run_id, |_| Some(ending.clone())).await
    }

    /// Ends the run if no worker holds it and none may claim it.
    pub(super) async fn end_if_expired(&self, run_id: Uuid, max_crashes: usize) -> Result<Option<EndedRun>, Error> {
        let ending = |run: &UnheldRunRow| {
            let is_orphaned = run.status == RunStatus::Running && run.expired;
            let is_free = is_orphaned || run.status == RunStatus::Queued;
            if is_orphaned && run.cancel_requested {
                Some(Ending::Cancelled)
            } else if is_free && run.crashes as usize >= max_crashes {
                Some(Ending::Failed(RunError::max_attempts(run.crashes as u32)))
            } else {
                None
            }
        };
        self.end_when(run_id, ending).await
    }

    async fn end_when(
        &self,
        run_id: Uuid,
        ending: impl FnOnce(&UnheldRunRow) -> Option<Ending>,
    ) -> Result<Option<EndedRun>, Error> {
        let end = async |tx: &mut Tx| {
            let sql = "select conversation_id from agent_runs where id = $1";
            let conversation = tx.fetch_optional::<(Uuid,)>(sql, args![run_id]).await?;
            let Some((conversation_id,)) = conversation else { return Ok(RollBack(None)) };
            lock_conversation(tx, conversation_id).await?;
            let run = lock_run(tx, run_id).await?.filter(|run| !run.status.is_terminal());
            match run.and_then(|run| ending(&run).map(|ending| (run, ending))) {
                Some((run, ending)) => {
                    Ok(Commit(Some(write_rule(tx, run_id, run, &ending, ApprovalStatus::Cancelled).await?)))
                }
                None => Ok(RollBack(None)),
            }
        };
        self.database.transact("end a run", end).await
    }
}

/// Cancels the run by the write rule, in a transaction that has locked the conversation. It settles the run's open
/// questions as `unanswered`.
pub(super) async fn cancel_locked(
    tx: &mut Tx,
    run_id: Uuid,
    unanswered: ApprovalStatus,
) -> Result<Option<EndedRun>, Error> {
    let run = lock_run(tx, run_id).await?;
    match run {
        Some(run) if !run.status.is_terminal() => {
            Ok(Some(write_rule(tx, run_id, run, &Ending::Cancelled, unanswered).await?))
        }
        _ => Ok(None),
    }
}

/// Locks a conversation's row. Order matters: a transaction locks a run's row only after it.
pub(super) async fn lock_conversation(tx: &mut Tx, id: Uuid) -> Result<(), Error> {
    tx.fetch_optional::<(Uuid,)>("select id from chat_conversations where id = $1 {for update}", args![id])
        .await
        .map(drop)
}

async fn lock_run(tx: &mut Tx, run_id: Uuid) -> Result<Option<UnheldRunRow>, Error> {
    let sql = "select conversation_id, output_message_id, status, attempt, archived_to, crashes, stream, usage, \
               cancel_requested_at is not null as cancel_requested, coalesce(lease_until < {now}, false) as expired \
               from agent_runs where id = $1 {for update}";
    tx.fetch_optional(sql, args![run_id]).await
}

/// Takes an attempt and ends the run in it, with the archived text.
async fn write_rule(
    tx: &mut Tx,
    run_id: Uuid,
    run: UnheldRunRow,
    ending: &Ending,
    unanswered: ApprovalStatus,
) -> Result<EndedRun, Error> {
    let attempt = run.attempt as u32 + 1;
    let (text, parts) = durable_answer(tx, run_id, run.stream).await?;
    let usage = run.usage.map(|usage| usage.0).unwrap_or_default();
    let answer = Answer { text: storable(text), parts, usage, finish_reason: None };
    let before = match run.status {
        RunStatus::Waiting => settle_approvals(tx, run_id, run.archived_to, unanswered).await?,
        _ => Vec::new(),
    };
    let sql = "update agent_runs set attempt = attempt + 1, crashes = crashes + (case when $2 = 'failed' and executing then 1 else 0 end) where id = $1";
    tx.execute(sql, args![run_id, ending.status().as_str()]).await?;
    let closing = RunEnd {
        run_id,
        conversation_id: run.conversation_id,
        output_message_id: run.output_message_id,
        first: EventId::first_of(attempt),
        base: before.is_empty().then_some(run.archived_to),
        before,
        tail: None,
        position: None,
        answer: &answer,
        ending,
    };
    let closed = write_closing(tx, closing, Spare::Together).await?;
    let (events, next_waits) = closed.ok_or_else(|| tx.no_row())?;
    Ok(EndedRun { run_id, attempt, status: ending.status(), events, next_waits })
}

/// Returns whether the run stores an answer. A run that did not complete needs a text.
pub(super) fn leaves_message(ending: &Ending, text: &str) -> bool {
    ending.status() == RunStatus::Completed || !text.is_empty()
}

/// Locks the conversation and returns its next position, for a message of `bytes`; `None` if it is gone. An answer also
/// adds the bytes of its run's trace to the conversation.
pub(super) async fn take_position(
    tx: &mut Tx,
    conversation_id: Uuid,
    run_id: Option<Uuid>,
    bytes: usize,
) -> Result<Option<i64>, Error> {
    let sql = concat!(
        "update chat_conversations set last_position = last_position + 1, last_message_at = {now}, activity_at = {now}, ",
        "bytes = bytes + $2 + ",
        trace_bytes!("$3"),
        " where id = $1 returning last_position"
    );
    Ok(tx.fetch_optional::<(i64,)>(sql, args![conversation_id, bytes, run_id]).await?.map(|row| row.0))
}

/// Stores the answer, archives the closing events and sets the terminal status. Returns the events, and whether a
/// queued run of the conversation was waiting. `None` if another attempt holds the run or it has ended; then the caller
/// rolls back.
pub(super) async fn write_closing(
    tx: &mut Tx,
    closing: RunEnd<'_>,
    spare: Spare,
) -> Result<Option<(Vec<Event>, bool)>, Error> {
    let ending = closing.ending;
    let message = if leaves_message(ending, &closing.answer.text) {
        match insert_answer(tx, &closing).await? {
            Some(message) => Some(message),
            None => return Ok(None),
        }
    } else {
        None
    };
    let events = closing.events(message);
    let chunk = chunk_of(closing.tail, &events);
    let (code, message) = ending.error().map(|error| (error.code.clone(), error.message.clone())).unzip();
    let sql = "update agent_runs set status = $2, archived_to = $3, usage = coalesce($4, usage), finish_reason = coalesce($9, finish_reason), error_code = $5, error_message = $6, parts = $10, \
               finished_at = {now}, holder = null, lease_until = null, executing = false \
               where id = $1 and attempt = $8 and status in ('queued', 'running', 'waiting') \
               returning exists (select 1 from agent_runs next where next.conversation_id = $7 and next.status = 'queued' and next.id <> $1) as next_waits";
    let args = args![
        closing.run_id,
        ending.status().as_str(),
        chunk.last,
        closing.used(),
        code,
        message,
        closing.conversation_id,
        closing.first.attempt,
        closing.finish_text(),
        closing.parts(&events)
    ];
    let fenced = FencedWrites::new(Statement::new(sql, args), writes_of(closing.run_id, &chunk));
    let written = tx.write_spares::<(bool,)>(fenced, spare).await?;
    let Some((next_waits,)) = written.rows.into_iter().next() else { return Ok(None) };
    if let Some(refusal) = &written.refused {
        log_refused_checkpoint(closing.run_id, refusal);
    }
    // Order matters: the tail may contain calls and questions, which no caller will answer after the end.
    if ending.status() != RunStatus::Completed {
        let sql = "update agent_run_tool_calls set status = 'abandoned' where run_id = $1 and status <> 'completed'";
        tx.execute(sql, args![closing.run_id]).await?;
        let sql = "update agent_run_approvals set status = 'cancelled', decided_at = {now} where run_id = $1 and status = 'pending'";
        tx.execute(sql, args![closing.run_id]).await?;
    }
    Ok(Some((events, next_waits)))
}

/// Settles the open questions of a waiting run. Returns the events that report this, the first with `base`.
async fn settle_approvals(
    tx: &mut Tx,
    run_id: Uuid,
    base: EventId,
    unanswered: ApprovalStatus,
) -> Result<Vec<EventBody<'static>>, Error> {
    let sql = "update agent_run_approvals set status = $2, decided_at = {now} where run_id = $1 and status = 'pending' returning id, call_id";
    let settled = tx.fetch_all::<(Uuid, String)>(sql, args![run_id, unanswered.as_str()]).await?;
    let resolved = settled.into_iter().enumerate().map(|(index, (approval_id, call_id))| {
        EventBody::ApprovalResolved(ApprovalResolved {
            base: (index == 0).then_some(base),
            approval_id,
            call_id: call_id.into(),
            decision: unanswered,
            reason: None,
            edited_input: None,
        })
    });
    Ok(resolved.collect())
}

/// Returns `None` if the run has ended or is gone.
async fn insert_answer(tx: &mut Tx, closing: &RunEnd<'_>) -> Result<Option<Message>, Error> {
    let position = match closing.position {
        Some(position) => position,
        None => {
            let (run_id, bytes) = (Some(closing.run_id), closing.answer.bytes());
            match take_position(tx, closing.conversation_id, run_id, bytes).await? {
                Some(position) => position,
                None => return Ok(None),
            }
        }
    };
    let row = tx.fetch_optional::<MessageRow>(
        "insert into chat_messages (id, conversation_id, owner_id, run_id, position, turn, role, content, status, finish_reason, retrieval_context, superseded_at, created_at) \
         select $1, $2, owner_id, id, $4, position, 'assistant', $5, $6, $8, $7, superseded_at, {now} from agent_runs where id = $3 and status in ('queued', 'running', 'waiting') \
         returning id, client_id, conversation_id, run_id, position, role, content_type, content, status, finish_reason, retrieval_context, superseded_at, created_at",
        args![
            closing.output_message_id,
            closing.conversation_id,
            closing.run_id,
            position,
            closing.answer.text.as_str(),
            closing.ending.message_status().as_str(),
            serde_json::json!({"agent_run_id": closing.run_id}),
            closing.finish_text()
        ],
    );
    Ok(row.await?.map(Message::from))
}
