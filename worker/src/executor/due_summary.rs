//! Summaries after answers: the worker of an ended run makes the summary that the next question will need, and so does another
//! worker if that one dies.

use std::{error::Error, sync::Arc};

use holdfast_shared::{
    agent::{AgentDefinition, ModelSettings, Profiles},
    storage::DueSummary,
};
use uuid::Uuid;

use super::summariser::{self, Extended, OlderMessages, Summariser, model_of_role};
use crate::{
    WorkerState,
    model::{ChosenModel, ConnectError},
    signs_of_life::SignsOfLife,
    spans::Spans,
};

/// Renewals of the time to make a summary, while it lasts.
const RENEWALS: u32 = 3;

/// Makes the summary that is due after the end of the run, if its owner or group has a place; otherwise the next question makes it.
pub async fn make_after(shared: &WorkerState, run_id: Uuid, share: String) {
    let Some(_place) = shared.summary_places.take(share) else {
        tracing::debug!("the next question makes the summary, because no place is free");
        return settle(shared, run_id).await;
    };
    match shared.worker.storage.due_summary(run_id).await {
        Ok(Some(due)) => make(shared, due).await,
        Ok(None) => {}
        Err(error) => tracing::warn!(error = &error as &dyn Error, "failed to read a due summary; a sweep makes it"),
    }
}

/// Makes the summaries whose workers are gone.
pub async fn sweep(shared: &WorkerState) {
    loop {
        match shared.worker.storage.take_due_summary(shared.worker.config.lease).await {
            Ok(Some(due)) => {
                tracing::info!(run.id = %due.scope.run_id, "took a summary whose worker is gone");
                make(shared, due).await;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to take a due summary");
                return;
            }
        }
    }
}

async fn make(shared: &WorkerState, due: DueSummary) {
    let run_id = due.scope.run_id;
    tokio::select! {
        outcome = Box::pin(extend(shared, due)) => match outcome {
            Ok(()) => tracing::info!(run.id = %run_id, "summarised older messages after the answer"),
            Err(error) => tracing::warn!(
                run.id = %run_id, error = &error as &dyn Error,
                "failed to summarise older messages after the answer; the next question waits for the summary"
            ),
        },
        () = renew(shared, run_id) => {}
    }
    settle(shared, run_id).await;
}

async fn settle(shared: &WorkerState, run_id: Uuid) {
    if let Err(error) = shared.worker.storage.settle_due_summary(run_id).await {
        tracing::warn!(run.id = %run_id, error = &error as &dyn Error, "failed to settle a summary; a sweep does");
    }
}

/// Keeps other workers from making the same summary. It never ends.
async fn renew(shared: &WorkerState, run_id: Uuid) {
    let lease = shared.worker.config.lease;
    loop {
        tokio::time::sleep(lease / RENEWALS).await;
        if let Err(error) = shared.worker.storage.extend_due_summary(run_id, lease).await {
            tracing::debug!(error = &error as &dyn Error, "failed to extend the time of a summary");
        }
    }
}

async fn extend(shared: &WorkerState, due: DueSummary) -> Result<(), summariser::Error> {
    let worker = &shared.worker;
    let definition: Arc<AgentDefinition> = match due.agent {
        None => Arc::default(),
        Some((id, version)) => shared.agents.definition(&worker.storage, id, version).await?.unwrap_or_default(),
    };
    let profiles = worker.storage.profiles().await?;
    let model = match model_of_role(&worker.models, &profiles) {
        Some(model) => model,
        None => model_of_answer(shared, &due).map_err(summariser::Error::NoModel)?,
    };
    let summariser = Summariser {
        shared,
        model,
        language: definition.language,
        date: definition.tells_date().then(|| due.date.clone()),
        spans: Spans::after(&due),
        signs_of_life: SignsOfLife::default(),
        tokens: due.tokens,
    };
    let before = worker.storage.newest_summary(&due.scope).await?;
    let Extended { outcome, .. } = summariser.extend(&OlderMessages::Stored(due.scope), before, due.up_to).await;
    outcome
}

/// Returns the model that has written the answer, without the options of its agent.
fn model_of_answer(shared: &WorkerState, due: &DueSummary) -> Result<ChosenModel, ConnectError> {
    let settings = due.model.as_deref().and_then(|path| path.split_once('/')).map(|(provider, name)| ModelSettings {
        provider: Some(provider.to_owned()),
        name: Some(name.to_owned()),
        ..ModelSettings::default()
    });
    shared.worker.models.get(settings.as_ref(), &Profiles::default())
}
