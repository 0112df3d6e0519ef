//! Runs in the background for the vectors that ready documents lack: after a change of the model, and after an outage of its
//! provider.
//!
//! A sweep starts a few of them while this worker has free slots. A document waits longer after each try, so no try repeats
//! without an end; after a failure all documents wait.

use std::{error::Error, time::Duration};

use holdfast_knowledge::UnembeddedDocument;
use holdfast_shared::{
    file::UserContent,
    run::SubmitMode,
    storage::{self, IngestOutcome, MessageInput, NewRun, RunOptions, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::WorkerState;

/// Unfinished runs of a deployment, roughly: two workers that sweep at one moment may start more.
const RUNS: usize = 2;

/// The longest pause between two tries of one document.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);

/// Starts runs for documents that lack vectors.
pub async fn sweep(shared: &WorkerState) {
    if let Err(error) = start_some(shared).await {
        tracing::warn!(error = &error as &dyn Error, "failed to ask for vectors that documents lack");
    }
}

/// Returns whether the worker that started last has this model of vectors, or has none. While settings change, workers of two
/// models must not undo each other's work.
pub async fn is_model_of_deployment(shared: &WorkerState, model: &str) -> Result<bool, storage::Error> {
    let noted = shared.worker.storage.noted_embedding_model().await?;
    Ok(noted.is_none_or(|noted| noted == model))
}

async fn start_some(shared: &WorkerState) -> Result<(), storage::Error> {
    let Some(model) = shared.worker.embedder.as_ref().map(|embedder| embedder.name()) else { return Ok(()) };
    let documents = shared.documents.unembedded_documents(&model, RUNS).await?;
    if documents.is_empty() || !is_model_of_deployment(shared, &model).await? {
        return Ok(());
    }
    let (unfinished, has_failed) = shared.documents.tries_for_vectors(shared.worker.embedding_pause).await?;
    if has_failed {
        return Ok(());
    }
    for document in documents.into_iter().take(RUNS.saturating_sub(unfinished)) {
        // Other runs wait less for a worker whose slots are not all taken.
        if shared.leases.count() >= shared.worker.config.worker_concurrency {
            return Ok(());
        }
        start(shared, &model, &document).await?;
    }
    Ok(())
}

async fn start(shared: &WorkerState, model: &str, document: &UnembeddedDocument) -> Result<(), storage::Error> {
    let worker = &shared.worker;
    let run = NewRun {
        run_id: Uuid::now_v7(),
        target: Target::Existing(document.conversation_id),
        input: MessageInput::New(UserContent::from(document.title.clone())),
        given: Vec::new(),
        client_message_id: None,
        mode: SubmitMode::Reject,
        options: RunOptions { ingests: true, stream: false, ..RunOptions::default() },
        max_metadata: usize::MAX,
        key: None,
        max_unfinished: 1,
        caller_group: None,
        traceparent: None,
    };
    let pause = pause_after(worker.embedding_pause, document.tries);
    let started = worker.storage.embed_document(&document.owner_id, &worker.quotas, (document.id, model, pause), &run);
    match started.await? {
        IngestOutcome::Submitted(SubmitOutcome::Accepted(_)) => {
            tracing::info!(document.id = %document.id, run.id = %run.run_id, "asks for vectors that a document lacks");
            let _ = worker.queue.wake().await;
            Ok(())
        }
        // The owner has no room for another run now.
        IngestOutcome::Submitted(_) => shared.documents.postpone_vectors(document.id, pause).await,
        // Another worker was faster.
        IngestOutcome::NothingToRetry | IngestOutcome::CollectionNotFound | IngestOutcome::TooManyDocuments(_) => {
            Ok(())
        }
    }
}

/// Returns the pause after a try that comes after so many others: twice as long after each.
fn pause_after(first: Duration, tries: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(tries)).min(LONGEST_PAUSE.max(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_tried_at_most_twelve_times_a_day() {
        let tries_until = |end: u64| {
            let minute = Duration::from_secs(60);
            let times = (0..).scan(Duration::ZERO, |at, tries| {
                *at += pause_after(minute, tries);
                Some(*at)
            });
            times.take_while(|at| *at <= Duration::from_secs(end * 3600)).count()
        };
        assert_eq!((tries_until(24), tries_until(48) - tries_until(24)), (11, 4));
        assert_eq!(pause_after(Duration::from_secs(86_400), 50), Duration::from_secs(86_400));
    }
}
