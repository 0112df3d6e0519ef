//! Holdfast's worker: claims runs, executes them, records their events.
//!
//! In the order of a run's way: `consumer` (apalis hands out claims), `lease` (keeps them, and carries the signals that
//! end them early), `executor` (what a run does), `model` (who answers), `recorder` (the only writer of events).
//! `sweeper` finds what lost its worker.

mod consumer;
mod executor;
mod lease;
pub mod model;
mod recorder;
mod sweeper;
#[allow(dead_code, reason = "the executor does not call tools yet")]
mod tools;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    config::{ModelChoice, RunConfig},
    queue::Queue,
    run_log::RunLog,
    storage::{Holder, Storage},
};
use tokio_util::sync::CancellationToken;

use lease::Leases;
use model::Model;

/// All that executing runs needs.
pub struct Worker {
    pub storage: Storage,
    pub run_log: RunLog,
    pub queue: Queue,
    pub model: Arc<dyn Model>,
    pub choice: ModelChoice,
    pub config: RunConfig,
    /// How long the events of ended runs are kept.
    pub archive_retention: Duration,
}

/// What the parts of one worker process share.
struct Shared {
    worker: Worker,
    holder: Holder,
    leases: Leases,
}

impl Worker {
    /// Executes runs until `shutdown`; then claims no more, lets the running ones end for as long as the drain allows, and
    /// hands over the rest.
    pub async fn run(self, shutdown: CancellationToken) {
        let shared = Arc::new(Shared { worker: self, leases: Leases::default(), holder: Holder::new() });
        tracing::info!(
            holder = shared.holder.as_str(),
            slots = shared.worker.config.worker_concurrency,
            "worker started"
        );
        let background = CancellationToken::new();
        let keeper = tokio::spawn(lease::keep(Arc::clone(&shared), background.clone()));
        let cancels = tokio::spawn(lease::listen_for_cancels(Arc::clone(&shared), background.clone()));
        let sweeper = tokio::spawn(sweeper::sweep(Arc::clone(&shared), background.clone()));
        consumer::consume(&shared, shutdown).await;
        // Order matters: leases are kept until the last run has ended or was handed over.
        background.cancel();
        let _ = tokio::join!(keeper, cancels, sweeper);
        tracing::info!("worker stopped");
    }
}
