//! Summaries that are to be made after the answer of a run, so that the next question does not wait for them.
//!
//! The end of the run notes one with its last events. Its worker makes it at once, and another worker if that one dies. No row
//! means that nothing is to be made, or that the making failed: the next run then makes the summary before its own answer.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::SummaryScope;
use crate::storage::{
    Error, Storage,
    rows::traceparent,
    sql::{Statement, args, statements},
};
use crate::{telemetry::Traceparent, time_zone::RunDate};

/// Workers that may die while they make one summary.
const MOST_TRIES: i64 = 3;

/// A summary that is to be made after the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NewDueSummary {
    /// The newest turn that it is to cover.
    pub up_to: i64,
    /// Its most tokens.
    pub tokens: u32,
    /// Milliseconds that the worker of the run has to begin with it.
    pub lease_ms: u64,
}

/// A summary that is to be made, with the facts of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSummary {
    /// Its run, which has ended, and the messages up to that one's answer.
    pub scope: SummaryScope,
    /// The newest turn that it is to cover.
    pub up_to: i64,
    /// Its most tokens.
    pub tokens: u32,
    /// The agent of the run, and the version of its definition.
    pub agent: Option<(Uuid, u32)>,
    /// The model that has answered, as `<provider>/<name>`.
    pub model: Option<String>,
    /// The date that the run's model has read.
    pub date: RunDate,
    /// The attempt that has ended the run.
    pub attempt: u32,
    /// The span of the run's submission, if it was recorded.
    pub traceparent: Option<Traceparent>,
}

#[derive(FromRow)]
struct DueRow {
    run_id: Uuid,
    conversation_id: Uuid,
    up_to: i64,
    tokens: i64,
    position: i64,
    seen_at: DateTime<Utc>,
    agent_definition_id: Option<Uuid>,
    agent_version: Option<i64>,
    model: Option<String>,
    dated_at: DateTime<Utc>,
    time_zone: Option<String>,
    attempt: i64,
    traceparent: Option<String>,
}

statements! {
    /// Notes summaries that are to be made.
    NOTE_DUE = "
        insert into due_summaries (run_id, conversation_id, up_to, tokens, lease_until)
        select {uuid:value->>'run_id'},
            (select conversation_id from agent_runs where id = {uuid:value->>'run_id'}),
            cast(value->>'up_to' as bigint), cast(value->>'tokens' as bigint),
            {after:cast(value->>'lease_ms' as bigint)}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
        on conflict (run_id) do update
        set up_to = excluded.up_to,
            tokens = excluded.tokens,
            lease_until = excluded.lease_until
    ",
    /// Returns a summary that is to be made, with the facts of its ended run.
    DUE = "
        select d.run_id, d.conversation_id, d.up_to, d.tokens, r.position, {now} as seen_at,
            r.agent_definition_id, r.agent_version, r.model,
            coalesce(r.dated_at, r.created_at) as dated_at, r.time_zone, r.attempt, r.traceparent
        from due_summaries d
        join agent_runs r on r.id = d.run_id
        where d.run_id = $1 and r.finished_at is not null
    ",
    /// Takes a summary whose worker is gone.
    TAKE_DUE = "
        update due_summaries
        set lease_until = {after:$1}, tries = tries + 1
        where run_id in (
            select run_id
            from due_summaries
            where lease_until < {now}
              and exists (
                  select 1
                  from agent_runs r
                  where r.id = due_summaries.run_id and r.finished_at is not null
              )
            order by lease_until
            limit 1
            {skip locked}
        )
        returning run_id, tries
    ",
    /// Gives a worker more time.
    EXTEND_DUE = "
        update due_summaries
        set lease_until = {after:$2}
        where run_id = $1
        returning run_id
    ",
    /// Removes a summary that is made, or that cannot be made.
    SETTLE_DUE = "
        delete from due_summaries
        where run_id = $1
        returning run_id
    ",
    /// Returns whether a worker makes a summary of the conversation `$1` now, for another run than `$2`.
    IS_DUE = "
        select exists (
            select 1
            from due_summaries
            where conversation_id = $1 and run_id <> $2 and lease_until > {now}
        )
    ",
}

/// Returns the write that notes summaries, each as JSON with the id of its run; none without a summary.
pub fn notes(due: Vec<Value>) -> Option<Statement> {
    (!due.is_empty()).then(|| Statement::new(NOTE_DUE, args![Value::from(due)]))
}

impl Storage {
    /// Returns the summary that is to be made after the end of the run.
    pub async fn due_summary(&self, run_id: Uuid) -> Result<Option<DueSummary>, Error> {
        let row = self.database.fetch_optional::<DueRow>("read a due summary", DUE, args![run_id]).await?;
        Ok(row.map(DueSummary::from))
    }

    /// Takes a summary whose worker is gone, for so long. It is given up after a few dead workers.
    pub async fn take_due_summary(&self, lease: Duration) -> Result<Option<DueSummary>, Error> {
        let taken = self.database.write::<(Uuid, i64)>("take a due summary", TAKE_DUE, args![lease]).await?;
        match taken.first() {
            None => Ok(None),
            Some((run_id, tries)) if *tries > MOST_TRIES => self.settle_due_summary(*run_id).await.map(|()| None),
            Some((run_id, _)) => self.due_summary(*run_id).await,
        }
    }

    /// Gives the worker that makes a summary more time.
    pub async fn extend_due_summary(&self, run_id: Uuid, lease: Duration) -> Result<(), Error> {
        let doing = "extend the time of a due summary";
        self.database.write::<(Uuid,)>(doing, EXTEND_DUE, args![run_id, lease]).await.map(drop)
    }

    /// Notes that a summary is no longer to be made.
    pub async fn settle_due_summary(&self, run_id: Uuid) -> Result<(), Error> {
        self.database.write::<(Uuid,)>("settle a due summary", SETTLE_DUE, args![run_id]).await.map(drop)
    }

    /// Returns whether a worker makes a summary of the conversation now, for another run than this one.
    pub async fn is_summary_under_way(&self, conversation_id: Uuid, run_id: Uuid) -> Result<bool, Error> {
        let args = args![conversation_id, run_id];
        let rows = self.database.fetch_all::<(bool,)>("look for a due summary", IS_DUE, args).await?;
        Ok(rows.first().is_some_and(|(is_due,)| *is_due))
    }
}

impl From<DueRow> for DueSummary {
    fn from(row: DueRow) -> Self {
        let scope = SummaryScope {
            run_id: row.run_id,
            conversation_id: row.conversation_id,
            before: row.position + 1,
            seen_at: row.seen_at,
        };
        Self {
            scope,
            up_to: row.up_to,
            tokens: row.tokens as u32,
            agent: row.agent_definition_id.zip(row.agent_version.map(|version| version as u32)),
            model: row.model,
            date: RunDate::of_row(row.dated_at, row.time_zone.as_deref()),
            attempt: row.attempt as u32,
            traceparent: traceparent(row.traceparent),
        }
    }
}
