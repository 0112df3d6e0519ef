//! The last write of a run: its answer, its closing events, and its terminal status.

use chrono::Utc;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    AnsweredRun, ArchiveChunk,
    attempt::status,
    blocked::unblock_next,
    chunk::{chunk_of, writes_of},
    flush::log_refused_checkpoint,
    forwarded::forwarded_answers,
    outcomes::{ChildEnd, ParentCall, answer_ancestors},
};
use crate::{
    citation::AnswerSources,
    ending::Ending,
    event::{Event, EventBody},
    event_id::EventId,
    finish_reason::FinishReason,
    message::Message,
    parts::MessageParts,
    run::RunStatus,
    storage::{
        Error,
        position::take_position,
        rows::MessageRow,
        sql::{FencedWrites, Spare, Statement, Tx, args, statements},
    },
    usage::Usage,
};

/// The parameters of the last write of a run.
#[derive(Clone)]
pub struct RunEnd<'a> {
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
    pub fn events(&self, message: Option<Message>) -> Vec<Event> {
        let mut bodies = self.before.clone();
        bodies.extend(self.ending.closing_bodies(self.base, message, self.output_message_id, self.answer.usage));
        Event::sequence(self.first, Utc::now(), &bodies)
    }

    /// Returns the parts as the database stores them, with the questions that the end settles.
    pub fn parts(&self, events: &[Event]) -> serde_json::Value {
        let mut parts = self.answer.parts.clone();
        parts.ended_ms = events.last().map_or(parts.ended_ms, |event| event.at_ms);
        for body in &self.before {
            if let EventBody::ApprovalResolved(resolved) = body {
                parts.resolve(resolved);
            }
        }
        serde_json::json!(parts.into_storable())
    }

    /// Returns the documents of the answer.
    pub fn sources(&self) -> AnswerSources {
        self.answer.parts.sources()
    }

    /// Returns the run's usage, if there is any.
    pub fn used(&self) -> Option<serde_json::Value> {
        (self.answer.usage != Usage::default()).then(|| serde_json::json!(self.answer.usage))
    }

    /// Returns the model's reason for ending a complete answer. A broken-off answer has none.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.answer.finish_reason.filter(|_| *self.ending == Ending::Completed)
    }

    /// Returns `finish_reason` as the database stores it.
    pub fn finish_text(&self) -> Option<String> {
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
    pub fn bytes(&self) -> usize {
        self.text.len() + self.parts.reasoning_bytes()
    }
}

statements! {
    /// Ends an unfinished run of this attempt. Returns whether another run of the conversation waits.
    END = concat!("
        update agent_runs
        set status = $2,
            archived_to = $3,
            usage = coalesce($4, usage),
            finish_reason = coalesce($9, finish_reason),
            model = coalesce($11, model),
            error_code = $5,
            error_message = $6,
            error_details = $12,
            parts = $10,
            finished_at = {now},
            holder = null,
            lease_until = null,
            executing = false,
            caller_group = null
        where id = $1
          and attempt = $8
          and ", status!(""), " in ('queued', 'running', 'waiting')
        returning id, parent_run_id, parent_call_id, subagent_role, top_run_id, children_usage,
            exists (
                select 1
                from agent_runs next
                where next.conversation_id = $7
                  and next.status in ('queued', 'running', 'waiting')
                  and ", status!("next."), " = 'queued'
                  and next.id <> $1
            ) as next_waits,
            exists (
                select 1
                from agent_runs child
                where child.parent_run_id = $1
                  and ", status!("child."), " in ('queued', 'running', 'waiting')
            ) as has_children
    "),
    /// Abandons the open calls of an ended run.
    ABANDON_CALLS = "
        update agent_run_tool_calls
        set status = 'abandoned'
        where run_id = $1 and status <> 'completed'
    ",
    /// Cancels the open questions of an ended run.
    CANCEL_APPROVALS = "
        update agent_run_approvals
        set status = 'cancelled', decided_at = {now}
        where run_id = $1 and status = 'pending'
    ",
    /// Stores the answer of an unfinished run.
    INSERT_ANSWER = concat!("
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, role, content, status,
            finish_reason, retrieval_context, superseded_at, created_at
        )
        select $1, $2, owner_id, id, $4, position, 'assistant', $5, $6, $8, $7, superseded_at, {now}
        from agent_runs
        where id = $3 and ", status!(""), " in ('queued', 'running', 'waiting')
        returning id, client_id, conversation_id, run_id, position, role, content_type, content,
            attachments, status, finish_reason, retrieval_context, superseded_at, created_at
    "),
}

/// Returns whether the run stores an answer. A run that did not complete needs a text.
pub fn leaves_message(ending: &Ending, text: &str) -> bool {
    ending.status() == RunStatus::Completed || !text.is_empty()
}

/// The effects of an end. The caller publishes the events of the run and of its parent, because they are committed.
#[derive(Debug, Clone, Default)]
pub struct Closed {
    /// The closing events, in order.
    pub events: Vec<Event>,
    /// True if a queued run of the conversation was waiting for this end.
    pub next_waits: bool,
    /// The waiting runs that this end has answered: the parent, and the top run if it waited for an answer too.
    pub answered: Vec<AnsweredRun>,
    /// True if the run has live children, which the caller cancels.
    pub has_children: bool,
}

#[derive(FromRow)]
struct EndedRow {
    next_waits: bool,
    has_children: bool,
    parent_run_id: Option<Uuid>,
    parent_call_id: Option<String>,
    subagent_role: Option<String>,
    top_run_id: Option<Uuid>,
    children_usage: Option<Json<Usage>>,
}

/// Stores the answer, archives the closing events, sets the terminal status, and answers the run's parent. `None` if
/// another attempt holds the run or it has ended; then the caller rolls back.
pub async fn write_closing(tx: &mut Tx, closing: RunEnd<'_>, spare: Spare) -> Result<Option<Closed>, Error> {
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
    let mut chunk = chunk_of(closing.tail, &events);
    // A run that ends starts no children, which its end would cancel.
    chunk.progress.children.clear();
    chunk.progress.roles.retain(|role| role.of_run == closing.run_id);
    let (code, message) = ending.error().map(|error| (error.code.clone(), error.message.clone())).unzip();
    let details = ending.error().and_then(|error| error.details.clone());
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
        closing.parts(&events),
        chunk.progress.model.clone(),
        details
    ];
    let fenced = FencedWrites::new(Statement::new(END, args), writes_of(closing.run_id, &chunk));
    let written = tx.write_spares::<EndedRow>(fenced, spare).await?;
    let Some(row) = written.rows.into_iter().next() else { return Ok(None) };
    if row.next_waits {
        unblock_next(tx, closing.conversation_id).await?;
    }
    if let Some(refusal) = &written.refused {
        log_refused_checkpoint(closing.run_id, refusal);
    }
    // Order matters: the tail may contain calls and questions, which no caller will answer after the end.
    if ending.status() != RunStatus::Completed {
        tx.execute(ABANDON_CALLS, args![closing.run_id]).await?;
        tx.execute(CANCEL_APPROVALS, args![closing.run_id]).await?;
    }
    let answered = match row.parent_run_id.zip(row.parent_call_id).zip(row.top_run_id) {
        None => Vec::new(),
        Some(((run_id, call_id), top)) => {
            let role = row.subagent_role.and_then(|role| role.parse().ok()).unwrap_or_default();
            let mut usage = row.children_usage.map(|usage| usage.0).unwrap_or_default();
            usage += closing.answer.usage;
            let answer = closing.answer.text.as_str();
            let end = ChildEnd { run_id: closing.run_id, ending, answer, usage };
            let resolved = forwarded_answers(tx, top, closing.run_id, &closing.before).await?;
            answer_ancestors(tx, &ParentCall { run_id, call_id, role }, top, end, resolved).await?
        }
    };
    Ok(Some(Closed { events, next_waits: row.next_waits, answered, has_children: row.has_children }))
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
        INSERT_ANSWER,
        args![
            closing.output_message_id,
            closing.conversation_id,
            closing.run_id,
            position,
            closing.answer.text.as_str(),
            closing.ending.message_status().as_str(),
            closing.sources().context(Some(closing.run_id)),
            closing.finish_text()
        ],
    );
    Ok(row.await?.map(Message::from))
}
