//! The results of tool calls as a run reads them again.

use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};
use crate::tool::ToolError;

/// The result of a call as its row keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// The text that the tool returned.
    pub output: Option<String>,
    /// Why there is no output.
    pub error: Option<ToolError>,
    /// True if a child run gave the result.
    pub is_of_child: bool,
}

#[derive(FromRow)]
struct KeptRow {
    output: Option<String>,
    error: Option<Json<ToolError>>,
    child_run_id: Option<Uuid>,
}

statements! {
    /// Returns the result of the call `$3` of the conversation `$2`. The run that made the call has the owner of the run `$1`,
    /// and is part of the conversation by itself or by an answer that a fork has copied.
    KEPT_RESULT = "
        select c.output, c.error, c.child_run_id
        from agent_run_tool_calls c
        join agent_runs r on r.id = c.run_id
        where c.call_id = $3
          and c.status = 'completed'
          and r.owner_id = (
              select own.owner_id
              from agent_runs own
              where own.id = $1
          )
          and c.run_id in (
              select of_conversation.id
              from agent_runs of_conversation
              where of_conversation.conversation_id = $2
              union
              select m.run_id
              from chat_messages m
              where m.conversation_id = $2
                and m.run_id is not null
          )
        limit 1
    ",
}

impl Storage {
    /// Returns the result of a call that a run of this conversation may read: the calls of all runs there that have its owner.
    pub async fn kept_result(
        &self,
        run_id: Uuid,
        conversation_id: Uuid,
        call_id: &str,
    ) -> Result<Option<KeptResult>, Error> {
        let args = args![run_id, conversation_id, call_id];
        let row = self.database.fetch_optional::<KeptRow>("read a kept result", KEPT_RESULT, args).await?;
        Ok(row.map(|KeptRow { output, error, child_run_id }| KeptResult {
            output,
            error: error.map(|Json(error)| error),
            is_of_child: child_run_id.is_some(),
        }))
    }
}
