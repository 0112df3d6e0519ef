//! The start of an attempt's work: the run is marked as executing, and its context is read.

use sqlx::FromRow;

use super::{
    Claim, Error, Storage,
    database::args,
    rows::{MessageRow, message_columns},
};
use crate::message::Message;

/// What the model is to see, or that the claim is no longer valid.
#[derive(Debug)]
pub enum Begun {
    Executing(History),
    Fenced,
}

/// The conversation as of the run's submission.
#[derive(Debug)]
pub struct History {
    /// The inputs and outputs of runs earlier in the conversation's queue, oldest first; never a later message.
    pub earlier: Vec<Message>,
    /// The run's own input.
    pub input: Message,
}

impl Storage {
    /// Marks the run as executing by `model`, so that from now on the worker's death counts as a crash, and reads the
    /// last `limit` messages before the run's own input.
    pub async fn begin(&self, claim: &Claim, model: &str, limit: usize) -> Result<Begun, Error> {
        let sql = "update agent_runs set executing = true, model = $3 where id = $1 and attempt = $2 and status = 'running' returning id";
        let mark = self.database.write::<(uuid::Uuid,)>(sql, args![claim.run_id, claim.attempt, model]);
        let (marked, history) =
            futures::try_join!(mark, self.history(claim, limit)).map_err(Error::doing("begin an attempt"))?;
        Ok(if marked.is_empty() { Begun::Fenced } else { Begun::Executing(history) })
    }

    async fn history(&self, claim: &Claim, limit: usize) -> Result<History, sqlx::Error> {
        #[derive(FromRow)]
        struct Row {
            own: bool,
            #[sqlx(flatten)]
            message: MessageRow,
        }
        // The own input comes first, then outputs before inputs of ever earlier runs.
        let rows = self.database.fetch_all::<Row>(
            concat!(
                "select r.id = $1 as own, ",
                message_columns!(),
                " from agent_runs r join chat_messages m on m.run_id = r.id ",
                "where r.conversation_id = $2 and (r.position < $3 or (r.id = $1 and m.id = r.input_message_id)) ",
                "order by r.position desc, m.position desc limit $4"
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
