//! `/healthz`, `/readyz`, `/metrics`: for probes and Prometheus.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use holdfast_shared::storage::Backlog;
use serde_json::json;

use crate::app::App;

/// Time-out for a ping of database or Redis.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Check that the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "The process is alive.", body = String)))]
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Check that the process can answer requests: it reaches database and Redis, and is not shutting down.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses(
    (status = 200, body = Object, description = "Ready; `warnings`, if any, are for the operator."),
    (status = 503, body = Object, description = "Not ready; `reason` is draining, database or redis.")
))]
pub async fn readyz(State(app): State<Arc<App>>) -> Response {
    let not_ready = |reason: &str, detail: String| {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"ready": false, "reason": reason, "detail": detail})))
    };
    if app.relay().is_draining() {
        return not_ready("draining", "this process is shutting down".to_owned()).into_response();
    }
    let pings = tokio::join!(
        ping_within_timeout("database", app.storage().ping()),
        ping_within_timeout("redis", app.run_log().ready())
    );
    match pings.0.and(pings.1) {
        Ok(()) => match app.storage().caution() {
            Some(caution) => Json(json!({"ready": true, "warnings": [caution.message]})).into_response(),
            None => Json(json!({"ready": true})).into_response(),
        },
        Err((reason, detail)) => not_ready(reason, detail).into_response(),
    }
}

async fn ping_within_timeout<T, E: std::fmt::Display>(
    place: &'static str,
    ping: impl Future<Output = Result<T, E>>,
) -> Result<T, (&'static str, String)> {
    match tokio::time::timeout(PING_TIMEOUT, ping).await {
        Ok(answer) => answer.map_err(|error| (place, error.to_string())),
        Err(_) => Err((place, format!("no answer within {} s", PING_TIMEOUT.as_secs()))),
    }
}

/// Return all metrics in Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, description = "The metrics.", body = String)))]
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let (backlog, redis) = tokio::join!(
        ping_within_timeout("database", app.storage().backlog()),
        ping_within_timeout("redis", app.run_log().ping())
    );
    for (place, answered) in [("database", backlog.is_ok()), ("redis", redis.is_ok())] {
        metrics::gauge!("holdfast_reachable", "place" => place).set(f64::from(u8::from(answered)));
    }
    // Without an answer, the last counts would look current.
    let backlog = backlog.unwrap_or(Backlog::UNKNOWN);
    for (status, runs) in [("queued", backlog.queued), ("running", backlog.running), ("waiting", backlog.waiting)] {
        metrics::gauge!("holdfast_runs", "status" => status).set(runs);
    }
    metrics::gauge!("holdfast_oldest_queued_run_seconds").set(backlog.oldest_queued_seconds);
    // One row has the measurement of the last sweep.
    let anonymous = ping_within_timeout("database", app.storage().anonymous_data()).await;
    let anonymous = anonymous.ok().filter(|measured| measured.number > 0);
    metrics::gauge!("holdfast_anonymous_bytes").set(anonymous.map_or(f64::NAN, |measured| measured.bytes as f64));
    let most = app.anonymous_limits().most_bytes_of_all().unwrap_or_default();
    metrics::gauge!("holdfast_anonymous_bytes_max").set(most as f64);
    app.metrics().answer(app.storage())
}
