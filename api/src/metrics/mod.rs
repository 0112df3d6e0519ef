//! Prometheus metrics of a process: `catalogue` lists them, `requests` measures the API's requests.
//!
//! Other code increments a metric where its event happens, by the name in the catalogue.

mod catalogue;
mod requests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use holdfast_shared::storage::Storage;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use tokio_util::sync::CancellationToken;

pub use catalogue::ProcessRole;
use catalogue::{CATALOGUE, MetricKind};
pub use requests::measure;

/// How often the recorder aggregates the samples of histograms. It keeps each sample until then, so the upkeep must not
/// wait for a scrape.
const UPKEEP: Duration = Duration::from_secs(5);

/// The metrics of this process; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsState>);

struct MetricsState {
    handle: PrometheusHandle,
    process: Collector,
    shutdown: CancellationToken,
}

impl Metrics {
    /// Installs the recorder, once per process. `shutdown` marks the start of a drain.
    pub fn install(role: ProcessRole, shutdown: CancellationToken) -> Self {
        let mut builder = PrometheusBuilder::new();
        for metric in CATALOGUE {
            if let MetricKind::Histogram(buckets) = metric.kind {
                let name = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(name, buckets).expect("the list of buckets is not empty");
            }
        }
        let handle = builder.install_recorder().expect("metrics are installed once per process");
        for metric in CATALOGUE.iter().filter(|metric| metric.is_made_by(role)) {
            metric.register();
        }
        metrics::gauge!("holdfast_build_info", "version" => env!("CARGO_PKG_VERSION"), "role" => role.as_str()).set(1);
        let process = Collector::default();
        process.describe();
        let upkeep = handle.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                upkeep.run_upkeep();
            }
        });
        Self(Arc::new(MetricsState { handle, process, shutdown }))
    }

    /// Returns the answer to a scrape: all metrics in Prometheus' text format.
    pub fn answer(&self, storage: &Storage) -> Response {
        let connections = storage.connections();
        metrics::gauge!("holdfast_database_connections", "state" => "used").set(connections.used as f64);
        metrics::gauge!("holdfast_database_connections", "state" => "idle").set(connections.idle as f64);
        metrics::gauge!("holdfast_database_connections_max").set(connections.max as f64);
        metrics::gauge!("holdfast_draining").set(f64::from(u8::from(self.0.shutdown.is_cancelled())));
        self.0.process.collect();
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], self.0.handle.render()).into_response()
    }
}

/// Serves `/metrics` and `/healthz` of a process without the API, until `stop`. Fails if it cannot bind the address.
pub async fn serve_metrics(
    address: SocketAddr,
    metrics: Metrics,
    storage: Storage,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route(
            "/metrics",
            get(|State((metrics, storage)): State<(Metrics, Storage)>| async move { metrics.answer(&storage) }),
        )
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state((metrics, storage));
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}
