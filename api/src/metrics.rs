//! Prometheus metrics: what they are called, and where they are read.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, extract::State, http::header, response::IntoResponse, routing::get};
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

/// The metrics of this process; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<PrometheusHandle>);

const LATENCY_BUCKETS: &[f64] = &[0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const RUN_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0];

impl Metrics {
    /// Begins to collect. Once per process.
    pub fn install() -> Self {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets(LATENCY_BUCKETS).expect("the list of buckets is not empty");
        let run_seconds = Matcher::Full("holdfast_run_seconds".to_owned());
        let builder =
            builder.set_buckets_for_metric(run_seconds, RUN_BUCKETS).expect("the list of buckets is not empty");
        let handle = builder.install_recorder().expect("metrics are installed once per process");
        describe_histogram!(
            "holdfast_first_token_seconds",
            Unit::Seconds,
            "From a message's commit to the model's first delta."
        );
        describe_histogram!("holdfast_run_seconds", Unit::Seconds, "From a message's commit to the end of its run.");
        describe_histogram!(
            "holdfast_queue_wait_seconds",
            Unit::Seconds,
            "From a message's commit to the claim of its run."
        );
        describe_histogram!("holdfast_tool_call_seconds", Unit::Seconds, "Calls of tools, however they have ended.");
        describe_counter!("holdfast_takeovers_total", "Runs taken over from a worker that gave no sign of life.");
        describe_counter!("holdfast_runs_ended_total", "Runs that this process has ended, by status.");
        describe_gauge!("holdfast_runs_executing", "Runs that this process executes.");
        describe_gauge!("holdfast_runs", "Runs that have not ended, by status, in the whole deployment.");
        describe_gauge!("holdfast_streams_open", "Streams of events that clients have open, and long polls that wait.");
        describe_counter!("holdfast_events_appended_total", "Events written to run logs.");
        describe_counter!("holdfast_events_relayed_total", "Events written to clients' streams.");
        Self(Arc::new(handle))
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        self.0.run_upkeep();
        self.0.render()
    }
}

/// Serves `/metrics` and `/healthz` of a process that has no API, until `shutdown`.
pub async fn serve_metrics(address: SocketAddr, metrics: Metrics, shutdown: CancellationToken) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(metrics);
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

async fn metrics_text(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.render())
}
