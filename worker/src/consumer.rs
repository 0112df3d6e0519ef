//! The consumer: apalis hands out claims, and each claim runs in its own task.

use std::{error::Error, sync::Arc, time::Duration};

use apalis::{layers::WorkerBuilderExt, prelude::*};
use holdfast_shared::{
    ingestion_places::IngestionPlaces,
    queue::{ClaimSettings, Claims, MakeRoom},
    storage::{Claim, Room},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    WorkerState, executor,
    lease::{Lease, Signal},
};

/// Data that apalis passes to each task.
#[derive(Clone)]
struct Context {
    shared: Arc<WorkerState>,
    tracker: TaskTracker,
}

/// Part of the drain that is reserved for the last hand-overs.
const LAST_WRITES: Duration = Duration::from_secs(3);

/// Executes claims until `shutdown`, then drains.
pub async fn consume(shared: &Arc<WorkerState>, shutdown: CancellationToken) {
    let config = &shared.worker.config;
    // Documents never hold up all conversations.
    let ingestions = shared.worker.knowledge.ingestions.min((config.worker_concurrency / 2).max(1));
    let reader = Arc::clone(&shared.document_reader);
    let settings = ClaimSettings {
        terms: shared.claim_terms(),
        slots: config.worker_concurrency,
        poll: config.poll,
        sweep: config.sweep,
        places: IngestionPlaces::new(ingestions, move || reader.turns.free_for_ingestions()),
        shutdown: shutdown.clone(),
    };
    let claims = Claims::new(
        shared.worker.storage.clone(),
        shared.worker.queue.clone(),
        settings,
        make_room(Arc::clone(shared)),
    );
    let tracker = TaskTracker::new();
    let context = Context { shared: Arc::clone(shared), tracker: tracker.clone() };
    let worker = WorkerBuilder::new(shared.holder.as_str())
        .backend(claims)
        .concurrency(config.worker_concurrency)
        .catch_panic()
        .data(context)
        .build(execute);
    let stop = shutdown.clone();
    let stop_signal = async move {
        stop.cancelled().await;
        Ok::<(), std::io::Error>(())
    };
    let mut working = std::pin::pin!(worker.run_until(stop_signal));
    let mut finished = false;
    let release = async {
        shutdown.cancelled().await;
        shared.leases.signal_from_now_on(Signal::Release);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = release => {}
        result = &mut working => {
            report(result);
            finished = true;
        }
        () = drain_deadline(&shutdown, config.drain.saturating_sub(LAST_WRITES).max(config.drain / 2)) => {
            shared.leases.signal_from_now_on(Signal::Drain);
        }
    }
    if !finished && let Ok(result) = tokio::time::timeout(LAST_WRITES, &mut working).await {
        report(result);
    }
    tracker.close();
    if tokio::time::timeout(Duration::ZERO, tracker.wait()).await.is_err() {
        tracing::warn!(
            runs = tracker.len(),
            "the drain ended before all runs were handed over; other workers take them when their leases expire"
        );
    }
}

/// Returns the callback that hands the worker's runs over, for a suspect that needs the worker for itself.
fn make_room(shared: Arc<WorkerState>) -> MakeRoom {
    Box::new(move |room| {
        let signal = match room {
            Room::Clearing => Signal::Release,
            Room::Cleared => Signal::Yield,
            Room::Enough | Room::Scarce | Room::Alone => return,
        };
        let runs = shared.leases.signal_all(signal);
        if runs > 0 && signal == Signal::Yield {
            tracing::info!(runs, "handing over all runs, because a suspect run needs a worker for itself");
        }
    })
}

async fn drain_deadline(shutdown: &CancellationToken, drain: Duration) {
    shutdown.cancelled().await;
    tokio::time::sleep(drain).await;
}

fn report(result: Result<(), WorkerError>) {
    if let Err(error) = result {
        tracing::error!(error = &error as &dyn Error, "failed to run the worker");
    }
}

/// Executes one claim in its own task, so that neither a panic nor the end of apalis interrupts its writes.
async fn execute(claim: Arc<Claim>, context: Data<Context>) {
    let shared = Arc::clone(&context.shared);
    let (run_id, attempt) = (claim.run_id, claim.attempt);
    // Order matters: the lease is registered before the claim's task starts.
    let lease = Lease::hold(&shared, &claim);
    let result = context.tracker.spawn(executor::execute(Arc::clone(&shared), claim, lease)).await;
    if let Err(panicked) = result {
        tracing::error!(run.id = %run_id, error = %panicked, "the executor panicked; the run counts one crash");
        if let Err(error) = shared.worker.storage.charge_panic(&shared.holder, run_id, attempt).await {
            tracing::warn!(run.id = %run_id, error = &error as &dyn Error, "failed to release the run; a later renewal releases it");
        }
    }
}
