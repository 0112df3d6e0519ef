//! The summary with which a fork begins: that of the forked conversation, as far as the fork has its messages.

use uuid::Uuid;

use super::{
    Error,
    run::newest_summary,
    sql::{Tx, args, statements},
};
use crate::trace::Checkpoint;

statements! {
    /// Returns the summary that a run of the forked conversation had at its end at the latest. The checkpoint of a fork itself has
    /// no run there, so only a summary that the fork has from its own origin counts.
    SUMMARY_OF_FORK = concat!("
        select older.up_to, older.content
        from (
            ", newest_summary!("$1", "coalesce(
                (select position from agent_runs where id = $2 and conversation_id = $1), 0
            )"), "
        ) older
        where older.up_to < coalesce(
            (select position from agent_runs where id = $2 and conversation_id = $1),
            older.up_to + 1
        )
    "),
    /// Gives the fork a summary of its first messages.
    INHERIT_SUMMARY = "
        update chat_conversations
        set inherited_up_to = $2, inherited_summary = $3
        where id = $1
    ",
}

/// Gives a fork from a checkpoint the summary of its first messages, which have copies of these turns, in order.
pub(super) async fn inherit_summary(
    tx: &mut Tx,
    fork: Uuid,
    checkpoint: &Checkpoint,
    turns: &[i64],
) -> Result<(), Error> {
    let args = args![checkpoint.conversation_id, checkpoint.run_id];
    let Some((up_to, summary)) = tx.fetch_optional::<(i64, String)>(SUMMARY_OF_FORK, args).await? else {
        return Ok(());
    };
    let covered = turns.partition_point(|turn| *turn <= up_to);
    if covered > 0 {
        tx.execute(INHERIT_SUMMARY, args![fork, covered, summary]).await?;
    }
    Ok(())
}
