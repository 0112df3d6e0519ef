//! The history of a conversation: its newest messages, each answer with its parts and its calls.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, MessagePlace, Storage, StreamDefaults,
    pages::{PageRow, page_of, page_query},
    rows::{MessageRow, message_columns},
    sql::{args, statements},
};
use crate::{
    file::ToolFile,
    finish_reason::FinishReason,
    message::Message,
    page::{Page, PageSize},
    parts::MessageParts,
    run::{RunError, RunStatus},
    tool::{ToolCallStatus, ToolError},
    usage::Usage,
};

/// A message, with its answer if a run wrote it.
#[derive(Debug)]
pub struct HistoryMessage {
    /// The message.
    pub message: Message,
    /// The answer of the run.
    pub answer: Option<StoredAnswer>,
}

/// The answer of an ended run, beside its message.
#[derive(Debug)]
pub struct StoredAnswer {
    /// The run.
    pub run_id: Uuid,
    /// The conversation.
    pub conversation_id: Uuid,
    /// The id of the answer.
    pub message_id: Uuid,
    /// The message that the run answers.
    pub input_message_id: Uuid,
    /// The run's status.
    pub status: RunStatus,
    /// The usage of all steps.
    pub usage: Usage,
    /// Why the model ended the answer, if the run has completed.
    pub finish_reason: Option<FinishReason>,
    /// Why the run has failed.
    pub error: Option<RunError>,
    /// When the run ended.
    pub finished_at: DateTime<Utc>,
    /// The defaults of the run's streams.
    pub defaults: StreamDefaults,
    /// The parts of the message; `None` if a later version has written some that this one cannot read.
    pub parts: Option<MessageParts>,
    /// The calls of the run.
    pub calls: Vec<StoredCall>,
}

/// A call of a tool, as its row has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StoredCall {
    /// The call.
    pub call_id: String,
    /// The status of the row.
    pub status: String,
    /// The arguments, as JSON text.
    pub input: String,
    /// The text that the tool returned.
    pub output: Option<String>,
    /// Why there is no output.
    pub error: Option<String>,
    /// The files that the tool has returned, as JSON text.
    #[serde(default)]
    pub files: Option<String>,
    /// How long the call took.
    pub duration_ms: Option<u64>,
}

impl StoredCall {
    /// Returns the arguments.
    pub fn input(&self) -> Value {
        serde_json::from_str(&self.input).unwrap_or_default()
    }

    /// Returns whether the call has an outcome.
    pub fn has_ended(&self) -> bool {
        self.status == ToolCallStatus::Completed.as_str()
    }

    /// Returns why there is no output.
    pub fn error(&self) -> Option<ToolError> {
        serde_json::from_str(self.error.as_deref()?).ok()
    }

    /// Returns the files that the tool has returned.
    pub fn files(&self) -> Vec<ToolFile> {
        self.files.as_deref().and_then(|files| serde_json::from_str(files).ok()).unwrap_or_default()
    }
}

/// The columns of `AnswerRow` from `agent_runs r`, without those of the calls and the agent.
macro_rules! answer_columns {
    () => {
        "r.id as answer_run, r.conversation_id as run_conversation, r.output_message_id,
            r.input_message_id, r.status as run_status, r.usage as run_usage,
            r.finish_reason as run_finish_reason, r.error_code, r.error_message, r.finished_at,
            r.stream, r.parts"
    };
}

/// The columns of `AnswerRow` from the run's calls and its agent.
macro_rules! answer_details {
    ($run:literal) => {
        concat!(
            "
            (
                select {objects:
                    'call_id', c.call_id, 'status', c.status, 'input', cast(c.input as text),
                    'output', c.output, 'error', cast(c.error as text),
                    'files', cast(c.files as text), 'duration_ms', c.duration_ms
                }
                from agent_run_tool_calls c
                where c.run_id = ",
            $run,
            "
            ) as calls,
            (
                select v.definition ->> 'stream_mode'
                from agent_definition_versions v, agent_runs a
                where a.id = ",
            $run,
            "
                  and v.agent_definition_id = a.agent_definition_id
                  and v.version = a.agent_version
            ) as stream_mode"
        )
    };
}

/// The approximate size of an answer's parts and calls as JSON, from `agent_runs r`.
macro_rules! answer_bytes {
    () => {
        "coalesce(octet_length(cast(r.parts as text)), 0)
                    + coalesce(
                        (
                            select sum(
                                octet_length(cast(c.input as text))
                                + coalesce(octet_length(c.output), 0)
                                + coalesce(octet_length(cast(c.files as text)), 0) + 200
                            )
                            from agent_run_tool_calls c
                            where c.run_id = r.id
                        ),
                        0
                    )"
    };
}

#[derive(FromRow)]
struct AnsweredMessageRow {
    #[sqlx(flatten)]
    message: MessageRow,
    #[sqlx(flatten)]
    answer: AnswerRow,
}

#[derive(FromRow)]
struct AnswerRow {
    answer_run: Option<Uuid>,
    run_conversation: Option<Uuid>,
    output_message_id: Option<Uuid>,
    input_message_id: Option<Uuid>,
    run_status: Option<String>,
    run_usage: Option<Json<Usage>>,
    run_finish_reason: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    finished_at: Option<DateTime<Utc>>,
    stream: Option<bool>,
    parts: Option<Json<Value>>,
    calls: Option<Json<Vec<StoredCall>>>,
    stream_mode: Option<String>,
}

impl AnswerRow {
    /// Returns the answer, or `None` if no run wrote the message.
    fn into_answer(self) -> Option<StoredAnswer> {
        let status = RunStatus::try_from(self.run_status?).ok()?;
        let mode = self.stream_mode.and_then(|mode| serde_json::from_value(Value::String(mode)).ok());
        Some(StoredAnswer {
            run_id: self.answer_run?,
            conversation_id: self.run_conversation?,
            message_id: self.output_message_id?,
            input_message_id: self.input_message_id?,
            status,
            usage: self.run_usage.map(|usage| usage.0).unwrap_or_default(),
            // The row of a failed run may have the finish reason of a step.
            finish_reason: self.run_finish_reason.filter(|_| status == RunStatus::Completed).map(FinishReason::from),
            error: self.error_code.zip(self.error_message).map(|(code, message)| RunError::new(code, message)),
            finished_at: self.finished_at?,
            defaults: StreamDefaults { mode: mode.unwrap_or_default(), writes_deltas: self.stream.unwrap_or(true) },
            parts: self.parts.and_then(|parts| serde_json::from_value(parts.0).ok()),
            calls: self.calls.map(|calls| calls.0).unwrap_or_default(),
        })
    }
}

impl From<AnsweredMessageRow> for HistoryMessage {
    fn from(row: AnsweredMessageRow) -> Self {
        Self { message: row.message.into(), answer: row.answer.into_answer() }
    }
}

/// Selects the messages of a history that fulfil a further condition.
macro_rules! history_query {
    ($place:literal) => {
        concat!(
            "
            select h.*, ",
            answer_columns!(),
            ", ",
            answer_details!("h.writer"),
            "
            from (",
            page_query!(
                concat!(
                    "
                    select ",
                    message_columns!(),
                    ",
                        m.turn, r.id as writer,
                        octet_length(m.content)
                        + coalesce(octet_length(cast(m.retrieval_context as text)), 0) + 400
                        + ",
                    answer_bytes!(),
                    " as page_bytes
                    from chat_messages m
                    left join agent_runs r on r.id = m.run_id and m.role = 'assistant'
                    where m.conversation_id = $1
                      and m.owner_id = $2
                      and m.superseded_at is null",
                    $place,
                    "
                    order by m.turn desc, m.position desc
                    limit $3
                "
                ),
                "turn desc, position desc",
                "$4"
            ),
            "
            ) h
            left join agent_runs r on r.id = h.writer
            order by h.turn desc, h.position desc
            "
        )
    };
}

statements! {
    /// Returns the newest messages of an owner's conversation, with the answers of their runs.
    HISTORY = history_query!(""),
    /// Returns those before a place. The first page has no such condition, because PostgreSQL then reads more for it.
    HISTORY_BEFORE = history_query!("
                      and (m.turn, m.position) < ($5, $6)"),
    /// Returns the answers of failed and cancelled runs without a message to messages before a place; not of runs whose
    /// message has joined another one.
    ANSWERS_WITHOUT_MESSAGE = concat!(
        "
        select ", answer_columns!(), ", ", answer_details!("r.id"), "
        from (",
        page_query!(
            concat!("
                select r.id as writer, r.position,
                    400 + ", answer_bytes!(), " as page_bytes
                from agent_runs r
                join chat_messages q on q.id = r.input_message_id
                left join chat_messages o on o.id = r.output_message_id
                where r.owner_id = $1
                  and r.conversation_id = $2
                  and r.status in ('failed', 'cancelled')
                  and r.superseded_at is null
                  and o.id is null
                  and (q.turn, q.position) < ($5, $6)
                  and not (
                      r.steers
                      and exists (
                          select 1
                          from chat_messages i
                          where i.id = r.input_message_id and i.run_id <> r.id
                      )
                  )
                order by r.position desc
                limit $3
            "),
            "position desc",
            "$4"
        ),
        "
        ) h
        join agent_runs r on r.id = h.writer
        order by h.position desc
        "
    ),
}

impl Storage {
    /// Returns the newest messages of the conversation that fit into a page, newest first. Each answer comes before its
    /// question.
    pub async fn history(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: PageSize,
    ) -> Result<Vec<HistoryMessage>, Error> {
        Ok(self.history_before(owner, conversation_id, size, MessagePlace::END).await?.items)
    }

    /// Returns the messages of the conversation before a place, as `history` does. The page's cursor is the id of its oldest
    /// message.
    pub async fn history_before(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: PageSize,
        before: MessagePlace,
    ) -> Result<Page<HistoryMessage>, Error> {
        let items = size.items.saturating_add(1);
        let (sql, args) = if before == MessagePlace::END {
            (HISTORY, args![conversation_id, owner, items, size.bytes])
        } else {
            (HISTORY_BEFORE, args![conversation_id, owner, items, size.bytes, before.turn, before.position])
        };
        let rows =
            self.database.fetch_all::<PageRow<AnsweredMessageRow>>("read the history of a conversation", sql, args);
        Ok(page_of(rows.await?, size, |oldest: &AnsweredMessageRow| oldest.message.id.to_string()))
    }

    /// Returns the answers of failed and cancelled runs that left no message, newest first, as many as fit into a page.
    pub async fn answers_without_message(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: PageSize,
    ) -> Result<Vec<StoredAnswer>, Error> {
        self.answers_without_message_before(owner, conversation_id, size, MessagePlace::END).await
    }

    /// Returns these answers to messages before a place.
    pub async fn answers_without_message_before(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: PageSize,
        before: MessagePlace,
    ) -> Result<Vec<StoredAnswer>, Error> {
        let rows = self
            .database
            .fetch_all::<AnswerRow>(
                "read the answers without a message",
                ANSWERS_WITHOUT_MESSAGE,
                args![owner, conversation_id, size.items, size.bytes, before.turn, before.position],
            )
            .await?;
        Ok(rows.into_iter().filter_map(AnswerRow::into_answer).collect())
    }
}
