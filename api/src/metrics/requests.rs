//! Measures the time from a request to the head of its answer, by route and status.

use std::time::Instant;

use axum::{
    extract::{MatchedPath, Request},
    http::Method,
    middleware::Next,
    response::Response,
};

/// Middleware that records one request in `holdfast_http_request_seconds`.
pub async fn measure(request: Request, next: Next) -> Response {
    let started_at = Instant::now();
    let method = method_label(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    // Labels never hold text that clients can choose, because the number of series must stay bounded.
    let route = route.as_ref().map_or("none", MatchedPath::as_str).to_owned();
    let labels = [("method", method.to_owned()), ("route", route), ("status", response.status().as_str().to_owned())];
    metrics::histogram!("holdfast_http_request_seconds", &labels).record(started_at.elapsed().as_secs_f64());
    response
}

fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
