//! Checks of definitions before they are stored: a worker makes them, and few run at a time.

use std::time::Duration;

use holdfast_shared::agent::{AgentCheck, AgentDefinition, CHECK_PATIENCE, CheckRequest};
use serde_json::json;
use uuid::Uuid;

use super::App;
use crate::problem::Problem;

/// Most checks of one API process at a time, each of another model.
pub(super) const AGENT_CHECKS: usize = 4;

impl App {
    /// Has a worker try a definition. Fails while another check of its model runs, and if no worker reports in time.
    pub async fn check_agent(&self, definition: AgentDefinition) -> Result<AgentCheck, Problem> {
        let model = json!(definition.model).to_string();
        let turn = self.agent_checks.take(&model, Duration::ZERO).await;
        let _turn = turn.map_err(|_| Problem::too_many_checks())?;
        let request = CheckRequest { id: Uuid::now_v7(), definition: Box::new(definition) };
        match self.queue.check(request, CHECK_PATIENCE).await {
            Ok(Some(report)) => Ok(report),
            Ok(None) => Err(Problem::no_worker()),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to request a check of an agent");
                Err(Problem::no_worker())
            }
        }
    }
}
