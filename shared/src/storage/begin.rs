//! The start of an attempt's work: the run is marked as executing, and what it goes on from is read.

use serde::Deserialize;
use serde_json::Value;
use sqlx::{FromRow, types::Json};

use super::{
    Claim, Error, Storage,
    database::args,
    fenced::Statement,
    rows::{MessageRow, message_columns},
    summaries::newest_summary,
};
use crate::{
    approval::Approval,
    finish_reason::FinishReason,
    message::Message,
    tool::{ClientTool, ToolCall},
    trace::TraceMessage,
};

/// What the attempt goes on from, or that the claim is no longer valid.
#[derive(Debug)]
pub enum BeginResult {
    Executing(Box<Start>),
    Fenced,
}

/// All that is known of a run when an attempt begins.
#[derive(Debug)]
pub struct Start {
    pub history: History,
    /// What earlier attempts have come to; empty for a fresh run.
    pub trace: Vec<TraceMessage>,
    pub calls: Vec<ToolCall>,
    pub approvals: Vec<Approval>,
    pub client_tools: Vec<ClientTool>,
    /// The conversation's metadata, with what the run's message has brought.
    pub metadata: Value,
    /// Why the model ended the newest step of an earlier attempt.
    pub finish_reason: Option<FinishReason>,
}

/// The conversation as of the run's submission.
#[derive(Debug)]
pub struct History {
    /// What stands for all that came before `earlier`, where it has become too long.
    pub summary: Option<Summary>,
    /// The messages of earlier turns, oldest first; never a later message.
    pub earlier: Vec<EarlierMessage>,
    /// The run's own input.
    pub input: Message,
}

/// A message before the run's own input.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierMessage {
    /// A run's input and its answer are one turn.
    pub turn: i64,
    pub message: Message,
    /// What tools have returned to the run that wrote it, the newest first.
    pub results: Vec<EarlierResult>,
}

/// The beginning of what a tool was given and has returned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EarlierResult {
    pub name: String,
    /// JSON, one character longer than the window where it is cut there.
    pub input: String,
    pub output: Option<String>,
    /// JSON, where the call has failed.
    pub error: Option<String>,
}

impl EarlierResult {
    /// Cuts input and result at so many characters, with a mark.
    pub fn truncate(&mut self, most: usize) {
        for text in [Some(&mut self.input), self.output.as_mut(), self.error.as_mut()].into_iter().flatten() {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
                text.push('…');
            }
        }
    }
}

/// What stands for older messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub up_to: i64,
    pub content: String,
}

/// How many messages before its own input a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub usual: usize,
    /// In a standing conversation.
    pub standing: usize,
    /// Characters of each input, and of each result, of earlier runs' tools; 0 for no results.
    pub result_chars: usize,
}

/// Results that are read of one earlier run.
const RESULTS: usize = 20;

/// A message that the run goes on from. The run's own input also has what else is known.
#[derive(FromRow)]
struct HistoryRow {
    own: bool,
    turn: i64,
    #[sqlx(flatten)]
    message: MessageRow,
    up_to: Option<i64>,
    summary: Option<String>,
    client_tools: Option<Json<Vec<ClientTool>>>,
    metadata: Option<Json<Value>>,
    inherited: Option<Json<Value>>,
    run_finish_reason: Option<String>,
    results: Option<Json<Vec<EarlierResult>>>,
}

/// What the tools of the run that wrote the message `earlier` have returned. The answer that a fork was made in knows no more
/// than the checkpoint of the fork.
macro_rules! earlier_results {
    () => {
        "(select {objects:'name', t.name, 'input', substr(cast(t.input as text), 1, cast($7 as integer) + 1), \
         'output', substr(t.output, 1, cast($7 as integer) + 1), 'error', substr(cast(t.error as text), 1, cast($7 as integer) + 1)} \
         from (select c.name, c.input, c.output, c.error from agent_run_tool_calls c \
         where $7 > 0 and c.run_id = earlier.run_id and earlier.role = 'assistant' and c.status = 'completed' \
         and not exists (select 1 from agent_run_checkpoints k where k.conversation_id = earlier.conversation_id \
         and k.node = 'fork' and k.run_id = c.run_id and not exists (select 1 from agent_run_messages s \
         where s.run_id = c.run_id and s.call_id = c.call_id and s.position <= k.messages)) \
         order by c.step desc, c.position desc limit $8) t)"
    };
}

impl Storage {
    /// Marks the run as executing by `model`, so that from now on the worker's death counts as a crash, and reads what it
    /// goes on from, with as many messages before its own input as the window has.
    pub async fn begin(&self, claim: &Claim, model: &str, window: Window) -> Result<BeginResult, Error> {
        // If it is undone, one death of a worker is not counted.
        let mark = Statement::new(
            "update agent_runs set executing = true, model = $3 where id = $1 and attempt = $2 and status = 'running' \
             returning id, input_message_id, client_tools, metadata, finish_reason, {unsynced} as unsynced",
            args![claim.run_id, claim.attempt, model],
        );
        let rows = self.database.write_and_read::<HistoryRow>(mark, history_rows(claim, window)).await;
        let mut rows = rows.map_err(Error::doing("begin an attempt"))?.into_iter();
        let Some(own) = rows.next().filter(|row| row.own) else { return Ok(BeginResult::Fenced) };
        let mut earlier: Vec<EarlierMessage> = rows
            .map(|row| EarlierMessage {
                turn: row.turn,
                message: row.message.into(),
                results: row.results.map(|results| results.0).unwrap_or_default(),
            })
            .collect();
        earlier.reverse();
        let summary = own.up_to.zip(own.summary).map(|(up_to, content)| Summary { up_to, content });
        let mut start = Start {
            history: History { summary, earlier, input: own.message.into() },
            trace: Vec::new(),
            calls: Vec::new(),
            approvals: Vec::new(),
            client_tools: own.client_tools.map(|tools| tools.0).unwrap_or_default(),
            metadata: merged(own.inherited.map(|json| json.0), own.metadata.map(|json| json.0)),
            finish_reason: own.run_finish_reason.map(FinishReason::from),
        };
        // Nothing but `run.queued` is behind a fresh run.
        if !claim.is_fresh() {
            start.trace = self.trace(claim.run_id).await?;
            start.calls = self.tool_calls(claim.run_id).await?;
            start.approvals = self.approvals(claim.run_id).await?;
        }
        Ok(BeginResult::Executing(Box::new(start)))
    }
}

/// Reads the own input first, and then ever earlier messages with what their runs' tools have returned. What was superseded
/// only after the run's submission is still part of what it goes on from.
fn history_rows(claim: &Claim, window: Window) -> Statement {
    let sql = concat!(
        "with summary as (",
        newest_summary!(),
        ") select * from (select true as own, m.turn, ",
        message_columns!(),
        ", s.up_to, s.content as summary, r.client_tools, r.metadata, (select c.metadata from agent_run_checkpoints c ",
        "where c.conversation_id = $2 order by c.id desc limit 1) as inherited, r.finish_reason as run_finish_reason, ",
        "cast(null as jsonb) as results ",
        "from (select * from {fence:agent_runs where id = $1}) r join chat_messages m on m.id = r.input_message_id ",
        "left join summary s on true) said union all ",
        "select earlier.*, ",
        earlier_results!(),
        " as results from (select false as own, m.turn, ",
        message_columns!(),
        ", cast(null as bigint) as up_to, cast(null as text) as summary, cast(null as jsonb) as client_tools, ",
        "cast(null as jsonb) as metadata, cast(null as jsonb) as inherited, cast(null as text) as run_finish_reason from chat_messages m ",
        "where m.conversation_id = $2 and m.turn < $3 and m.turn > coalesce((select up_to from summary), -1) ",
        "and m.id <> (select input_message_id from agent_runs where id = $1) ",
        "and (m.superseded_at is null or m.superseded_at > $4) order by m.turn desc, m.position desc ",
        "limit (select case when c.handle like 'agent:%' then $6 else $5 end from chat_conversations c where c.id = $2)) earlier ",
        "order by own desc, turn desc, position desc"
    );
    let Window { usual, standing, result_chars } = window;
    let created_at = Some(claim.created_at);
    let args =
        args![claim.run_id, claim.conversation_id, claim.position, created_at, usual, standing, result_chars, RESULTS];
    Statement::new(sql, args)
}

/// Both objects in one; what the run brings wins.
pub(super) fn merged(inherited: Option<Value>, own: Option<Value>) -> Value {
    let object = |json: Option<Value>| match json {
        Some(Value::Object(fields)) => fields,
        _ => Default::default(),
    };
    let mut fields = object(inherited);
    fields.extend(object(own));
    Value::Object(fields)
}
