//! The start of an attempt's work: the run is marked as executing, and what it goes on from is read.

use serde_json::Value;
use sqlx::{FromRow, types::Json};

use super::{
    Claim, Error, Storage,
    database::args,
    rows::{MessageRow, message_columns},
};
use crate::{
    approval::Approval,
    message::Message,
    tool::{ClientTool, ToolCall},
    trace::TraceMessage,
};

/// What the attempt goes on from, or that the claim is no longer valid.
#[derive(Debug)]
pub enum Begun {
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
}

/// The conversation as of the run's submission.
#[derive(Debug)]
pub struct History {
    /// The inputs and outputs of runs earlier in the conversation's queue, oldest first; never a later message.
    pub earlier: Vec<Message>,
    /// The run's own input.
    pub input: Message,
}

#[derive(FromRow)]
struct Marked {
    client_tools: Option<Json<Vec<ClientTool>>>,
    metadata: Option<Json<Value>>,
    inherited: Option<Json<Value>>,
}

impl Storage {
    /// Marks the run as executing by `model`, so that from now on the worker's death counts as a crash, and reads what it
    /// goes on from, with the last `limit` messages before its own input.
    pub async fn begin(&self, claim: &Claim, model: &str, limit: usize) -> Result<Begun, Error> {
        let mark = async {
            let sql = "update agent_runs set executing = true, model = $4 where id = $1 and attempt = $2 and status = 'running' \
                       returning client_tools, metadata, (select c.metadata from agent_run_checkpoints c \
                       where c.conversation_id = $3 order by c.id desc limit 1) as inherited";
            let args = args![claim.run_id, claim.attempt, claim.conversation_id, model];
            Ok(self.database.write::<Marked>(sql, args).await?.into_iter().next())
        };
        let (marked, history) =
            futures::try_join!(mark, self.history(claim, limit)).map_err(Error::doing("begin an attempt"))?;
        let Some(marked) = marked else { return Ok(Begun::Fenced) };
        let mut start = Start {
            history,
            trace: Vec::new(),
            calls: Vec::new(),
            approvals: Vec::new(),
            client_tools: marked.client_tools.map(|tools| tools.0).unwrap_or_default(),
            metadata: merged(marked.inherited.map(|json| json.0), marked.metadata.map(|json| json.0)),
        };
        // Nothing but `run.queued` is behind a fresh run.
        if !claim.is_fresh() {
            start.trace = self.trace(claim.run_id).await?;
            start.calls = self.tool_calls(claim.run_id).await?;
            start.approvals = self.approvals(claim.run_id).await?;
        }
        Ok(Begun::Executing(Box::new(start)))
    }

    async fn history(&self, claim: &Claim, limit: usize) -> Result<History, sqlx::Error> {
        #[derive(FromRow)]
        struct Row {
            own: bool,
            #[sqlx(flatten)]
            message: MessageRow,
        }
        // The own input comes first, then outputs before inputs of ever earlier runs; last, in a forked conversation, the
        // messages that were copied from another one.
        let rows = self.database.fetch_all::<Row>(
            concat!(
                "select * from (select r.id = $1 as own, r.position as turn, ",
                message_columns!(),
                " from agent_runs r join chat_messages m on m.run_id = r.id and m.conversation_id = r.conversation_id ",
                "where r.conversation_id = $2 and (r.position < $3 or (r.id = $1 and m.id = r.input_message_id)) ",
                "order by r.position desc, m.position desc limit $4) said union all ",
                "select * from (select false as own, m.position as turn, ",
                message_columns!(),
                " from chat_messages m where m.conversation_id = $2 ",
                "and (select forked_from from chat_conversations where id = $2) is not null and not exists ",
                "(select 1 from agent_runs r where r.id = m.run_id and r.conversation_id = $2) order by m.position desc limit $4) copied ",
                "order by turn desc, position desc limit $4"
            ),
            args![claim.run_id, claim.conversation_id, claim.position, limit + 1],
        );
        let mut rows = rows.await?.into_iter();
        let input = rows.next().filter(|row| row.own).ok_or(sqlx::Error::RowNotFound)?.message.into();
        let mut earlier: Vec<Message> = rows.map(|row| row.message.into()).collect();
        earlier.reverse();
        Ok(History { earlier, input })
    }
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
