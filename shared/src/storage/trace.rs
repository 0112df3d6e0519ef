//! The trace of a run, its tool calls and its questions, for readers and for the next attempt.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    pages::{PageRow, page_of, page_query},
    rows::{ApprovalRow, approval_columns},
    sql::{args, statements},
};
use crate::{
    approval::Approval,
    file::ToolFile,
    page::{Page, PageSize},
    tool::{Effect, ToolCall, ToolCallStatus, ToolError},
    trace::{RequestedCall, TraceMessage, TraceRole},
    usage::Usage,
};

#[derive(FromRow)]
struct TraceRow {
    position: i64,
    step: i64,
    #[sqlx(try_from = "String")]
    role: TraceRole,
    content: String,
    tool_calls: Option<Json<Vec<RequestedCall>>>,
    call_id: Option<String>,
    is_error: bool,
    usage: Option<Json<Usage>>,
    model: Option<String>,
    plan_step: Option<i64>,
    created_at: DateTime<Utc>,
}

#[derive(FromRow)]
struct CallRow {
    run_id: Uuid,
    call_id: String,
    step: i64,
    name: String,
    executed_by: Option<String>,
    input: Json<Value>,
    #[sqlx(try_from = "String")]
    effect: Effect,
    #[sqlx(try_from = "String")]
    status: ToolCallStatus,
    child_run_id: Option<Uuid>,
    output: Option<String>,
    error: Option<Json<ToolError>>,
    files: Option<Json<Vec<ToolFile>>>,
    duration_ms: Option<i64>,
    expires_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    completed_at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct CallPageRow {
    #[sqlx(flatten)]
    call: CallRow,
    position: i64,
}

impl From<CallPageRow> for ToolCall {
    fn from(row: CallPageRow) -> Self {
        Self::from(row.call)
    }
}

statements! {
    /// Returns a run's trace.
    TRACE = "
        select position, step, role, content, tool_calls, call_id, is_error, usage, model,
            plan_step,
            created_at
        from agent_run_messages
        where run_id = $1
        order by position
    ",
    /// Returns a run's tool calls.
    TOOL_CALLS = "
        select run_id, call_id, step, name, executed_by, input, effect, status, child_run_id,
            output, error, files, duration_ms, expires_at, created_at, completed_at
        from agent_run_tool_calls
        where run_id = $1
        order by step, position
    ",
    /// Lists a run's trace.
    TRACE_PAGE = page_query!(
        "
            select position, step, role, content, tool_calls, call_id, is_error, usage, model,
                plan_step, created_at,
                octet_length(content) + coalesce(octet_length(cast(tool_calls as text)), 0)
                + 300 as page_bytes
            from agent_run_messages
            where run_id = $1 and ($2 is null or position > $2)
            order by position
            limit $3
        ",
        "position",
        "$4",
    ),
    /// Lists a run's tool calls.
    TOOL_CALLS_PAGE = page_query!(
        "
            select run_id, call_id, step, name, executed_by, input, effect, status, child_run_id,
                output, error, files, duration_ms, expires_at, created_at, completed_at, position,
                octet_length(cast(input as text)) + coalesce(octet_length(output), 0)
                + coalesce(octet_length(cast(error as text)), 0)
                + coalesce(octet_length(cast(files as text)), 0) + 500 as page_bytes
            from agent_run_tool_calls
            where run_id = $1
              and ($2 is null or (step, position) > ($2, $3))
            order by step, position
            limit $4
        ",
        "step, position",
        "$5",
    ),
    /// Lists a run's trace up to the message `$2`. The size of a message includes its calls.
    TRACE_UP_TO = page_query!(
        "
            select m.position, m.step, m.role, m.content, m.tool_calls, m.call_id, m.is_error,
                m.usage, m.model, m.plan_step, m.created_at,
                octet_length(m.content)
                + coalesce(octet_length(cast(m.tool_calls as text)), 0) + 300
                + coalesce(
                    (
                        select cast(
                            sum(
                                octet_length(cast(c.input as text))
                                + coalesce(octet_length(c.output), 0)
                                + coalesce(octet_length(cast(c.error as text)), 0) + 500
                            ) as integer
                        )
                        from agent_run_tool_calls c
                        where c.run_id = m.run_id
                          and c.step = m.step
                          and m.role = 'assistant'
                    ),
                    0
                ) as page_bytes
            from agent_run_messages m
            where m.run_id = $1
              and m.position <= $2
              and ($3 is null or m.position > $3)
            order by m.position
            limit $4
        ",
        "position",
        "$5",
    ),
    /// Returns the calls whose results a run's trace has up to the message `$2`.
    ANSWERED_CALLS = "
        select call_id
        from agent_run_messages
        where run_id = $1
          and position <= $2
          and call_id is not null
    ",
    /// Returns the tool calls of some steps of a run.
    TOOL_CALLS_OF_STEPS = "
        select run_id, call_id, step, name, executed_by, input, effect, status, child_run_id,
            output, error, files, duration_ms, expires_at, created_at, completed_at
        from agent_run_tool_calls
        where run_id = $1
          and step >= $2
          and step <= $3
        order by step, position
    ",
    /// Lists a run's questions.
    APPROVALS_PAGE = page_query!(
        concat!("
            select ", approval_columns!(), ",
                octet_length(cast(input as text))
                + coalesce(octet_length(cast(edited_input as text)), 0)
                + coalesce(octet_length(reason), 0) + 500 as page_bytes
            from agent_run_approvals
            where (run_id = $1 or top_run_id = $1)
              and (
                  $2 is null
                  or (requested_at, id) > (
                      select last.requested_at, last.id
                      from agent_run_approvals last
                      where last.id = $2
                  )
              )
            order by requested_at, id
            limit $3
        "),
        "requested_at, id",
        "$4",
    ),
    /// Returns a run's questions.
    APPROVALS = concat!("
        select ", approval_columns!(), "
        from agent_run_approvals
        where run_id = $1 or top_run_id = $1
        order by requested_at, id
    "),
}

impl Storage {
    /// Returns all messages of a run's trace, in order.
    pub async fn trace(&self, run_id: Uuid) -> Result<Vec<TraceMessage>, Error> {
        let rows = self.database.fetch_all::<TraceRow>("read a run's trace", TRACE, args![run_id]).await?;
        Ok(rows.into_iter().map(TraceMessage::from).collect())
    }

    /// Returns all tool calls of a run, in the order of the model's requests.
    pub async fn tool_calls(&self, run_id: Uuid) -> Result<Vec<ToolCall>, Error> {
        let rows = self.database.fetch_all::<CallRow>("read a run's tool calls", TOOL_CALLS, args![run_id]).await?;
        Ok(rows.into_iter().map(ToolCall::from).collect())
    }

    /// Returns a page of a run's trace. `None` for an unknown cursor.
    pub async fn trace_page(
        &self,
        run_id: Uuid,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<TraceMessage>>, Error> {
        let Ok(after) = cursor.map(str::parse::<i64>).transpose() else { return Ok(None) };
        let rows = self
            .database
            .fetch_all::<PageRow<TraceRow>>(
                "list a run's trace",
                TRACE_PAGE,
                args![run_id, after, size.items + 1, size.bytes],
            )
            .await?;
        Ok(Some(page_of(rows, size, |last| last.position.to_string())))
    }

    /// Returns a page of a run's tool calls. `None` for an unknown cursor.
    pub async fn tool_calls_page(
        &self,
        run_id: Uuid,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<ToolCall>>, Error> {
        // The cursor is `<step>.<position>` of the previous page's last call.
        let position = |text: &str| -> Option<(i64, i64)> {
            let (step, position) = text.split_once('.')?;
            Some((step.parse().ok()?, position.parse().ok()?))
        };
        let after = match cursor.map(position) {
            Some(None) => return Ok(None),
            after => after.flatten(),
        };
        let (step, position) = after.unzip();
        let args = args![run_id, step, position, size.items + 1, size.bytes];
        let rows =
            self.database.fetch_all::<PageRow<CallPageRow>>("list a run's tool calls", TOOL_CALLS_PAGE, args).await?;
        Ok(Some(page_of(rows, size, |last| format!("{}.{}", last.call.step, last.position))))
    }

    /// Returns a page of a run's trace up to a message. The size of a message includes its calls. `None` for an unknown
    /// cursor.
    pub(super) async fn trace_up_to(
        &self,
        run_id: Uuid,
        messages: u32,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<TraceMessage>>, Error> {
        let Ok(after) = cursor.map(str::parse::<i64>).transpose() else { return Ok(None) };
        let args = args![run_id, messages, after, size.items + 1, size.bytes];
        let rows = self
            .database
            .fetch_all::<PageRow<TraceRow>>("list a run's trace up to a checkpoint", TRACE_UP_TO, args)
            .await?;
        Ok(Some(page_of(rows, size, |last| last.position.to_string())))
    }

    /// Returns the ids of the calls whose results a run's trace has up to a message.
    pub(super) async fn calls_answered_up_to(&self, run_id: Uuid, messages: u32) -> Result<Vec<String>, Error> {
        let rows = self
            .database
            .fetch_all::<(String,)>("list the answered calls", ANSWERED_CALLS, args![run_id, messages])
            .await?;
        Ok(rows.into_iter().map(|(call_id,)| call_id).collect())
    }

    /// Returns the tool calls of some steps of a run, in the order of the model's requests.
    pub(super) async fn tool_calls_of_steps(&self, run_id: Uuid, from: u32, to: u32) -> Result<Vec<ToolCall>, Error> {
        let rows = self
            .database
            .fetch_all::<CallRow>("read the tool calls of some steps", TOOL_CALLS_OF_STEPS, args![run_id, from, to])
            .await?;
        Ok(rows.into_iter().map(ToolCall::from).collect())
    }

    /// Returns a page of a run's questions to humans, in order. `None` for an unknown cursor.
    pub async fn approvals_page(
        &self,
        run_id: Uuid,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Approval>>, Error> {
        let Ok(after) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let args = args![run_id, after, size.items + 1, size.bytes];
        let rows =
            self.database.fetch_all::<PageRow<ApprovalRow>>("list a run's approvals", APPROVALS_PAGE, args).await?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// Returns all questions of a run to humans, in order.
    pub async fn approvals(&self, run_id: Uuid) -> Result<Vec<Approval>, Error> {
        let rows = self.database.fetch_all::<ApprovalRow>("read a run's approvals", APPROVALS, args![run_id]).await?;
        Ok(rows.into_iter().map(Approval::from).collect())
    }
}

impl From<TraceRow> for TraceMessage {
    fn from(row: TraceRow) -> Self {
        Self {
            position: row.position as u32,
            step: row.step as u32,
            role: row.role,
            content: row.content,
            redacted: false,
            tool_calls: row.tool_calls.map(|calls| calls.0).unwrap_or_default(),
            call_id: row.call_id,
            is_error: row.is_error,
            usage: row.usage.map(|usage| usage.0),
            model: row.model,
            plan_step: row.plan_step.map(|step| step as u32),
            created_at: row.created_at,
        }
    }
}

impl From<CallRow> for ToolCall {
    fn from(row: CallRow) -> Self {
        Self {
            call_id: row.call_id,
            run_id: row.run_id,
            step: row.step as u32,
            name: row.name,
            input: row.input.0,
            effect: row.effect,
            status: row.status,
            by: row.executed_by.and_then(|by| by.parse().ok()),
            child_run_id: row.child_run_id,
            output: row.output,
            error: row.error.map(|error| error.0),
            files: row.files.map(|files| files.0).unwrap_or_default(),
            duration_ms: row.duration_ms.map(|duration| duration as u64),
            expires_at: row.expires_at,
            created_at: row.created_at,
            completed_at: row.completed_at,
        }
    }
}
