//! Runs: read and list.

use sqlx::types::Json;
use uuid::Uuid;

use super::{
    Error, Storage,
    pages::{PageRow, page_of, page_query},
    rows::{RunRow, bare_run_columns, run_columns},
    sql::{args, statements},
};
use crate::{
    agent::{AgentDefinition, StreamMode},
    page::{Page, PageSize},
    run::{Run, RunStatus},
};

/// The runs that a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter {
    /// Only runs of this conversation.
    pub conversation_id: Option<Uuid>,
    /// Only runs with this status.
    pub status: Option<RunStatus>,
}

/// Runs of deleted conversations look unknown, like those of other owners. The condition that a conversation is not deleted
/// stands in `coalesce`, because it is the predicate of an index that ends with the id.
macro_rules! from_known_runs {
    () => {
        "
        from agent_runs r
        join chat_conversations c
            on c.id {is:r.conversation_id} and coalesce(c.deleted_at is null, false) "
    };
}

/// Filters the owner's ($1) runs by conversation ($2) and status ($3).
macro_rules! filtered_runs {
    () => {
        "
            where r.owner_id = $1
              and ($2 is null or r.conversation_id = $2)
              and (
                  $3 is null
                  or case
                      when r.status = 'waiting' and r.awaits = 'children' then 'running'
                      else r.status
                  end = $3
              )"
    };
}

/// Selects the owner's ($1) runs.
macro_rules! select_owned_runs {
    () => {
        concat!(
            "
        select ",
            run_columns!(),
            from_known_runs!(),
            "
        left join chat_messages o on o.id = r.output_message_id
        where r.owner_id = $1 "
        )
    };
}

/// Selects the owner's ($1) runs without their answers.
macro_rules! select_bare_runs {
    () => {
        concat!(
            "
        select ",
            bare_run_columns!(),
            from_known_runs!(),
            "
        where r.owner_id = $1 "
        )
    };
}

/// The events that a run's streams carry if their client names none. It never changes for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDefaults {
    /// The mode of the run's agent.
    pub mode: StreamMode,
    /// True if the run writes pieces of the answer as events.
    pub writes_deltas: bool,
}

impl StreamDefaults {
    /// Returns whether streams of the run show deltas by default.
    pub fn has_deltas(&self) -> bool {
        self.mode == StreamMode::Events && self.writes_deltas
    }
}

impl Default for StreamDefaults {
    fn default() -> Self {
        Self { mode: StreamMode::default(), writes_deltas: true }
    }
}

/// Unfinished runs of the deployment, as metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backlog {
    /// Runs that wait for a worker or for an earlier run.
    pub queued: f64,
    /// Runs that a worker executes.
    pub running: f64,
    /// Runs that wait for a human or a client.
    pub waiting: f64,
    /// Age of the oldest run that waits for its first claim and for no other run.
    pub oldest_queued_seconds: f64,
}

impl Backlog {
    /// All values are NaN, for a database that does not answer.
    pub const UNKNOWN: Self =
        Self { queued: f64::NAN, running: f64::NAN, waiting: f64::NAN, oldest_queued_seconds: f64::NAN };
}

statements! {
    /// Returns the owner of a run, for the worker that executes it.
    OWNER = "
        select owner_id
        from agent_runs
        where id = $1
    ",
    /// Returns an owner's run with its answer.
    RUN = concat!(select_owned_runs!(), " and r.id = $2"),
    /// Returns the cause of an owner's failed run, for operators.
    ERROR_DETAILS = "
        select error_details
        from agent_runs
        where owner_id = $1 and id = $2
    ",
    /// Returns an owner's run without its answer.
    RUN_WITHOUT_ANSWER = concat!(select_bare_runs!(), " and r.id = $2"),
    /// Returns the newest run that is part of a conversation.
    LAST_RUN = concat!(select_bare_runs!(), "
          and r.conversation_id = $2
          and r.superseded_at is null
        order by r.position desc
        limit 1
    "),
    /// Returns the newest run of a conversation.
    NEWEST_RUN_ID = "
        select id
        from agent_runs
        where owner_id = $1 and conversation_id = $2
        order by position desc
        limit 1
    ",
    /// Lists an owner's runs, newest first.
    RUNS = page_query!(
        concat!("
            select ", bare_run_columns!(), ",
                coalesce(octet_length(r.error_message), 0)
                + coalesce(octet_length(cast(r.metadata as text)), 0) + 800 as page_bytes",
            from_known_runs!(), filtered_runs!(), "
              and ($4 is null or r.id < $4)
            order by r.id desc
            limit $5
        "),
        "id desc",
        "$6",
    ),
    /// Counts an owner's runs, up to a number.
    COUNT_RUNS = concat!("
        select count(*)
        from (
            select r.id", from_known_runs!(), filtered_runs!(), "
            limit $4
        ) counted
    "),
    /// Returns whether a run writes deltas, and its definition.
    STREAM_DEFAULTS = "
        select r.stream, v.definition
        from agent_runs r
        left join agent_definition_versions v
            on v.agent_definition_id = r.agent_definition_id and v.version = r.agent_version
        where r.id = $1
    ",
    /// Counts the unfinished runs of each status.
    UNFINISHED_BY_STATUS = "
        select
            case
                when status = 'waiting' and awaits = 'children' then 'running'
                else status
            end as shown,
            count(*)
        from agent_runs
        where status in ('queued', 'running', 'waiting')
        group by shown
    ",
    /// Returns the age of the oldest queued run. A run of a later attempt has not waited since its submission, a run after
    /// an unfinished one waits for that one, and a delayed one waits for its time.
    OLDEST_QUEUED = "
        select {ms since:min(coalesce(r.not_before, r.created_at))}
        from agent_runs r
        where r.status = 'queued'
          and r.attempt = 0
          and (r.not_before is null or r.not_before <= {now})
          and not exists (
              select 1
              from agent_runs earlier
              where earlier.conversation_id = r.conversation_id
                and earlier.position < r.position
                and earlier.status in ('queued', 'running', 'waiting')
          )
    ",
}

impl Storage {
    /// Returns the owner of a run that a worker executes; it may have moved since the claim. `None` if the run was removed.
    pub async fn owner_of_run(&self, run_id: Uuid) -> Result<Option<String>, Error> {
        let row = self.database.fetch_optional::<(String,)>("find the owner of a run", OWNER, args![run_id]).await?;
        Ok(row.map(|row| row.0))
    }

    /// Returns the owner's run of this id, with its answer.
    pub async fn run(&self, owner: &str, id: Uuid) -> Result<Option<Run>, Error> {
        let row = self.database.fetch_optional::<RunRow>("read a run", RUN, args![owner, id]).await?;
        Ok(row.map(Run::from))
    }

    /// Returns why the owner's run has failed, in the words of the cause. Only operators may read them.
    pub async fn error_details(&self, owner: &str, id: Uuid) -> Result<Option<String>, Error> {
        let args = args![owner, id];
        let row =
            self.database.fetch_optional::<(Option<String>,)>("read why a run failed", ERROR_DETAILS, args).await?;
        Ok(row.and_then(|row| row.0))
    }

    /// Returns the owner's run of this id without its answer, which may be long.
    pub async fn run_without_answer(&self, owner: &str, id: Uuid) -> Result<Option<Run>, Error> {
        let row = self.database.fetch_optional::<RunRow>("look a run up", RUN_WITHOUT_ANSWER, args![owner, id]).await?;
        Ok(row.map(Run::from))
    }

    /// Returns the newest run that is part of the owner's conversation, without its answer.
    pub async fn last_run(&self, owner: &str, conversation_id: Uuid) -> Result<Option<Run>, Error> {
        let row = self
            .database
            .fetch_optional::<RunRow>("read the newest run", LAST_RUN, args![owner, conversation_id])
            .await?;
        Ok(row.map(Run::from))
    }

    /// Returns the id of the newest run of the owner's conversation, also of a superseded one.
    pub async fn newest_run_id(&self, owner: &str, conversation_id: Uuid) -> Result<Option<Uuid>, Error> {
        let row = self
            .database
            .fetch_optional::<(Uuid,)>(
                "find the newest run of a conversation",
                NEWEST_RUN_ID,
                args![owner, conversation_id],
            )
            .await?;
        Ok(row.map(|row| row.0))
    }

    /// Returns a page of the owner's runs without their answers, newest first. `None` for an unknown cursor.
    pub async fn runs(
        &self,
        owner: &str,
        filter: RunFilter,
        size: impl Into<PageSize>,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Run>>, Error> {
        let size = size.into();
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let status = filter.status.map(|status| status.as_str().to_owned());
        let args = args![owner, filter.conversation_id, status, before, size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<RunRow>>("list runs", RUNS, args).await?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// Counts the owner's runs, up to `most`.
    pub async fn count_runs(&self, owner: &str, filter: RunFilter, most: usize) -> Result<usize, Error> {
        let status = filter.status.map(|status| status.as_str().to_owned());
        let args = args![owner, filter.conversation_id, status, most];
        let count = self.database.fetch_optional::<(i64,)>("count runs", COUNT_RUNS, args).await?;
        Ok(count.map_or(0, |(count,)| count as usize))
    }

    /// Returns the events that the run's streams carry if their client names none.
    pub async fn stream_defaults(&self, run_id: Uuid) -> Result<StreamDefaults, Error> {
        let row = self
            .database
            .fetch_optional::<(bool, Option<Json<AgentDefinition>>)>(
                "read the stream mode of a run",
                STREAM_DEFAULTS,
                args![run_id],
            )
            .await?;
        Ok(row.map_or_else(StreamDefaults::default, |(writes_deltas, agent)| StreamDefaults {
            mode: agent.map(|agent| agent.0.stream_mode).unwrap_or_default(),
            writes_deltas,
        }))
    }

    /// Returns the unfinished runs of the whole deployment.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        const DOING: &str = "count the unfinished runs";
        let counts = self.database.fetch_all::<(String, i64)>(DOING, UNFINISHED_BY_STATUS, args![]);
        let counts = counts.await?;
        let oldest = self.database.fetch_optional::<(Option<i64>,)>(DOING, OLDEST_QUEUED, args![]);
        let (oldest,) = oldest.await?.unwrap_or_default();
        let count =
            |status: &str| counts.iter().find(|(counted, _)| counted == status).map_or(0.0, |(_, count)| *count as f64);
        Ok(Backlog {
            queued: count("queued"),
            running: count("running"),
            waiting: count("waiting"),
            oldest_queued_seconds: oldest.unwrap_or(0).max(0) as f64 / 1000.0,
        })
    }
}
