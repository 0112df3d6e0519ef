//! Holdfast's HTTP API.
//!
//! In the order of a request's way: `serve` (sockets), `routes` (the whole HTTP surface), `auth` (who is asking), `app` (the
//! use cases), `relay` (replay, then tail, of a run's log), `wire` (what a client's protocol makes of an event).

mod app;
mod auth;
mod extract;
mod metrics;
mod problem;
mod relay;
mod routes;
mod serve;
mod wire;

use std::sync::Arc;

use holdfast_shared::{
    config::{ApiConfig, ToolsConfig},
    queue::Queue,
    run_log::{Push, RunLog},
    storage::Storage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use app::App;
pub use metrics::{Metrics, serve_metrics};
pub use serve::{ListenError, Listener};

/// All that answering requests needs.
pub struct Api {
    pub storage: Storage,
    pub run_log: RunLog,
    pub queue: Queue,
    /// The pushes of followed runs, from `run_log::connect`.
    pub pushes: mpsc::UnboundedReceiver<Push>,
    pub config: ApiConfig,
    pub tools: ToolsConfig,
    pub metrics: Metrics,
}

impl Api {
    /// Answers requests until `shutdown`; then tells streams to come back elsewhere and finishes what is short.
    pub async fn run(self, listener: Listener, shutdown: CancellationToken) {
        let relay = relay::Relay::new(self.storage.clone(), self.run_log.clone(), &self.config, shutdown.clone());
        let dispatcher = tokio::spawn(Arc::clone(&relay).dispatch(self.pushes));
        let looker = tokio::spawn(Arc::clone(&relay).look(self.config.look));
        let app =
            App::new(self.storage, self.run_log, self.queue, relay, self.config.clone(), self.tools, self.metrics);
        let router = routes::router(Arc::clone(&app));
        listener.serve(router, &self.config, shutdown).await;
        app.settle().await;
        dispatcher.abort();
        looker.abort();
    }
}
