//! Rows of both databases, and their conversion to the domain's types.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error,
    sql::{Tx, args, statements},
};
use crate::{
    approval::{Approval, ApprovalKind, ApprovalStatus},
    conversation::{Conversation, title_of},
    event_id::EventId,
    file::Attachment,
    finish_reason::FinishReason,
    message::{Content, Message, MessageStatus, Role},
    run::{Run, RunError, RunStatus},
    telemetry::Traceparent,
    usage::Usage,
};

/// Selects the beginning of the first message of a conversation without a title, from `chat_conversations` under this
/// name.
macro_rules! first_user_text {
    ($conversations:literal) => {
        concat!(
            "case
                when ",
            $conversations,
            ".title is null
                then (
                    select substr(first.content, 1, 400)
                    from chat_messages first
                    where first.conversation_id = ",
            $conversations,
            ".id
                      and first.superseded_at is null
                      and first.role = 'user'
                      and first.content_type = 'text'
                    order by first.turn, first.position
                    limit 1
                )
            end as first_user_text"
        )
    };
}
pub(super) use first_user_text;

/// The columns of `ConversationRow`, from `chat_conversations c`.
macro_rules! conversation_columns {
    () => {
        concat!(
            "c.id, c.title, c.agent_definition_id as agent_id, c.knowledge, c.forked_from,
            c.created_at,
            c.last_message_at, c.activity_at,
            (
                select live.id
                from agent_runs live
                where live.conversation_id = c.id
                  and live.status in ('queued', 'running', 'waiting')
                order by live.position
                limit 1
            ) as live_run_id,
            (
                select origin.conversation_id
                from agent_run_checkpoints origin
                where origin.id = c.forked_from
            ) as forked_conversation_id,
            ",
            $crate::storage::rows::first_user_text!("c")
        )
    };
}
pub(super) use conversation_columns;

/// The columns of `RunRow`, from `agent_runs r left join chat_messages o on o.id = r.output_message_id`.
macro_rules! run_columns {
    () => {
        concat!(
            $crate::storage::rows::bare_run_columns!(),
            ",
            o.content_type as output_content_type, o.content as output_content,
            o.status as output_status, o.retrieval_context as output_context,
            o.superseded_at as output_superseded_at, o.created_at as output_created_at"
        )
    };
}
pub(super) use run_columns;

/// The columns of a run without its answer, from `agent_runs r`.
macro_rules! bare_run_columns {
    () => {
        "r.id, r.conversation_id, r.agent_definition_id as agent_id,
            case
                when r.status = 'waiting' and r.awaits = 'children' then 'running'
                else r.status
            end as status,
            r.attempt, r.model, r.input_message_id, r.output_message_id, r.usage,
            r.children_usage, r.finish_reason, r.error_code, r.error_message, r.archived_to,
            r.metadata, r.traceparent, r.parent_run_id, r.created_at,
            r.started_at, r.finished_at"
    };
}
pub(super) use bare_run_columns;

/// The columns of `MessageRow`, from `chat_messages m`.
macro_rules! message_columns {
    () => {
        "m.id, m.client_id, m.conversation_id, m.run_id, m.position, m.role, m.content_type,
            m.content, m.attachments, m.status, m.finish_reason, m.retrieval_context,
            m.superseded_at, m.created_at"
    };
}
pub(super) use message_columns;

#[derive(FromRow)]
pub(super) struct ConversationRow {
    pub id: Uuid,
    pub title: Option<String>,
    #[sqlx(default)]
    pub first_user_text: Option<String>,
    pub agent_id: Option<Uuid>,
    #[sqlx(default)]
    pub knowledge: Option<Json<Vec<Uuid>>>,
    pub live_run_id: Option<Uuid>,
    pub forked_from: Option<Uuid>,
    #[sqlx(default)]
    pub forked_conversation_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub last_message_at: Option<DateTime<Utc>>,
    pub activity_at: DateTime<Utc>,
}

impl From<ConversationRow> for Conversation {
    fn from(row: ConversationRow) -> Self {
        Self {
            id: row.id,
            title: row.title.or_else(|| title_of(&row.first_user_text?)),
            agent_id: row.agent_id,
            knowledge: row.knowledge.map(|knowledge| knowledge.0).unwrap_or_default(),
            live_run_id: row.live_run_id,
            forked_from: row.forked_from,
            forked_conversation_id: row.forked_conversation_id,
            created_at: row.created_at,
            last_message_at: row.last_message_at,
            found: None,
        }
    }
}

#[derive(FromRow)]
pub(super) struct MessageRow {
    pub id: Uuid,
    pub client_id: Option<String>,
    pub conversation_id: Uuid,
    pub run_id: Option<Uuid>,
    pub position: i64,
    #[sqlx(try_from = "String")]
    pub role: Role,
    pub content_type: String,
    pub content: String,
    pub attachments: Option<Json<Vec<Attachment>>>,
    #[sqlx(try_from = "String")]
    pub status: MessageStatus,
    pub finish_reason: Option<String>,
    pub retrieval_context: Option<Json<Value>>,
    pub superseded_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl From<MessageRow> for Message {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            client_id: row.client_id,
            conversation_id: row.conversation_id,
            run_id: row.run_id,
            given: row.run_id.is_none() && row.role != Role::System,
            role: row.role,
            content: Content::from_stored(&row.content_type, row.content),
            attachments: row.attachments.map(|attachments| attachments.0).unwrap_or_default(),
            status: row.status,
            finish_reason: row.finish_reason.map(FinishReason::from),
            retrieval_context: row.retrieval_context.map(|context| context.0),
            superseded_at: row.superseded_at,
            version: None,
            created_at: row.created_at,
        }
    }
}

#[derive(FromRow)]
pub(super) struct RunRow {
    pub id: Uuid,
    conversation_id: Uuid,
    agent_id: Option<Uuid>,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    model: Option<String>,
    input_message_id: Uuid,
    output_message_id: Uuid,
    usage: Option<Json<Usage>>,
    children_usage: Option<Json<Usage>>,
    finish_reason: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    metadata: Option<Json<Value>>,
    traceparent: Option<String>,
    parent_run_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    #[sqlx(default)]
    output_content_type: Option<String>,
    #[sqlx(default)]
    output_content: Option<String>,
    #[sqlx(default)]
    output_status: Option<String>,
    #[sqlx(default)]
    output_context: Option<Json<Value>>,
    #[sqlx(default)]
    output_superseded_at: Option<DateTime<Utc>>,
    #[sqlx(default)]
    output_created_at: Option<DateTime<Utc>>,
}

impl RunRow {
    /// The row of an unfinished or failed run may have the finish reason of a step.
    fn finish_reason(&self) -> Option<FinishReason> {
        self.finish_reason.clone().filter(|_| self.status == RunStatus::Completed).map(FinishReason::from)
    }

    fn total_usage(&self) -> Option<Usage> {
        let below = self.children_usage.as_ref()?.0;
        Some([below].into_iter().chain(self.usage.as_ref().map(|own| own.0)).sum())
    }

    fn output_message(&mut self) -> Option<Message> {
        Some(Message {
            id: self.output_message_id,
            client_id: None,
            conversation_id: self.conversation_id,
            run_id: Some(self.id),
            given: false,
            role: Role::Assistant,
            content: Content::from_stored(&self.output_content_type.take()?, self.output_content.take()?),
            attachments: Vec::new(),
            status: self.output_status.take()?.try_into().ok()?,
            finish_reason: self.finish_reason(),
            retrieval_context: self.output_context.take().map(|context| context.0),
            superseded_at: self.output_superseded_at,
            version: None,
            created_at: self.output_created_at?,
        })
    }
}

impl From<RunRow> for Run {
    fn from(mut row: RunRow) -> Self {
        Self {
            output_message: row.output_message(),
            total_usage: row.total_usage(),
            finish_reason: row.finish_reason(),
            output_message_id: row.output_message_id,
            id: row.id,
            conversation_id: row.conversation_id,
            agent_id: row.agent_id,
            status: row.status,
            attempt: row.attempt as u32,
            model: row.model,
            input_message_id: row.input_message_id,
            usage: row.usage.map(|usage| usage.0),
            error_details: None,
            error: row.error_code.zip(row.error_message).map(|(code, message)| RunError::new(code, message)),
            last_event_id: row.archived_to,
            metadata: row.metadata.map(|metadata| metadata.0),
            parent_run_id: row.parent_run_id,
            trace_id: traceparent(row.traceparent).and_then(Traceparent::trace_id),
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        }
    }
}

statements! {
    /// Returns a conversation.
    READ_CONVERSATION = concat!("
        select ", conversation_columns!(), "
        from chat_conversations c
        where c.id = $1
    "),
    /// Returns a run with its answer.
    READ_RUN = concat!("
        select ", run_columns!(), "
        from agent_runs r
        left join chat_messages o on o.id = r.output_message_id
        where r.id = $1
    "),
}

/// Returns the span of a run's submission; `None` for an unreadable text.
pub(super) fn traceparent(stored: Option<String>) -> Option<Traceparent> {
    stored?.parse().ok()
}

/// Reads the conversation of this id within a transaction.
pub(super) async fn read_conversation(tx: &mut Tx, id: Uuid) -> Result<Conversation, Error> {
    Ok(tx.fetch_one::<ConversationRow>(READ_CONVERSATION, args![id]).await?.into())
}

/// Reads the run of this id within a transaction, with its answer.
pub(super) async fn read_run(tx: &mut Tx, id: Uuid) -> Result<Run, Error> {
    Ok(tx.fetch_one::<RunRow>(READ_RUN, args![id]).await?.into())
}

/// A question to a human.
#[derive(FromRow)]
pub(super) struct ApprovalRow {
    pub id: Uuid,
    run_id: Uuid,
    call_id: String,
    #[sqlx(try_from = "String")]
    kind: ApprovalKind,
    name: String,
    input: Json<Value>,
    #[sqlx(try_from = "String")]
    status: ApprovalStatus,
    reason: Option<String>,
    edited_input: Option<Json<Value>>,
    requested_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    decided_at: Option<DateTime<Utc>>,
    decided_by: Option<String>,
}

/// The columns of `ApprovalRow`.
macro_rules! approval_columns {
    () => {
        "id, run_id, call_id, kind, name, input, status, reason,
            edited_input, requested_at, expires_at, decided_at, decided_by"
    };
}
pub(super) use approval_columns;

impl From<ApprovalRow> for Approval {
    fn from(row: ApprovalRow) -> Self {
        Self {
            id: row.id,
            run_id: row.run_id,
            call_id: row.call_id,
            kind: row.kind,
            name: row.name,
            input: row.input.0,
            status: row.status,
            reason: row.reason,
            edited_input: row.edited_input.map(|input| input.0),
            requested_at: row.requested_at,
            expires_at: row.expires_at,
            decided_at: row.decided_at,
            decided_by: row.decided_by,
        }
    }
}
