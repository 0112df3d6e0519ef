//! Agents: the API or a file defines them, changes add versions, and deletion hides them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    database::{Tx, args},
    pages::{PageRow, page_of, page_query},
};
use crate::{
    agent::{Agent, AgentDefinition, Origin},
    page::{Page, PageSize},
    storable::storable_json,
};

/// The outcome of a change.
#[derive(Debug)]
pub enum AgentChange {
    /// The agent after its change, or before its deletion.
    Changed(Box<Agent>),
    /// The agent comes from a file, and only that file can change it.
    InFile,
    /// There is no such agent.
    NotFound,
}

#[derive(FromRow)]
struct AgentRow {
    id: Uuid,
    version: i64,
    #[sqlx(try_from = "String")]
    origin: Origin,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    definition: Json<AgentDefinition>,
}

/// Selects agents that are not deleted, with their newest definitions.
macro_rules! select_agents {
    () => {
        "select a.id, a.version, a.origin, a.created_at, coalesce(a.updated_at, a.created_at) as updated_at, v.definition, \
         octet_length(cast(v.definition as text)) + 300 as page_bytes from agent_definitions a join agent_definition_versions v on v.agent_definition_id = a.id and v.version = a.version \
         where a.deleted_at is null "
    };
}

impl Storage {
    /// Stores a new agent with version 1.
    pub async fn create_agent(&self, definition: &AgentDefinition) -> Result<Agent, Error> {
        let create = async {
            let mut tx = self.database.begin().await?;
            let id = Uuid::now_v7();
            insert(&mut tx, id, Origin::Api, definition).await?;
            let agent = read(&mut tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            tx.commit().await?;
            Ok(agent)
        };
        create.await.map_err(Error::doing("store an agent"))
    }

    /// Returns the agent of this id, secrets included.
    pub async fn agent(&self, id: Uuid) -> Result<Option<Agent>, Error> {
        let sql = concat!(select_agents!(), "and a.id = $1");
        let row = self.database.fetch_optional::<AgentRow>(sql, args![id]).await;
        Ok(row.map_err(Error::doing("read an agent"))?.map(Agent::from))
    }

    /// Returns a page of agents, newest first, secrets included. `None` for an unknown cursor.
    pub async fn agents(&self, size: impl Into<PageSize>, cursor: Option<&str>) -> Result<Option<Page<Agent>>, Error> {
        let size = size.into();
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let list = page_query!(
            concat!(select_agents!(), "and ($1 is null or a.id < $1) order by a.id desc limit $2"),
            "id desc",
            "$3"
        );
        let rows = self.database.fetch_all::<PageRow<AgentRow>>(list, args![before, size.items + 1, size.bytes]).await;
        let rows = rows.map_err(Error::doing("list agents"))?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// Replaces an agent's definition by the result of `change`. Runs that were submitted before keep the earlier
    /// version.
    pub async fn change_agent<E>(
        &self,
        id: Uuid,
        change: impl FnOnce(&AgentDefinition) -> Result<AgentDefinition, E>,
    ) -> Result<Result<AgentChange, E>, Error> {
        let doing = || Error::doing("change an agent");
        let mut tx = self.database.begin().await.map_err(doing())?;
        let Some(agent) = lock(&mut tx, id).await.map_err(doing())? else { return Ok(Ok(AgentChange::NotFound)) };
        if agent.origin == Origin::File {
            tx.rollback().await.map_err(doing())?;
            return Ok(Ok(AgentChange::InFile));
        }
        let definition = match change(&agent.definition) {
            Ok(definition) => definition,
            Err(refused) => {
                tx.rollback().await.map_err(doing())?;
                return Ok(Err(refused));
            }
        };
        if definition == agent.definition {
            tx.rollback().await.map_err(doing())?;
            return Ok(Ok(AgentChange::Changed(Box::new(agent))));
        }
        let changed = async {
            add_version(&mut tx, &agent, &definition).await?;
            let changed = read(&mut tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            tx.commit().await?;
            Ok(AgentChange::Changed(Box::new(changed)))
        };
        Ok(Ok(changed.await.map_err(doing())?))
    }

    /// Removes an agent, or hides it while a conversation, a run or a briefing has it.
    pub async fn delete_agent(&self, id: Uuid) -> Result<AgentChange, Error> {
        let delete = async {
            let mut tx = self.database.begin().await?;
            let Some(agent) = lock(&mut tx, id).await? else { return Ok(AgentChange::NotFound) };
            if agent.origin == Origin::File {
                tx.rollback().await?;
                return Ok(AgentChange::InFile);
            }
            hide(&mut tx, id).await?;
            tx.commit().await?;
            Ok(AgentChange::Changed(Box::new(agent)))
        };
        delete.await.map_err(Error::doing("delete an agent"))
    }

    /// Replaces the agents of the file by `definitions`. New agents are added, changed ones get a version, and missing
    /// ones are hidden. Returns the numbers of changed and of hidden agents.
    pub async fn load_agents(&self, definitions: &BTreeMap<Uuid, AgentDefinition>) -> Result<(usize, usize), Error> {
        let load = async {
            let mut tx = self.database.begin().await?;
            let (mut changed, mut hidden) = (0, 0);
            for (id, definition) in definitions {
                // Another process may load the same file now. The first one inserts the agent, and the second one finds
                // it.
                let sql = "insert into agent_definitions (id, name, origin, created_at) values ($1, $2, 'file', {now}) on conflict (id) do nothing";
                if tx.execute(sql, args![*id, definition.name.as_str()]).await? == 1 {
                    insert_version(&mut tx, *id, 1, definition).await?;
                    changed += 1;
                    continue;
                }
                let sql = "update agent_definitions set deleted_at = null where id = $1";
                tx.execute(sql, args![*id]).await?;
                let stored = lock(&mut tx, *id).await?.ok_or(sqlx::Error::RowNotFound)?;
                if stored.definition != *definition {
                    add_version(&mut tx, &stored, definition).await?;
                    changed += 1;
                }
            }
            let sql = "select id from agent_definitions where origin = 'file' and deleted_at is null {for update}";
            for (id,) in tx.fetch_all::<(Uuid,)>(sql, args![]).await? {
                if !definitions.contains_key(&id) {
                    hide(&mut tx, id).await?;
                    hidden += 1;
                }
            }
            tx.commit().await?;
            Ok((changed, hidden))
        };
        load.await.map_err(Error::doing("load the agents of a file"))
    }

    /// Returns the definition of a run's submission, secrets included.
    pub async fn agent_definition(&self, id: Uuid, version: u32) -> Result<Option<AgentDefinition>, Error> {
        let sql = "select definition from agent_definition_versions where agent_definition_id = $1 and version = $2";
        let row = self.database.fetch_optional::<(Json<AgentDefinition>,)>(sql, args![id, version]).await;
        Ok(row.map_err(Error::doing("read an agent's definition"))?.map(|row| row.0.0))
    }
}

async fn insert(tx: &mut Tx, id: Uuid, origin: Origin, definition: &AgentDefinition) -> Result<(), sqlx::Error> {
    let sql = "insert into agent_definitions (id, name, origin, created_at) values ($1, $2, $3, {now})";
    tx.execute(sql, args![id, definition.name.as_str(), origin.as_str()]).await?;
    insert_version(tx, id, 1, definition).await
}

async fn insert_version(tx: &mut Tx, id: Uuid, version: u32, definition: &AgentDefinition) -> Result<(), sqlx::Error> {
    let sql = "insert into agent_definition_versions (agent_definition_id, version, definition, created_at) values ($1, $2, $3, {now})";
    tx.execute(sql, args![id, version, storable_json(json!(definition))]).await.map(drop)
}

async fn add_version(tx: &mut Tx, agent: &Agent, definition: &AgentDefinition) -> Result<(), sqlx::Error> {
    let version = agent.version + 1;
    insert_version(tx, agent.id, version, definition).await?;
    let sql = "update agent_definitions set version = $2, name = $3, updated_at = {now} where id = $1";
    tx.execute(sql, args![agent.id, version, definition.name.as_str()]).await.map(drop)
}

async fn hide(tx: &mut Tx, id: Uuid) -> Result<(), sqlx::Error> {
    let sql = "delete from agent_definitions where id = $1 and not exists (select 1 from chat_conversations where agent_definition_id = $1) \
               and not exists (select 1 from agent_runs where agent_definition_id = $1) \
               and not exists (select 1 from briefings where agent_definition_id = $1)";
    if tx.execute(sql, args![id]).await? == 0 {
        tx.execute("update agent_definitions set deleted_at = {now} where id = $1", args![id]).await?;
    }
    Ok(())
}

async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Agent>, sqlx::Error> {
    let sql = "select id from agent_definitions where id = $1 and deleted_at is null {for update}";
    match tx.fetch_optional::<(Uuid,)>(sql, args![id]).await? {
        Some(_) => read(tx, id).await,
        None => Ok(None),
    }
}

async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Agent>, sqlx::Error> {
    let sql = concat!(select_agents!(), "and a.id = $1");
    Ok(tx.fetch_optional::<AgentRow>(sql, args![id]).await?.map(Agent::from))
}

impl From<AgentRow> for Agent {
    fn from(row: AgentRow) -> Self {
        Self {
            id: row.id,
            version: row.version as u32,
            origin: row.origin,
            created_at: row.created_at,
            updated_at: row.updated_at,
            definition: row.definition.0,
        }
    }
}
