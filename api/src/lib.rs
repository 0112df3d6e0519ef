//! Holdfast's HTTP API.
//!
//! Modules in the order in which a request passes them: `serve` (sockets), `guard` (around every request), `auth`
//! (identifies the caller), `routes` (the whole HTTP surface), `app` (the use cases), `relay` (replay, then tail, of a
//! run's log), `wire` (encodes events for a client's protocol). `anonymous_limits`, `anonymous_data`, `read_limit`,
//! `search_limit`, `bodies`, `streams` and `unread_answers` limit what callers may use. `anonymous_activity` records visits, `spans` reports to
//! OpenTelemetry.

mod anonymous_activity;
mod anonymous_data;
mod anonymous_limits;
mod app;
mod auth;
mod bodies;
mod cors;
mod counts;
mod disconnect;
mod event_stream;
mod extract;
mod guard;
mod hang_up;
mod headers;
mod host;
mod in_flight;
mod lingering_body;
mod metrics;
mod pace;
mod page_sizes;
mod path;
mod problem;
mod protocols;
mod read_limit;
mod relay;
mod reserve;
mod routes;
mod run_request;
mod search_limit;
mod serve;
mod server_origin;
mod spans;
mod streams;
mod thread;
mod unread_answers;
mod wire;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    config::{ApiConfig, FilesConfig, HolderLimits, ModelChoice, ToolsConfig, WebSearchConfig},
    file_store::FileStore,
    queue::Queue,
    quotas::{FileLimits, KnowledgeLimits, MemoryLimits, Quotas, WorkspaceLimits},
    rate_limit::RateLimit,
    run_log::{Push, RunLog},
    storage::Storage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use anonymous_limits::AnonymousRates;
pub use app::App;
pub use auth::Authenticator;
pub use metrics::{Metrics, ProcessRole, serve_metrics};
pub use serve::{HttpListener, ListenError};

/// The API's dependencies and settings.
pub struct Api {
    pub storage: Storage,
    /// The contents of files.
    pub file_store: FileStore,
    pub run_log: RunLog,
    pub queue: Queue,
    /// Pushes of followed runs, from `run_log::connect`.
    pub pushes: mpsc::UnboundedReceiver<Push>,
    pub rate_limit: RateLimit,
    pub auth: Authenticator,
    /// Rate limits for anonymous callers of one address.
    pub anonymous_rates: AnonymousRates,
    /// Bytes that all anonymous users together may keep; `None` for no limit.
    pub all_anonymous_bytes: Option<u64>,
    /// Quotas of one owner.
    pub quotas: Quotas,
    /// Quotas of one owner's files.
    pub file_quotas: FileLimits,
    /// Quotas of one owner's collections and documents.
    pub knowledge_limits: KnowledgeLimits,
    /// The limits of one owner's workspace.
    pub workspace_limits: WorkspaceLimits,
    /// The limits of what agents remember of one owner.
    pub memory_limits: MemoryLimits,
    /// The provider of web searches.
    pub web_search: WebSearchConfig,
    /// Limits on the connections and streams of one caller.
    pub holder_limits: HolderLimits,
    /// Absence after which the sweeper removes an anonymous user; `None` for never.
    pub forgotten_after: Option<Duration>,
    pub config: ApiConfig,
    /// Settings of files.
    pub files: FilesConfig,
    pub tools: ToolsConfig,
    /// The deployment's model; `None` where this process does not know it.
    pub model: Option<ModelChoice>,
    pub metrics: Metrics,
}

impl Api {
    /// Serves requests until `shutdown`; then asks clients of streams to reconnect elsewhere, and finishes short
    /// requests.
    pub async fn run(self, listener: HttpListener, shutdown: CancellationToken) {
        let relay = relay::Relay::new(self.storage.clone(), self.run_log.clone(), &self.config, shutdown.clone());
        let dispatcher = tokio::spawn(Arc::clone(&relay).dispatch(self.pushes));
        let announcer = tokio::spawn(Arc::clone(&relay).announce_drain());
        let poller = tokio::spawn(Arc::clone(&relay).poll_runs(self.config.look));
        let anonymous_activity = anonymous_activity::AnonymousActivity::new(self.storage.clone(), self.forgotten_after);
        let anonymous_data = anonymous_data::AnonymousData::new(self.storage.clone(), self.all_anonymous_bytes);
        let app = App::new(app::Parts {
            storage: self.storage,
            file_store: self.file_store,
            run_log: self.run_log,
            queue: self.queue,
            relay,
            auth: Arc::new(self.auth),
            anonymous_limits: anonymous_limits::AnonymousLimits::new(
                self.rate_limit,
                self.anonymous_rates,
                anonymous_data,
            ),
            anonymous_activity,
            quotas: self.quotas,
            file_quotas: self.file_quotas,
            knowledge_limits: self.knowledge_limits,
            workspace_limits: self.workspace_limits,
            memory_limits: self.memory_limits,
            web_search: self.web_search,
            streams: streams::Streams::new(self.holder_limits.clone(), self.config.stream_life),
            config: self.config.clone(),
            files: self.files,
            tools: self.tools,
            model: self.model,
            metrics: self.metrics,
        });
        let router = routes::router(Arc::clone(&app));
        listener.serve(router, &self.config, self.holder_limits, shutdown).await;
        app.settle().await;
        dispatcher.abort();
        announcer.abort();
        poller.abort();
    }
}
