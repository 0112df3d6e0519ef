//! Holdfast's HTTP API.
//!
//! In the order of a request's way: `serve` (sockets), `guard` (around every request), `auth` (who is asking), `routes` (the
//! whole HTTP surface), `app` (the use cases), `strangers` (how often those may ask), `seen` (when anonymous
//! users were last here), `unread` (answers that clients have not read yet), `relay` (replay, then tail, of a run's
//! log), `wire` (what a client's protocol makes of an event). `spans` has what is told of all this to OpenTelemetry.

mod anonymous_activity;
mod anonymous_limits;
mod app;
mod auth;
mod bodies;
mod cors;
mod counts;
mod extract;
mod guard;
mod hang_up;
mod headers;
mod host;
mod in_flight;
mod metrics;
mod problem;
mod relay;
mod reserve;
mod routes;
mod search_limit;
mod serve;
mod spans;
mod streams;
mod unread_answers;
mod wire;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    config::{ApiConfig, HolderLimits, ModelChoice, ToolsConfig},
    queue::Queue,
    quotas::Quotas,
    rate_limit::{Rate, RateLimit},
    run_log::{Push, RunLog},
    storage::Storage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use app::App;
pub use auth::Authenticator;
pub use metrics::{Metrics, ProcessRole, serve_metrics};
pub use serve::{HttpListener, ListenError};

/// All that answering requests needs.
pub struct Api {
    pub storage: Storage,
    pub run_log: RunLog,
    pub queue: Queue,
    /// The pushes of followed runs, from `run_log::connect`.
    pub pushes: mpsc::UnboundedReceiver<Push>,
    pub rate_limit: RateLimit,
    pub auth: Authenticator,
    /// How often a stranger may start a run, if there is a limit.
    pub run_rate: Option<Rate>,
    /// How often an anonymous caller may write anything else, if there is a limit.
    pub write_rate: Option<Rate>,
    /// What one owner may have at most.
    pub quotas: Quotas,
    /// What one caller may hold open.
    pub holder_limits: HolderLimits,
    /// The absence after which an anonymous user is forgotten, if there is one.
    pub forgotten_after: Option<Duration>,
    pub config: ApiConfig,
    pub tools: ToolsConfig,
    /// The deployment's model, where this process knows it.
    pub model: Option<ModelChoice>,
    pub metrics: Metrics,
}

impl Api {
    /// Answers requests until `shutdown`; then tells streams to come back elsewhere and finishes what is short.
    pub async fn run(self, listener: HttpListener, shutdown: CancellationToken) {
        let relay = relay::Relay::new(self.storage.clone(), self.run_log.clone(), &self.config, shutdown.clone());
        let dispatcher = tokio::spawn(Arc::clone(&relay).dispatch(self.pushes));
        let announcer = tokio::spawn(Arc::clone(&relay).announce_drain());
        let looker = tokio::spawn(Arc::clone(&relay).look(self.config.look));
        let anonymous_activity = anonymous_activity::AnonymousActivity::new(self.storage.clone(), self.forgotten_after);
        let app = App::new(app::Parts {
            storage: self.storage,
            run_log: self.run_log,
            queue: self.queue,
            relay,
            auth: Arc::new(self.auth),
            anonymous_limits: anonymous_limits::AnonymousLimits::new(self.rate_limit, self.run_rate, self.write_rate),
            anonymous_activity,
            quotas: self.quotas,
            streams: streams::Streams::new(self.holder_limits.clone(), self.config.stream_life),
            config: self.config.clone(),
            tools: self.tools,
            model: self.model,
            metrics: self.metrics,
        });
        let router = routes::router(Arc::clone(&app));
        listener.serve(router, &self.config, self.holder_limits, shutdown).await;
        app.settle().await;
        dispatcher.abort();
        announcer.abort();
        looker.abort();
    }
}
