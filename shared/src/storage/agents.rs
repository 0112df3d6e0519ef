//! Agents: the API or a file defines them, changes add versions, and deletion hides them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    delegations::expect_end,
    pages::{PageRow, page_of, page_query},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    agent::{Agent, AgentDefinition, DelegationCycle, Origin, builtin_agents},
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
    /// The program has the agent.
    Builtin,
    /// There is no such agent.
    NotFound,
    /// The agent could delegate to itself without an end.
    Cyclic(DelegationCycle),
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
        "
        select a.id, a.version, a.origin, a.created_at,
            coalesce(a.updated_at, a.created_at) as updated_at, v.definition,
            octet_length(cast(v.definition as text)) + 300 as page_bytes
        from agent_definitions a
        join agent_definition_versions v
            on v.agent_definition_id = a.id and v.version = a.version
        where a.deleted_at is null "
    };
}

statements! {
    /// Returns an agent.
    AGENT = concat!(select_agents!(), " and a.id = $1"),
    /// Lists agents, newest first.
    AGENTS = page_query!(
        concat!(select_agents!(), "
              and ($1 is null or a.id < $1)
            order by a.id desc
            limit $2
        "),
        "id desc",
        "$3",
    ),
    /// Adds an agent of the file, unless another process has added it.
    INSERT_FROM_FILE = "
        insert into agent_definitions (id, name, origin, created_at)
        values ($1, $2, 'file', {now})
        on conflict (id) do nothing
    ",
    /// Adds an agent of the program, unless another process has added it.
    INSERT_BUILTIN = "
        insert into agent_definitions (id, name, origin, created_at)
        values ($1, $2, 'builtin', {now})
        on conflict (id) do nothing
    ",
    /// Shows a hidden agent again.
    SHOW = "
        update agent_definitions
        set deleted_at = null
        where id = $1
    ",
    /// Locks the agents of the file that are not hidden.
    LOCK_FROM_FILE = "
        select id
        from agent_definitions
        where origin = 'file' and deleted_at is null
        {for update}
    ",
    /// Returns one version of a definition.
    DEFINITION = "
        select definition
        from agent_definition_versions
        where agent_definition_id = $1 and version = $2
    ",
    /// Adds an agent without a definition.
    INSERT = "
        insert into agent_definitions (id, name, origin, created_at)
        values ($1, $2, $3, {now})
    ",
    /// Adds a version of a definition.
    INSERT_VERSION = "
        insert into agent_definition_versions (
            agent_definition_id, version, definition, created_at
        )
        values ($1, $2, $3, {now})
    ",
    /// Makes a version the newest one.
    SET_VERSION = "
        update agent_definitions
        set version = $2, name = $3, updated_at = {now}
        where id = $1
    ",
    /// Removes an agent that nothing refers to.
    DELETE_UNUSED = "
        delete from agent_definitions
        where id = $1
          and not exists (select 1 from chat_conversations where agent_definition_id = $1)
          and not exists (select 1 from agent_runs where agent_definition_id = $1)
          and not exists (select 1 from briefings where agent_definition_id = $1)
    ",
    /// Hides an agent.
    HIDE = "
        update agent_definitions
        set deleted_at = {now}
        where id = $1
    ",
    /// Locks an agent that is not hidden.
    LOCK = "
        select id
        from agent_definitions
        where id = $1 and deleted_at is null
        {for update}
    ",
}

impl Storage {
    /// Stores a new agent with version 1, or returns the cycle that it would close.
    pub async fn create_agent(&self, definition: &AgentDefinition) -> Result<Result<Agent, DelegationCycle>, Error> {
        let create = async |tx: &mut Tx| {
            let id = Uuid::now_v7();
            insert(tx, id, Origin::Api, definition).await?;
            if let Err(cycle) = expect_end(tx, &[(id, definition)]).await? {
                return Ok(RollBack(Err(cycle)));
            }
            Ok(Commit(Ok(read_stored(tx, id).await?)))
        };
        self.database.transact("store an agent", create).await
    }

    /// Returns the agent of this id, secrets included.
    pub async fn agent(&self, id: Uuid) -> Result<Option<Agent>, Error> {
        let row = self.database.fetch_optional::<AgentRow>("read an agent", AGENT, args![id]).await?;
        Ok(row.map(Agent::from))
    }

    /// Returns a page of agents, newest first, secrets included. `None` for an unknown cursor.
    pub async fn agents(&self, size: impl Into<PageSize>, cursor: Option<&str>) -> Result<Option<Page<Agent>>, Error> {
        let size = size.into();
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let rows = self
            .database
            .fetch_all::<PageRow<AgentRow>>("list agents", AGENTS, args![before, size.items + 1, size.bytes])
            .await?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// Replaces an agent's definition by the result of `change`. Runs that were submitted before keep the earlier
    /// version.
    pub async fn change_agent<E>(
        &self,
        id: Uuid,
        change: impl FnOnce(&AgentDefinition) -> Result<AgentDefinition, E>,
    ) -> Result<Result<AgentChange, E>, Error> {
        let change = async |tx: &mut Tx| {
            let Some(agent) = lock(tx, id).await? else { return Ok(RollBack(Ok(AgentChange::NotFound))) };
            if let Some(refusal) = refusal(agent.origin) {
                return Ok(RollBack(Ok(refusal)));
            }
            let definition = match change(&agent.definition) {
                Ok(definition) => definition,
                Err(refused) => return Ok(RollBack(Err(refused))),
            };
            if definition == agent.definition {
                return Ok(RollBack(Ok(AgentChange::Changed(Box::new(agent)))));
            }
            add_version(tx, &agent, &definition).await?;
            if let Err(cycle) = expect_end(tx, &[(id, &definition)]).await? {
                return Ok(RollBack(Ok(AgentChange::Cyclic(cycle))));
            }
            Ok(Commit(Ok(AgentChange::Changed(Box::new(read_stored(tx, id).await?)))))
        };
        self.database.transact("change an agent", change).await
    }

    /// Removes an agent, or hides it while a conversation, a run or a briefing has it.
    pub async fn delete_agent(&self, id: Uuid) -> Result<AgentChange, Error> {
        let delete = async |tx: &mut Tx| {
            let Some(agent) = lock(tx, id).await? else { return Ok(RollBack(AgentChange::NotFound)) };
            if let Some(refusal) = refusal(agent.origin) {
                return Ok(RollBack(refusal));
            }
            hide(tx, id).await?;
            Ok(Commit(AgentChange::Changed(Box::new(agent))))
        };
        self.database.transact("delete an agent", delete).await
    }

    /// Replaces the agents of the file by `definitions`. New agents are added, changed ones get a version, and missing
    /// ones are hidden. Returns the numbers of changed and of hidden agents, or a cycle of agents that refuses the file.
    pub async fn load_agents(
        &self,
        definitions: &BTreeMap<Uuid, AgentDefinition>,
    ) -> Result<Result<(usize, usize), DelegationCycle>, Error> {
        let load = async |tx: &mut Tx| {
            let (mut changed, mut hidden) = (0, 0);
            for (id, definition) in definitions {
                // Another process may load the same file now. The first one inserts the agent, and the second one finds
                // it.
                if tx.execute(INSERT_FROM_FILE, args![*id, definition.name.as_str()]).await? == 1 {
                    insert_version(tx, *id, 1, definition).await?;
                    changed += 1;
                    continue;
                }
                tx.execute(SHOW, args![*id]).await?;
                let stored = lock(tx, *id).await?.ok_or_else(|| tx.no_row())?;
                if stored.definition != *definition {
                    add_version(tx, &stored, definition).await?;
                    changed += 1;
                }
            }
            for (id,) in tx.fetch_all::<(Uuid,)>(LOCK_FROM_FILE, args![]).await? {
                if !definitions.contains_key(&id) {
                    hide(tx, id).await?;
                    hidden += 1;
                }
            }
            let of_file: Vec<_> = definitions.iter().map(|(id, definition)| (*id, definition)).collect();
            Ok(match expect_end(tx, &of_file).await? {
                Ok(()) => Commit(Ok((changed, hidden))),
                Err(cycle) => RollBack(Err(cycle)),
            })
        };
        self.database.transact("load the agents of a file", load).await
    }

    /// Stores the agents of the program.
    pub async fn load_builtin_agents(&self) -> Result<(), Error> {
        let load = async |tx: &mut Tx| {
            for (id, definition) in builtin_agents() {
                if tx.execute(INSERT_BUILTIN, args![id, definition.name.as_str()]).await? == 1 {
                    insert_version(tx, id, 1, &definition).await?;
                    continue;
                }
                tx.execute(SHOW, args![id]).await?;
                let stored = lock(tx, id).await?.ok_or_else(|| tx.no_row())?;
                if stored.definition != definition {
                    add_version(tx, &stored, &definition).await?;
                }
            }
            Ok(Commit(()))
        };
        self.database.transact("store the agents of the program", load).await
    }

    /// Returns the definition of a run's submission, secrets included.
    pub async fn agent_definition(&self, id: Uuid, version: u32) -> Result<Option<AgentDefinition>, Error> {
        let row = self.database.fetch_optional::<(Json<AgentDefinition>,)>(
            "read an agent's definition",
            DEFINITION,
            args![id, version],
        );
        Ok(row.await?.map(|(definition,)| definition.0))
    }
}

/// Returns why a client cannot change an agent of this origin, if that is so.
const fn refusal(origin: Origin) -> Option<AgentChange> {
    match origin {
        Origin::Api => None,
        Origin::File => Some(AgentChange::InFile),
        Origin::Builtin => Some(AgentChange::Builtin),
    }
}

async fn insert(tx: &mut Tx, id: Uuid, origin: Origin, definition: &AgentDefinition) -> Result<(), Error> {
    tx.execute(INSERT, args![id, definition.name.as_str(), origin.as_str()]).await?;
    insert_version(tx, id, 1, definition).await
}

async fn insert_version(tx: &mut Tx, id: Uuid, version: u32, definition: &AgentDefinition) -> Result<(), Error> {
    tx.execute(INSERT_VERSION, args![id, version, storable_json(json!(definition))]).await.map(drop)
}

async fn add_version(tx: &mut Tx, agent: &Agent, definition: &AgentDefinition) -> Result<(), Error> {
    let version = agent.version + 1;
    insert_version(tx, agent.id, version, definition).await?;
    tx.execute(SET_VERSION, args![agent.id, version, definition.name.as_str()]).await.map(drop)
}

async fn hide(tx: &mut Tx, id: Uuid) -> Result<(), Error> {
    if tx.execute(DELETE_UNUSED, args![id]).await? == 0 {
        tx.execute(HIDE, args![id]).await?;
    }
    Ok(())
}

async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Agent>, Error> {
    match tx.fetch_optional::<(Uuid,)>(LOCK, args![id]).await? {
        Some(_) => read(tx, id).await,
        None => Ok(None),
    }
}

/// Returns an agent that this transaction has stored.
async fn read_stored(tx: &mut Tx, id: Uuid) -> Result<Agent, Error> {
    read(tx, id).await?.ok_or_else(|| tx.no_row())
}

async fn read(tx: &mut Tx, id: Uuid) -> Result<Option<Agent>, Error> {
    Ok(tx.fetch_optional::<AgentRow>(AGENT, args![id]).await?.map(Agent::from))
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
