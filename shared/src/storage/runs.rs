//! Runs: read and list.

use sqlx::types::Json;
use uuid::Uuid;

use super::{
    Error, Storage,
    database::{Tx, args},
    pages::{PageRow, page_of, page_query},
    rows::{RunRow, bare_run_columns, run_columns},
};
use crate::{
    agent::{AgentDefinition, StreamMode},
    page::{Page, PageSize},
    run::{Run, RunStatus},
};

/// Which runs a list shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter {
    pub conversation_id: Option<Uuid>,
    pub status: Option<RunStatus>,
}

/// Those of deleted conversations are as unknown as somebody else's.
macro_rules! from_known_runs {
    () => {
        " from agent_runs r join chat_conversations c on c.id = r.conversation_id and c.deleted_at is null "
    };
}

/// Selects the owner's ($1) runs.
macro_rules! select_owned_runs {
    () => {
        concat!(
            "select ",
            run_columns!(),
            from_known_runs!(),
            "left join chat_messages o on o.id = r.output_message_id where r.owner_id = $1 "
        )
    };
}

/// The same without their answers.
macro_rules! select_bare_runs {
    () => {
        concat!("select ", bare_run_columns!(), from_known_runs!(), "where r.owner_id = $1 ")
    };
}

/// What a run's streams carry where a client does not say. Nothing changes it while the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDefaults {
    /// As its agent has it.
    pub mode: StreamMode,
    /// Whether the answer is written in pieces, as the run's client has asked for.
    pub writes_deltas: bool,
}

impl Default for StreamDefaults {
    fn default() -> Self {
        Self { mode: StreamMode::default(), writes_deltas: true }
    }
}

/// What has not ended, as metrics have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backlog {
    pub queued: f64,
    pub running: f64,
    pub waiting: f64,
    /// Of the runs that wait for their first claim and for nothing else.
    pub oldest_queued_seconds: f64,
}

impl Backlog {
    /// Nobody can tell: not a number, in any of them.
    pub const UNKNOWN: Self =
        Self { queued: f64::NAN, running: f64::NAN, waiting: f64::NAN, oldest_queued_seconds: f64::NAN };
}

impl Storage {
    /// The owner's run of that id.
    pub async fn run(&self, owner: &str, id: Uuid) -> Result<Option<Run>, Error> {
        let sql = concat!(select_owned_runs!(), "and r.id = $2");
        let row = self.database.fetch_optional::<RunRow>(sql, args![owner, id]).await;
        Ok(row.map_err(Error::doing("read a run"))?.map(Run::from))
    }

    /// The same without its answer, which may be long, for whoever has another use for the run than to show it.
    pub async fn run_without_answer(&self, owner: &str, id: Uuid) -> Result<Option<Run>, Error> {
        let sql = concat!(select_bare_runs!(), "and r.id = $2");
        let row = self.database.fetch_optional::<RunRow>(sql, args![owner, id]).await;
        Ok(row.map_err(Error::doing("look a run up"))?.map(Run::from))
    }

    /// The newest run of the owner's conversation, without its answer.
    pub async fn last_run(&self, owner: &str, conversation_id: Uuid) -> Result<Option<Run>, Error> {
        let sql = concat!(select_bare_runs!(), "and r.conversation_id = $2 order by r.position desc limit 1");
        let row = self.database.fetch_optional::<RunRow>(sql, args![owner, conversation_id]).await;
        Ok(row.map_err(Error::doing("read the newest run"))?.map(Run::from))
    }

    /// The runs of the owner's conversation that have ended without a message, at most `limit`, oldest first.
    pub async fn runs_without_message(
        &self,
        owner: &str,
        conversation_id: Uuid,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let sql = concat!(
            select_owned_runs!(),
            "and r.conversation_id = $2 and r.status in ('failed', 'cancelled') and r.superseded_at is null and o.id is null ",
            "order by r.position desc limit $3"
        );
        let rows = self.database.fetch_all::<RunRow>(sql, args![owner, conversation_id, limit]).await;
        let rows = rows.map_err(Error::doing("read the runs without a message"))?;
        Ok(rows.into_iter().rev().map(Run::from).collect())
    }

    /// The runs of the owner's conversation that have not ended, the newest first.
    pub async fn unfinished_runs(&self, owner: &str, conversation_id: Uuid) -> Result<Vec<Uuid>, Error> {
        let sql = "select id from agent_runs where owner_id = $1 and conversation_id = $2 \
                   and status in ('queued', 'running', 'waiting') order by position desc";
        let rows = self.database.fetch_all::<(Uuid,)>(sql, args![owner, conversation_id]).await;
        Ok(rows.map_err(Error::doing("list the unfinished runs"))?.into_iter().map(|row| row.0).collect())
    }

    /// The owner's runs without their answers, newest first. `None` for a cursor that no page gave out.
    pub async fn runs(
        &self,
        owner: &str,
        filter: RunFilter,
        size: impl Into<PageSize>,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Run>>, Error> {
        let size = size.into();
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let list = page_query!(
            concat!(
                "select ",
                bare_run_columns!(),
                ", coalesce(octet_length(r.error_message), 0) + coalesce(octet_length(cast(r.metadata as text)), 0) + 800 ",
                "as page_bytes",
                from_known_runs!(),
                "where r.owner_id = $1 ",
                "and ($2 is null or r.conversation_id = $2) and ($3 is null or r.status = $3) and ($4 is null or r.id < $4) ",
                "order by r.id desc limit $5"
            ),
            "id desc",
            "$6"
        );
        let status = filter.status.map(|status| status.as_str().to_owned());
        let args = args![owner, filter.conversation_id, status, before, size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<RunRow>>(list, args).await.map_err(Error::doing("list runs"))?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// What the run's streams carry where a client does not say.
    pub async fn stream_defaults(&self, run_id: Uuid) -> Result<StreamDefaults, Error> {
        let sql = "select r.stream, v.definition from agent_runs r left join agent_definition_versions v \
                   on v.agent_definition_id = r.agent_definition_id and v.version = r.agent_version where r.id = $1";
        let row = self.database.fetch_optional::<(bool, Option<Json<AgentDefinition>>)>(sql, args![run_id]).await;
        let row = row.map_err(Error::doing("read what a run's streams carry"))?;
        Ok(row.map_or_else(StreamDefaults::default, |(writes_deltas, agent)| StreamDefaults {
            mode: agent.map(|agent| agent.0.stream_mode).unwrap_or_default(),
            writes_deltas,
        }))
    }

    /// What has not ended, in the whole deployment.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        let counts =
            "select status, count(*) from agent_runs where status in ('queued', 'running', 'waiting') group by status";
        // A run that was claimed before has not waited since it was made, and one behind another does not wait for a worker.
        let oldest = "select {ms since:min(r.created_at)} from agent_runs r where r.status = 'queued' and r.attempt = 0 \
                      and not exists (select 1 from agent_runs earlier where earlier.conversation_id = r.conversation_id \
                      and earlier.position < r.position and earlier.status in ('queued', 'running', 'waiting'))";
        let counts = self.database.fetch_all::<(String, i64)>(counts, args![]);
        let counts = counts.await.map_err(Error::doing("count runs"))?;
        let oldest = self.database.fetch_optional::<(Option<i64>,)>(oldest, args![]);
        let (oldest,) = oldest.await.map_err(Error::doing("look for the oldest queued run"))?.unwrap_or_default();
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

/// Reads the run of this id within a transaction, with its answer.
pub(super) async fn read_run(tx: &mut Tx, id: Uuid) -> Result<Run, sqlx::Error> {
    let sql = concat!(
        "select ",
        run_columns!(),
        " from agent_runs r left join chat_messages o on o.id = r.output_message_id where r.id = $1"
    );
    Ok(tx.fetch_one::<RunRow>(sql, args![id]).await?.into())
}
