//! BEGIN: the start of an attempt's work reads the state that the run resumes from. CLAIM has marked the run as executing.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{FromRow, types::Json};

use super::{Claim, Summary, attempt::status, claim::FirstInput, summary::newest_summary};
use crate::storage::{
    Error, Storage,
    rows::{MessageRow, message_columns},
    sql::{self, args, statements},
};
use crate::{
    approval::Approval,
    excerpt,
    finish_reason::FinishReason,
    message::Message,
    overrides::{RunOverrides, StoredClientParts},
    plan::Plan,
    time_zone::RunDate,
    tool::{ClientTool, ToolCall},
    trace::TraceMessage,
};

/// The result of a begin.
#[derive(Debug)]
pub enum BeginResult {
    /// The claim is valid, as far as this process knows.
    Executing(Box<Start>),
    /// The claim is no longer valid.
    Fenced,
}

/// The stored state of a run when an attempt begins.
#[derive(Debug)]
pub struct Start {
    /// The conversation at the run's submission.
    pub history: History,
    /// The trace of earlier attempts; empty for a fresh run.
    pub trace: Vec<TraceMessage>,
    /// Tool calls of earlier attempts, in order.
    pub calls: Vec<ToolCall>,
    /// Questions of earlier attempts, in order.
    pub approvals: Vec<Approval>,
    /// Tools that the client declared with the message.
    pub client_tools: Vec<ClientTool>,
    /// Parts of the model's requests that the client brought with the message.
    pub overrides: RunOverrides,
    /// The conversation's metadata, merged with the message's own.
    pub metadata: Value,
    /// The conversation's metadata as earlier runs have left it; `None` for the first run.
    pub inherited: Option<Value>,
    /// The model's reason for ending the newest step of an earlier attempt.
    pub finish_reason: Option<FinishReason>,
    /// The newest plan of the run. The caller reads it for a planner.
    pub plan: Option<Plan>,
}

/// The conversation at the time of the run's submission.
#[derive(Debug)]
pub struct History {
    /// The summary of all messages before `earlier`, if there were too many.
    pub summary: Option<Summary>,
    /// Messages of earlier turns, oldest first. It never has a later message.
    pub earlier: Vec<EarlierMessage>,
    /// The message that the run answers.
    pub input: Message,
}

/// A message before the run's own input.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierMessage {
    /// The number of its turn. A run's input and its answer are one turn.
    pub turn: i64,
    /// The message itself.
    pub message: Message,
    /// Results of the tools that the message's run called, newest first.
    pub results: Vec<EarlierResult>,
    /// The date that the model read with the message; `None` if no run began with it.
    pub date: Option<RunDate>,
}

/// The beginning of a tool's input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierResult {
    /// Name of the tool, as the model knows it.
    pub name: String,
    /// JSON. It has one character more than the window if it was longer.
    pub input: String,
    /// Output of the tool, limited as `input` is.
    pub output: Option<String>,
    /// JSON of the error of a failed call, limited as `input` is.
    pub error: Option<String>,
    /// The call, if its result is kept; a result that the client brings is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl EarlierResult {
    /// Truncates input and result to `most` characters each, with a mark. That of a kept result says how to read on.
    pub fn truncate(&mut self, most: usize) {
        truncate(&mut self.input, most, None);
        let kept = |offset| self.call_id.as_deref().map(|call_id| excerpt::read_on(call_id, offset));
        if let Some(output) = &mut self.output {
            truncate(output, most, kept(most));
        }
        // The words of a kept error are longer than its JSON by another beginning.
        if let Some(error) = &mut self.error {
            truncate(error, most, kept(0));
        }
    }
}

fn truncate(text: &mut String, most: usize, read_on: Option<String>) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
        text.extend(read_on.map(|read_on| format!("[cut{read_on}")));
    }
}

/// The number of earlier messages that a run's model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Messages of a usual conversation.
    pub usual: usize,
    /// Messages of a standing conversation.
    pub standing: usize,
    /// Characters of each input and each result of earlier runs' tools; 0 for no results.
    pub result_chars: usize,
}

/// Results of one earlier run.
const RESULTS: usize = 20;

/// One message of the history. The row of the run's own input also has the run's other columns.
#[derive(FromRow)]
struct HistoryRow {
    own: bool,
    turn: i64,
    #[sqlx(flatten)]
    message: MessageRow,
    up_to: Option<i64>,
    summary: Option<String>,
    client_tools: Option<Json<StoredClientParts>>,
    metadata: Option<Json<Value>>,
    inherited: Option<Json<Value>>,
    run_finish_reason: Option<String>,
    results: Option<Json<Vec<EarlierResult>>>,
    dated_at: Option<DateTime<Utc>>,
    time_zone: Option<String>,
}

/// Results of the tools of the run that wrote the message `earlier`. A copied answer of a fork has the results up to
/// the fork's checkpoint only.
macro_rules! earlier_results {
    () => {
        "(
                select {objects:
                    'call_id', t.call_id,
                    'name', t.name,
                    'input', substr(cast(t.input as text), 1, cast($7 as integer) + 1),
                    'output', substr(t.output, 1, cast($7 as integer) + 1),
                    'error', substr(cast(t.error as text), 1, cast($7 as integer) + 1)
                }
                from (
                    select c.call_id, c.name, c.input, c.output, c.error
                    from agent_run_tool_calls c
                    where $7 > 0
                      and c.run_id = earlier.run_id
                      and earlier.role = 'assistant'
                      and c.status = 'completed'
                      and not exists (
                          select 1
                          from agent_run_checkpoints k
                          where k.conversation_id = earlier.conversation_id
                            and k.node = 'fork'
                            and k.run_id = c.run_id
                            and not exists (
                                select 1
                                from agent_run_messages s
                                where s.run_id = c.run_id
                                  and s.call_id = c.call_id
                                  and s.position <= k.messages
                            )
                      )
                    order by c.step desc, c.position desc
                    limit $8
                ) t
            )"
    };
}

/// Joins the run whose model read the message `earlier` as its input: the newest before this run, or the one that started with a
/// message that a fork has copied. A message and its own run have one time, so a message that joined another run has none.
macro_rules! join_dated {
    () => {
        "
        left join agent_runs started on started.id {is:earlier.run_id}
            and started.created_at = earlier.created_at
            and earlier.role = 'user'
        left join agent_runs dated on dated.id {is:
            coalesce(
                case
                    when earlier.role = 'user'
                    then (
                        select answering.id
                        from agent_runs answering
                        where answering.conversation_id = $2
                          and answering.position >= earlier.turn
                          and answering.position < $3
                          and answering.input_message_id = earlier.id
                        order by answering.position desc
                        limit 1
                    )
                end,
                started.id
            )
        }"
    };
}

statements! {
    /// Reads the run's own input first, then the earlier messages and their runs' tool results, newest first. It
    /// includes messages that were superseded after the run's submission.
    HISTORY = concat!("
        with summary as (
            ", newest_summary!(), "
        )
        select *
        from (
            select true as own, m.turn, ", message_columns!(), ", s.up_to, s.content as summary,
                r.client_tools,
                -- A checkpoint of the run has its metadata, as the run has left it.
                case
                    when r.id is distinct from (
                        select c.run_id
                        from agent_run_checkpoints c
                        where c.conversation_id = $2
                        order by c.id desc
                        limit 1
                    ) then r.metadata
                end as metadata,
                (
                    select c.metadata
                    from agent_run_checkpoints c
                    where c.conversation_id = $2
                    order by c.id desc
                    limit 1
                ) as inherited,
                r.finish_reason as run_finish_reason, cast(null as jsonb) as results, r.dated_at,
                r.time_zone
            from (
                select *
                from agent_runs
                where id = $1
                  and attempt = $9
                  and ", status!(""), " = 'running'
            ) r
            join chat_messages m on m.id = r.input_message_id
            left join summary s on true
        ) said
        union all
        select earlier.*, ", earlier_results!(), " as results, dated.dated_at, dated.time_zone
        from (
            select false as own, m.turn, ", message_columns!(), ", cast(null as bigint) as up_to,
                cast(null as text) as summary, cast(null as jsonb) as client_tools,
                cast(null as jsonb) as metadata, cast(null as jsonb) as inherited,
                cast(null as text) as run_finish_reason
            from chat_messages m
            where m.conversation_id = $2
              and m.turn < $3
              and m.turn > coalesce((select up_to from summary), -1)
              and m.id <> (select input_message_id from agent_runs where id = $1)
              and (m.superseded_at is null or m.superseded_at > $4)
            order by m.turn desc, m.position desc
            limit (
                select case
                    when c.handle like 'agent:%' then cast($6 as bigint)
                    else cast($5 as bigint)
                end
                from chat_conversations c
                where c.id = $2
            )
        ) earlier", join_dated!(), "
        order by own desc, turn desc, position desc
    "),
}

impl Storage {
    /// Returns the state that the attempt resumes from, with the window's number of earlier messages. The first attempt of
    /// a run that opens its conversation needs no read, because its claim has the state.
    pub async fn begin(&self, claim: &Claim, window: Window) -> Result<BeginResult, Error> {
        if let Some(FirstInput { message, metadata }) = claim.first_input.as_deref() {
            return Ok(BeginResult::Executing(Box::new(Start {
                history: History { summary: None, earlier: Vec::new(), input: message.clone() },
                trace: Vec::new(),
                calls: Vec::new(),
                approvals: Vec::new(),
                client_tools: Vec::new(),
                overrides: RunOverrides::default(),
                metadata: merged(None, metadata.clone()),
                inherited: None,
                finish_reason: None,
                plan: None,
            })));
        }
        let args = history_args(claim, window);
        let mut rows = self.database.fetch_all::<HistoryRow>("begin an attempt", HISTORY, args).await?.into_iter();
        let Some(own) = rows.next().filter(|row| row.own) else { return Ok(BeginResult::Fenced) };
        let mut earlier: Vec<EarlierMessage> = rows
            .map(|row| EarlierMessage {
                turn: row.turn,
                message: row.message.into(),
                results: row.results.map(|results| results.0).unwrap_or_default(),
                date: row.dated_at.map(|at| RunDate::of_row(at, row.time_zone.as_deref())),
            })
            .collect();
        earlier.reverse();
        let inherited = own.inherited.map(|json| json.0);
        let summary = own.up_to.zip(own.summary).map(|(up_to, content)| Summary { up_to, content });
        let parts = own.client_tools.map(|parts| parts.0.into_parts());
        let (client_tools, overrides) = parts.unwrap_or_default();
        let mut start = Start {
            history: History { summary, earlier, input: own.message.into() },
            trace: Vec::new(),
            calls: Vec::new(),
            approvals: Vec::new(),
            client_tools,
            overrides,
            metadata: merged(inherited.clone(), own.metadata.map(|json| json.0)),
            inherited,
            finish_reason: own.run_finish_reason.map(FinishReason::from),
            plan: None,
        };
        // A fresh run has no event but `run.queued`.
        if !claim.is_fresh() {
            start.trace = self.trace(claim.run_id).await?;
            start.calls = self.tool_calls(claim.run_id).await?;
            // The others belong to runs below.
            start.approvals = self.approvals(claim.run_id).await?;
            start.approvals.retain(|approval| approval.run_id == claim.run_id);
        }
        Ok(BeginResult::Executing(Box::new(start)))
    }
}

/// Returns the parameters of `HISTORY`.
fn history_args(claim: &Claim, window: Window) -> Vec<sql::Value> {
    let Window { usual, standing, result_chars } = window;
    let created_at = Some(claim.created_at);
    let (run_id, conversation_id, attempt) = (claim.run_id, claim.conversation_id, claim.attempt);
    args![run_id, conversation_id, claim.position, created_at, usual, standing, result_chars, RESULTS, attempt]
}

/// Returns both objects merged; a field of `own` replaces an inherited one.
pub fn merged(inherited: Option<Value>, own: Option<Value>) -> Value {
    let object = |json: Option<Value>| match json {
        Some(Value::Object(fields)) => fields,
        _ => Default::default(),
    };
    let mut fields = object(inherited);
    fields.extend(object(own));
    Value::Object(fields)
}
