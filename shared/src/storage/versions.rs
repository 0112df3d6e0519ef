//! Versions of a message: an edit or another answer creates them, and a client can restore one.
//!
//! An edit supersedes messages and runs in one change (`supersede`), and each row has the change's id. A restoration
//! supersedes the current version, and reverts the change that superseded the other one. An answer has its version and its
//! change from its run.

use std::collections::HashMap;

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    EndedRun, Error, Storage,
    rows::{MessageRow, message_columns},
    run::{SupersedePoint, cancel_all, supersede_from, unfinished_runs},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    approval::ApprovalStatus,
    message::{Message, Version},
};

/// The outcome of a restoration.
#[derive(Debug)]
pub enum RestoreOutcome {
    /// The message is part of the conversation again.
    Done {
        /// The restored message.
        message: Box<Message>,
        /// Runs that the restoration ended.
        ended: Vec<EndedRun>,
        /// Running runs with a cancel request. The caller signals their workers.
        cancel_requested: Vec<Uuid>,
    },
    /// No version of the message is part of the conversation now, so the message has no position in it.
    NoPlace,
    /// There is no such conversation of this owner.
    ConversationNotFound,
    /// The conversation has no such message.
    MessageNotFound,
}

#[derive(FromRow)]
struct VersionRow {
    is_superseded: bool,
    turn: i64,
    superseded_in: Option<Uuid>,
    first: Uuid,
}

statements! {
    /// Returns the number, the count and the neighbours of these versions, for messages with several versions.
    VERSIONS = "
        with later as (
            select id, position, version_of as first
            from chat_messages
            where conversation_id = $1 and version_of is not null
            union all
            select r.output_message_id, coalesce(o.position, r.position), r.version_of
            from agent_runs r
            left join chat_messages o on o.id = r.output_message_id
            where r.conversation_id = $1
              and r.version_of is not null
              and (
                  o.id is not null
                  or r.superseded_at is null
                      and r.finished_at is not null
                      and r.output_message_id {in:$2}
              )
        ),
        placed as (
            select id, position, first
            from later
            union all
            select m.id, m.position, m.id
            from chat_messages m
            where m.conversation_id = $1
              and m.id in (select first from later)
        ),
        numbered as (
            select id, row_number() over places as number,
                count(*) over (partition by first) as versions, lag(id) over places as previous,
                lead(id) over places as next
            from placed
            window places as (partition by first order by position)
        )
        select id, number, versions, previous, next
        from numbered
        where versions > 1 and id {in:$2}
    ",
    /// Locks an owner's conversation.
    LOCK_CONVERSATION = "
        select id
        from chat_conversations
        where id = $1
          and owner_id = $2
          and deleted_at is null
        {for update}
    ",
    /// Returns the state of one version of a message.
    VERSION = "
        select m.superseded_at is not null as is_superseded, m.turn,
            coalesce(m.superseded_in, w.superseded_in) as superseded_in,
            coalesce(m.version_of, w.version_of, m.id) as first
        from chat_messages m
        left join agent_runs w on w.id = m.run_id and w.output_message_id = m.id
        where m.id = $1 and m.conversation_id = $2
    ",
    /// Removes the summaries that cover a turn.
    DELETE_SUMMARIES = "
        delete from chat_summaries
        where conversation_id = $1 and up_to >= $2
    ",
    /// Returns a message.
    MESSAGE = concat!("
        select ", message_columns!(), "
        from chat_messages m
        where m.id = $1
    "),
    /// Returns the start of the current version of a message.
    CURRENT_VERSION = "
        select turn, position
        from (
            select turn, position
            from chat_messages
            where conversation_id = $1
              and superseded_at is null
              and (version_of = $2 or id = $2)
            union all
            select position as turn, position
            from agent_runs
            where conversation_id = $1
              and superseded_at is null
              and version_of = $2
        ) current
        order by turn, position
        limit 1
    ",
    /// Makes the messages of a change part of the conversation again.
    REVERT_MESSAGES = "
        update chat_messages
        set superseded_at = null, superseded_in = null
        where conversation_id = $1
          and (
              superseded_in = $2
              or superseded_in is null
                  and superseded_at is not null
                  and role = 'assistant'
                  and run_id in (
                      select id
                      from agent_runs
                      where conversation_id = $1 and superseded_in = $2
                  )
          )
    ",
    /// Makes the runs of a change part of the conversation again.
    REVERT_RUNS = "
        update agent_runs
        set superseded_at = null, superseded_in = null
        where conversation_id = $1 and superseded_in = $2
    ",
    /// Sets the conversation's current branch. Each branch begins with a run, so the newest run that is part of the
    /// conversation has it.
    RESTORE_BRANCH = "
        update chat_conversations
        set last_message_at = {now},
            activity_at = {now},
            branch = (
                select branch
                from agent_runs
                where conversation_id = $1 and superseded_at is null
                order by position desc
                limit 1
            )
        where id = $1
    ",
}

impl Storage {
    /// Makes a superseded version part of its conversation again, with all that followed it. The current version is
    /// superseded, and its unfinished runs are cancelled.
    pub async fn restore_message(&self, owner: &str, conversation_id: Uuid, id: Uuid) -> Result<RestoreOutcome, Error> {
        let restore = async |tx: &mut Tx| {
            let outcome = restore(tx, owner, conversation_id, id).await?;
            Ok(if matches!(outcome, RestoreOutcome::Done { .. }) { Commit(outcome) } else { RollBack(outcome) })
        };
        self.database.transact("restore a version of a message", restore).await
    }

    /// Returns the versions of these messages of a conversation, for those with several. The ids may include answers
    /// whose runs ended without a message; they count only where the ids have them, because no client can restore them.
    pub async fn versions(&self, conversation_id: Uuid, ids: Vec<Uuid>) -> Result<HashMap<Uuid, Version>, Error> {
        #[derive(FromRow)]
        struct Row {
            id: Uuid,
            number: i64,
            versions: i64,
            previous: Option<Uuid>,
            next: Option<Uuid>,
        }
        let rows = self
            .database
            .fetch_all::<Row>("read the versions of messages", VERSIONS, args![conversation_id, ids])
            .await?;
        let version = |row: Row| {
            let (number, count) = (row.number as u32, row.versions as u32);
            (row.id, Version { number, count, previous: row.previous, next: row.next })
        };
        Ok(rows.into_iter().map(version).collect())
    }
}

async fn restore(tx: &mut Tx, owner: &str, conversation_id: Uuid, id: Uuid) -> Result<RestoreOutcome, Error> {
    // Order matters: the conversation is locked before its runs.
    let locked = tx.fetch_optional::<(Uuid,)>(LOCK_CONVERSATION, args![conversation_id, owner]).await?;
    if locked.is_none() {
        return Ok(RestoreOutcome::ConversationNotFound);
    }
    let target = tx.fetch_optional::<VersionRow>(VERSION, args![id, conversation_id]).await?;
    let Some(VersionRow { is_superseded, turn, superseded_in, first }) = target else {
        return Ok(RestoreOutcome::MessageNotFound);
    };
    let (mut ended, mut cancel_requested) = (Vec::new(), Vec::new());
    if is_superseded {
        let current = current_version(tx, conversation_id, first).await?;
        let Some((point, change)) = current.zip(superseded_in) else { return Ok(RestoreOutcome::NoPlace) };
        let unfinished = unfinished_runs(tx, conversation_id).await?;
        let to_cancel = unfinished.into_iter().filter(|run| point.covers(run.position)).collect();
        // Order matters: the messages of the cancelled runs are then superseded from their start.
        supersede_from(tx, conversation_id, point, Uuid::now_v7()).await?;
        (ended, cancel_requested) = cancel_all(tx, to_cancel, ApprovalStatus::Superseded).await?;
        revert(tx, conversation_id, change).await?;
        // A summary that covers this turn was made without the restored messages.
        tx.execute(DELETE_SUMMARIES, args![conversation_id, turn]).await?;
    }
    let message = tx.fetch_one::<MessageRow>(MESSAGE, args![id]).await?;
    Ok(RestoreOutcome::Done { message: Box::new(message.into()), ended, cancel_requested })
}

/// Returns the start of the current version. A run without an answer counts too.
async fn current_version(tx: &mut Tx, conversation_id: Uuid, first: Uuid) -> Result<Option<SupersedePoint>, Error> {
    tx.fetch_optional(CURRENT_VERSION, args![conversation_id, first]).await
}

/// Makes all messages and runs of one change part of the conversation again.
async fn revert(tx: &mut Tx, conversation_id: Uuid, change: Uuid) -> Result<(), Error> {
    // Order matters: an answer that a run stored after the change has no change of its own, so its run still needs it here.
    tx.execute(REVERT_MESSAGES, args![conversation_id, change]).await?;
    tx.execute(REVERT_RUNS, args![conversation_id, change]).await?;
    tx.execute(RESTORE_BRANCH, args![conversation_id]).await.map(drop)
}
