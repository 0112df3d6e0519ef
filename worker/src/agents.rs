//! Definitions of agents as runs were submitted with them; a version never changes, so it is read once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use holdfast_shared::{
    agent::AgentDefinition,
    storage::{Error, Storage},
};
use uuid::Uuid;

/// Versions kept in memory; beyond, they are read again.
const KEPT: usize = 1000;

/// The definitions that this process has read.
#[derive(Default)]
pub struct Agents(Mutex<HashMap<(Uuid, u32), Arc<AgentDefinition>>>);

impl Agents {
    /// The definition of that version; `None` if it is gone.
    pub async fn definition(
        &self,
        storage: &Storage,
        id: Uuid,
        version: u32,
    ) -> Result<Option<Arc<AgentDefinition>>, Error> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(id, version)).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let Some(definition) = storage.agent_definition(id, version).await?.map(Arc::new) else { return Ok(None) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert((id, version), Arc::clone(&definition));
        Ok(Some(definition))
    }
}
