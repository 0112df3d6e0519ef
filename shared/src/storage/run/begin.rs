//! BEGIN: the start of an attempt's work reads the state that the run resumes from. CLAIM has marked the run as executing.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};

use super::{
    Claim, EarlierMessage, EarlierResult, History, Summary, Window, attempt::status, claim::FirstInput,
    earlier::join_dated, summary::newest_summary,
};
use crate::storage::{
    Error, Storage,
    rows::{MessageRow, message_columns},
    sql::{self, args, statements},
};
use crate::{
    approval::Approval,
    finish_reason::FinishReason,
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
    is_standing: Option<bool>,
    turn_before: Option<i64>,
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

statements! {
    /// Reads the run's own input first, then the earlier messages and their runs' tool results, newest first: one more than
    /// the window has, within its bytes. It includes messages that were superseded after the run's submission.
    HISTORY = concat!("
        with summary as (
            ", newest_summary!("$2", "$3"), "
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
                r.finish_reason as run_finish_reason,
                (
                    select coalesce(c.handle like 'agent:%', false)
                    from chat_conversations c
                    where c.id = $2
                ) as is_standing,
                cast(null as bigint) as turn_before, cast(0 as bigint) as newer_bytes,
                cast(null as jsonb) as results, r.dated_at, r.time_zone
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
            select newest.*,
                lag(newest.turn) over (order by newest.turn, newest.position) as turn_before,
                sum(octet_length(newest.content)) over (
                    order by newest.turn desc, newest.position desc
                ) - octet_length(newest.content) as newer_bytes
            from (
                select false as own, m.turn, ", message_columns!(), ",
                    cast(null as bigint) as up_to, cast(null as text) as summary,
                    cast(null as jsonb) as client_tools, cast(null as jsonb) as metadata,
                    cast(null as jsonb) as inherited, cast(null as text) as run_finish_reason,
                    cast(null as boolean) as is_standing
                from chat_messages m
                where m.conversation_id = $2
                  and m.turn < $3
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
                ) + 1
            ) newest
        ) earlier", join_dated!(), "
        where earlier.newer_bytes <= $10
        order by own desc, turn desc, position desc
    "),
}

impl Storage {
    /// Returns the state that the attempt resumes from, with the window's number of earlier messages. The first attempt of
    /// a run that opens its conversation needs no read, because its claim has the state.
    pub async fn begin(&self, claim: &Claim, window: Window) -> Result<BeginResult, Error> {
        if let Some(FirstInput { message, metadata }) = claim.first_input.as_deref() {
            return Ok(BeginResult::Executing(Box::new(Start {
                history: History {
                    summary: None,
                    earlier: Vec::new(),
                    older: None,
                    input: message.clone(),
                    input_turn: claim.position,
                    is_standing: false,
                },
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
        let is_standing = own.is_standing.unwrap_or(false);
        let mut newest: Vec<HistoryRow> = rows.collect();
        let beyond = newest.get(window.messages(is_standing)).map(|row| row.turn);
        let older = beyond.or_else(|| newest.last().and_then(|row| row.turn_before));
        newest.truncate(window.messages(is_standing));
        let mut earlier: Vec<EarlierMessage> = newest
            .into_iter()
            .map(|row| EarlierMessage {
                turn: row.turn,
                message: row.message.into(),
                results: row.results.map(|results| results.0).unwrap_or_default(),
                date: row.dated_at.map(|at| RunDate::of_row(at, row.time_zone.as_deref())),
                speaker: None,
            })
            .collect();
        earlier.reverse();
        let inherited = own.inherited.map(|json| json.0);
        let summary = own.up_to.zip(own.summary).map(|(up_to, content)| Summary { up_to, content });
        let StoredClientParts { client_tools, overrides } = own.client_tools.map(|parts| parts.0).unwrap_or_default();
        let mut start = Start {
            history: History { summary, earlier, older, input: own.message.into(), input_turn: own.turn, is_standing },
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
    let Window { usual, standing, bytes, result_chars } = window;
    let created_at = Some(claim.created_at);
    let (run_id, conversation_id, attempt) = (claim.run_id, claim.conversation_id, claim.attempt);
    args![run_id, conversation_id, claim.position, created_at, usual, standing, result_chars, RESULTS, attempt, bytes]
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
