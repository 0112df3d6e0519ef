//! Holdfast's worker: claims runs, executes them, records their events.
//!
//! In the order of a run's way: `consumer` (apalis hands out claims), `lease` (keeps them, and carries the signals that
//! end them early), `agents` (what runs were submitted with), `executor` (what a run does), `model` (who answers), `tools`
//! (what is called), `recorder` (the only writer of events). `sweeper` finds what lost its worker, or its answer, and
//! `forgotten` removes anonymous users who do not come back. `spans`
//! has what is told of all this to OpenTelemetry.

mod agents;
mod consumer;
mod executor;
mod forgotten;
mod lease;
pub mod model;
mod recorder;
mod spans;
mod sweeper;
mod tools;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    config::{RunConfig, ToolsConfig},
    queue::Queue,
    run_log::RunLog,
    schema::SchemaChecks,
    storage::{ClaimTerms, Holder, Storage},
};
use tokio_util::sync::CancellationToken;

use agents::Agents;
use lease::Leases;
use model::Models;
pub use tools::mcp::{Children, guard};

use tools::mcp::Mcp;

/// All that executing runs needs.
pub struct Worker {
    pub storage: Storage,
    pub run_log: RunLog,
    pub queue: Queue,
    pub models: Models,
    pub config: RunConfig,
    pub tools: ToolsConfig,
    /// How MCP servers are started that are commands.
    pub children: Arc<Children>,
    /// How long the events of ended runs are kept.
    pub archive_retention: Duration,
    /// The absence after which an anonymous user is forgotten, if there is one.
    pub forgotten_after: Option<Duration>,
}

/// What the parts of one worker process share.
struct WorkerState {
    worker: Worker,
    holder: Holder,
    leases: Leases,
    agents: Agents,
    mcp: Arc<Mcp>,
    schemas: SchemaChecks,
}

impl WorkerState {
    /// How this process claims runs.
    fn claim_terms(&self) -> ClaimTerms {
        let config = &self.worker.config;
        ClaimTerms { holder: self.holder.clone(), lease: config.lease, max_crashes: config.max_crashes }
    }
}

impl Worker {
    /// Executes runs until `shutdown`; then claims no more, lets the running ones end for as long as the drain allows, and
    /// hands over the rest.
    pub async fn run(self, shutdown: CancellationToken) {
        let shared = Arc::new(WorkerState {
            holder: Holder::new(),
            leases: Leases::default(),
            agents: Agents::default(),
            mcp: Mcp::new(&self.tools, Arc::clone(&self.children)),
            schemas: SchemaChecks::new(&self.tools),
            worker: self,
        });
        tracing::info!(
            holder = shared.holder.as_str(),
            slots = shared.worker.config.worker_concurrency,
            "worker started"
        );
        metrics::gauge!("holdfast_worker_slots").set(shared.worker.config.worker_concurrency as f64);
        let background = CancellationToken::new();
        let keeper = tokio::spawn(lease::keep(Arc::clone(&shared), background.clone()));
        let cancels = tokio::spawn(lease::listen_for_cancels(Arc::clone(&shared), background.clone()));
        let sweeper = tokio::spawn(sweeper::sweep(Arc::clone(&shared), background.clone()));
        let warming = Arc::clone(&shared);
        let warming = tokio::spawn(async move { agents::warm_up(&warming.worker.storage, &warming.mcp).await });
        consumer::consume(&shared, shutdown).await;
        // Order matters: leases are kept until the last run has ended or was handed over.
        background.cancel();
        warming.abort();
        let _ = tokio::join!(keeper, cancels, sweeper);
        shared.mcp.close().await;
        tracing::info!("worker stopped");
    }
}
