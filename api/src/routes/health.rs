//! `/healthz`, `/readyz`, `/metrics`: for operators and their machines.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::app::App;

/// Longest wait for a sign of life of database and Redis.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "It is.", body = String)))]
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether requests can be answered: database and Redis are reachable, and the process is not shutting down.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses(
    (status = 200, description = "Ready; `warnings`, if there are any, say what an operator should know."),
    (status = 503, description = "Not ready; `reason` says why: draining, database or redis.")
))]
pub async fn readyz(State(app): State<Arc<App>>) -> Response {
    let not_ready = |reason: &str, detail: String| {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"ready": false, "reason": reason, "detail": detail})))
    };
    if app.relay().is_draining() {
        return not_ready("draining", "this process is shutting down".to_owned()).into_response();
    }
    let places =
        tokio::join!(sign_of_life("database", app.storage().ping()), sign_of_life("redis", app.run_log().ping()));
    match places.0.and(places.1) {
        Ok(()) => match app.storage().caution() {
            Some(caution) => Json(json!({"ready": true, "warnings": [caution.message]})).into_response(),
            None => Json(json!({"ready": true})).into_response(),
        },
        Err((reason, detail)) => not_ready(reason, detail).into_response(),
    }
}

async fn sign_of_life<E: std::fmt::Display>(
    place: &'static str,
    ping: impl Future<Output = Result<(), E>>,
) -> Result<(), (&'static str, String)> {
    match tokio::time::timeout(PATIENCE, ping).await {
        Ok(answer) => answer.map_err(|error| (place, error.to_string())),
        Err(_) => Err((place, format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// Metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, description = "The metrics.", body = String)))]
pub async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    match app.storage().count_unfinished().await {
        Ok(counts) => {
            let count =
                |status: &str| counts.iter().find(|(counted, _)| counted == status).map_or(0, |(_, count)| *count);
            for status in ["queued", "running", "waiting"] {
                metrics::gauge!("holdfast_runs", "status" => status).set(count(status) as f64);
            }
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the number of runs is not in the metrics")
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics().render())
}
