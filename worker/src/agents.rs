//! Cache of agent definitions: a version never changes, so the worker reads it once.
//! The warm-up also connects to the agents' MCP servers before the first run needs them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{StreamExt, stream};
use holdfast_shared::{
    agent::{AgentDefinition, ServerScope},
    storage::{Error, Storage},
};
use uuid::Uuid;

use crate::tools::mcp::Mcp;

/// Agents whose MCP servers the warm-up connects to.
const WARM_UP_AGENTS: usize = 100;

/// Servers that the warm-up connects to at the same time.
const CONCURRENCY: usize = 8;

/// Versions that the cache holds; a full cache is cleared.
const MAX_CACHED: usize = 1000;

/// Connects to those servers of the newest agents that all runs share, so that first runs need not wait and the log names
/// servers that are down. Servers of an owner or a conversation start with their first run.
pub async fn warm_up(storage: &Storage, mcp: &Arc<Mcp>) {
    let agents = match storage.agents(WARM_UP_AGENTS, None).await {
        Ok(Some(page)) => page.items,
        Ok(None) => return,
        Err(error) => {
            return tracing::debug!(
                error = &error as &dyn std::error::Error,
                "failed to list agents; the first runs connect to their servers"
            );
        }
    };
    let servers = agents.into_iter().flat_map(|agent| agent.definition.mcp_servers);
    let shared = servers.filter(|server| server.scope == ServerScope::Worker);
    stream::iter(shared).for_each_concurrent(CONCURRENCY, async |server| mcp.start_for_all(&server).await).await;
}

/// Cache of the definitions that this process has read.
#[derive(Default)]
pub struct Agents(Mutex<HashMap<(Uuid, u32), Arc<AgentDefinition>>>);

impl Agents {
    /// Returns the definition of this version, or `None` if the database has none.
    pub async fn definition(
        &self,
        storage: &Storage,
        id: Uuid,
        version: u32,
    ) -> Result<Option<Arc<AgentDefinition>>, Error> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(id, version)).cloned();
        if cached.is_some() {
            return Ok(cached);
        }
        let Some(definition) = storage.agent_definition(id, version).await?.map(Arc::new) else { return Ok(None) };
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert((id, version), Arc::clone(&definition));
        Ok(Some(definition))
    }
}
