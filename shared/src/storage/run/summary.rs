//! Summaries, which stand in place of older messages for the model.
//!
//! A run keeps the summary of turns up to its own, and later runs use it. A fork begins with that of the forked conversation.
//! `due_summary` has those that are still to be made.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{EarlierMessage, earlier::join_dated};
use crate::storage::{
    Error, Storage,
    position::lock_conversation,
    rows::{MessageRow, message_columns},
    sql::{Commit, Tx, args, statements},
};
use crate::{time_zone::RunDate, usage::Usage};

/// A summary of older messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The newest turn that it covers.
    pub up_to: i64,
    /// The model's text.
    pub content: String,
}

/// The point of view of a summary: its run, and the messages that this run could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryScope {
    /// The run that keeps the summary.
    pub run_id: Uuid,
    /// The conversation.
    pub conversation_id: Uuid,
    /// Only earlier turns count.
    pub before: i64,
    /// Messages that were superseded by then do not count.
    pub seen_at: DateTime<Utc>,
}

/// Most turns that one request for a summary has.
const TURNS: i64 = 100;

/// The newest valid summary for a run of a conversation at a position. It was made for this or an earlier run, or for the
/// conversation from which a fork was made, of messages that are still part of the conversation.
macro_rules! newest_summary {
    ($conversation:literal, $position:literal) => {
        concat!(
            "select s.up_to, s.content
            from (
                select kept.up_to, kept.content, kept.created_at
                from chat_summaries kept
                join agent_runs r on r.id = kept.run_id
                where kept.conversation_id = ",
            $conversation,
            " and r.position <= ",
            $position,
            "
                union all
                select c.inherited_up_to, c.inherited_summary, c.created_at
                from chat_conversations c
                where c.id = ",
            $conversation,
            " and c.inherited_summary is not null
            ) s
            where not exists (
                select 1
                from chat_messages m
                where m.conversation_id = ",
            $conversation,
            "
                  and m.turn <= s.up_to
                  and m.superseded_at >= s.created_at
            )
            order by s.up_to desc
            limit 1"
        )
    };
}
pub(in crate::storage) use newest_summary;

#[derive(FromRow)]
struct SummaryRow {
    up_to: i64,
    content: String,
}

#[derive(FromRow)]
struct OlderRow {
    turn: i64,
    #[sqlx(flatten)]
    message: MessageRow,
    dated_at: Option<DateTime<Utc>>,
    time_zone: Option<String>,
}

statements! {
    /// Returns the newest valid summary.
    NEWEST_SUMMARY = newest_summary!("$1", "$2"),
    /// Returns complete turns after `$1` and up to `$5`, oldest first: the first one, and further ones within `$6` bytes.
    OLDER_TURNS = concat!("
        select earlier.*, dated.dated_at, dated.time_zone
        from (
            select m.turn, ", message_columns!(), ",
                sum(octet_length(m.content)) over (order by m.turn) as bytes,
                dense_rank() over (order by m.turn) as number
            from chat_messages m
            where m.conversation_id = $2
              and m.turn > $1
              and m.turn <= $5
              and m.turn < $3
              and (m.superseded_at is null or m.superseded_at > $4)
        ) earlier", join_dated!(), "
        where earlier.number = 1
           or earlier.bytes <= $6 and earlier.number <= $7
        order by earlier.turn, earlier.position
    "),
    /// Stores a summary for a run that is still part of its conversation. A shorter one never replaces a longer one.
    KEEP_SUMMARY = "
        insert into chat_summaries (run_id, conversation_id, up_to, content, created_at)
        select id, conversation_id, $2, $3, {now}
        from agent_runs
        where id = $1 and superseded_at is null
        on conflict (run_id) do update
        set up_to = excluded.up_to, content = excluded.content
        where excluded.up_to > chat_summaries.up_to
    ",
    /// Returns the usage of a run.
    LOCK_USAGE = "
        select usage
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Sets the usage of an ended run.
    SET_USAGE = "
        update agent_runs
        set usage = $2
        where id = $1 and finished_at is not null
    ",
}

impl Storage {
    /// Returns the newest valid summary of the turns before those of the scope.
    pub async fn newest_summary(&self, scope: &SummaryScope) -> Result<Option<Summary>, Error> {
        let args = args![scope.conversation_id, scope.before];
        let row = self.database.fetch_optional::<SummaryRow>("read a summary", NEWEST_SUMMARY, args).await?;
        Ok(row.map(|SummaryRow { up_to, content }| Summary { up_to, content }))
    }

    /// Returns complete turns after one and up to another, oldest first: the first of them, and further ones within so many bytes.
    pub async fn older_turns(
        &self,
        scope: &SummaryScope,
        after: i64,
        up_to: i64,
        bytes: usize,
    ) -> Result<Vec<EarlierMessage>, Error> {
        let SummaryScope { conversation_id, before, seen_at, .. } = *scope;
        let args = args![after, conversation_id, before, Some(seen_at), up_to, bytes, TURNS];
        let rows = self.database.fetch_all::<OlderRow>("read older turns", OLDER_TURNS, args).await?;
        let earlier = |row: OlderRow| EarlierMessage {
            turn: row.turn,
            message: row.message.into(),
            results: Vec::new(),
            date: row.dated_at.map(|at| RunDate::of_row(at, row.time_zone.as_deref())),
            speaker: None,
        };
        Ok(rows.into_iter().map(earlier).collect())
    }

    /// Stores a summary for its run and later ones, unless the run is superseded. An ended run also gets the `usage` of the
    /// summary, which its own end could not have.
    pub async fn keep_summary(&self, scope: &SummaryScope, summary: &Summary, usage: Usage) -> Result<(), Error> {
        let keep = async |tx: &mut Tx| {
            lock_conversation(tx, scope.conversation_id).await?;
            tx.execute(KEEP_SUMMARY, args![scope.run_id, summary.up_to, summary.content.as_str()]).await?;
            if usage != Usage::default() {
                let row = tx.fetch_optional::<(Option<Json<Usage>>,)>(LOCK_USAGE, args![scope.run_id]).await?;
                let mut total = row.and_then(|(usage,)| usage).map(|json| json.0).unwrap_or_default();
                total += usage;
                tx.execute(SET_USAGE, args![scope.run_id, serde_json::json!(total)]).await?;
            }
            Ok(Commit(()))
        };
        self.database.transact("keep a summary of a conversation", keep).await
    }
}
