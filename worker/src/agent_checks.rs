//! Checks of definitions: for an operator, the worker tries the model and the tool servers before the definition is stored.

use std::{error::Error, sync::Arc};

use futures::future::join_all;
use holdfast_shared::{
    agent::{AgentCheck, AgentDefinition, CheckProblem, Profiles, TRY_LIMIT},
    queue::RequestedCheck,
    storage,
};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::WorkerState;

/// Most checks of one worker at a time. It leaves further ones to other workers.
const CONCURRENCY: usize = 4;

/// The checks that processes request.
pub type RequestedChecks = mpsc::UnboundedReceiver<RequestedCheck>;

/// Subscribes once, so that a worker that has started takes checks. `listen` tries again after a failure.
pub async fn subscribe(shared: &WorkerState) -> Option<RequestedChecks> {
    let checks = shared.worker.queue.checks().await;
    let warn =
        |error| tracing::warn!(error = &error as &dyn Error, "failed to subscribe to checks of agents; trying again");
    checks.map_err(warn).ok()
}

/// Takes checks until `stop`.
pub async fn listen(shared: Arc<WorkerState>, mut checks: Option<RequestedChecks>, stop: CancellationToken) {
    stop.run_until_cancelled(async {
        let mut checks = loop {
            match checks {
                Some(checks) => break checks,
                None => tokio::time::sleep(shared.worker.config.poll).await,
            }
            checks = subscribe(&shared).await;
        };
        let places = Arc::new(Semaphore::new(CONCURRENCY));
        while let Some(check) = checks.recv().await {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                answer(&shared, check).await;
                drop(place);
            });
        }
    })
    .await;
}

/// Makes a check, unless another worker has taken it.
async fn answer(shared: &WorkerState, check: RequestedCheck) {
    match check.take().await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return tracing::warn!(error = &error as &dyn Error, "failed to take a check of an agent"),
    }
    let problems = match problems_of(shared, &check.request.definition).await {
        Ok(problems) => problems,
        Err(error) => return tracing::warn!(error = &error as &dyn Error, "failed to check an agent"),
    };
    tracing::info!(problems = problems.len(), "checked an agent");
    if let Err(error) = check.report(AgentCheck::new(problems)).await {
        tracing::warn!(error = &error as &dyn Error, "failed to report the check of an agent");
    }
}

/// Tries the models and the servers of a definition at the same time, each once.
async fn problems_of(shared: &WorkerState, definition: &AgentDefinition) -> Result<Vec<CheckProblem>, storage::Error> {
    let names_profile = definition.model.as_ref().is_some_and(|model| model.profile.is_some());
    let profiles = if names_profile { shared.worker.storage.profiles().await? } else { Profiles::default() };
    let models = shared.worker.models.try_out(definition.model.as_ref(), &profiles, TRY_LIMIT);
    let servers = definition.mcp_servers.iter().map(async |server| {
        let error = shared.mcp.try_out(server, TRY_LIMIT).await.err()?;
        Some(problem(format!("mcp_servers.{}", server.name), error.code(), &error))
    });
    let (models, servers) = tokio::join!(models, join_all(servers));
    let models = models.iter().map(|failure| problem("model".to_owned(), failure.code(), failure));
    Ok(models.chain(servers.into_iter().flatten()).collect())
}

fn problem(field: String, code: &str, reason: &dyn std::fmt::Display) -> CheckProblem {
    CheckProblem { field, code: code.to_owned(), message: reason.to_string() }
}
