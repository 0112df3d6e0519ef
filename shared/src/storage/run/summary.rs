//! Summaries, which replace older messages for the model.

use super::{Claim, attempt::held};
use crate::storage::{
    Error, Storage,
    position::lock_conversation,
    sql::{Commit, Tx, args, statements},
};

/// A summary of older messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub up_to: i64,
    /// The model's text.
    pub content: String,
}

/// The newest valid summary for a run of the conversation `$2` at the position `$3`. It was made for this or an earlier
/// run, of messages that are still part of the conversation.
macro_rules! newest_summary {
    () => {
        "select s.up_to, s.content
            from chat_summaries s
            join agent_runs r on r.id = s.run_id
            where s.conversation_id = $2
              and r.position <= $3
              and not exists (
                  select 1
                  from chat_messages m
                  where m.conversation_id = $2
                    and m.turn <= s.up_to
                    and m.superseded_at >= s.created_at
              )
            order by s.up_to desc
            limit 1"
    };
}
pub(in crate::storage) use newest_summary;

statements! {
    /// Stores a summary for a held run.
    KEEP_SUMMARY = concat!("
        insert into chat_summaries (run_id, conversation_id, up_to, content, created_at)
        select id, conversation_id, $3, $4, {now}
        from agent_runs
        where ", held!(), " and superseded_at is null
        on conflict (run_id) do update
        set up_to = excluded.up_to, content = excluded.content
    "),
}

impl Storage {
    /// Stores a summary for this run and later ones. It stores nothing if the claim is fenced or the run is superseded.
    pub async fn keep_summary(&self, claim: &Claim, summary: &Summary) -> Result<(), Error> {
        let keep = async |tx: &mut Tx| {
            lock_conversation(tx, claim.conversation_id).await?;
            tx.execute(KEEP_SUMMARY, args![claim.run_id, claim.attempt, summary.up_to, summary.content.as_str()])
                .await?;
            Ok(Commit(()))
        };
        self.database.transact("keep a summary of a conversation", keep).await
    }
}
