//! CORS for front ends on other origins: browsers may show answers to pages of the origins in `HOLDFAST_CORS_ORIGINS`.
//!
//! The layer touches heads only, so a stream costs no more with it. It answers preflights before `auth`, because
//! browsers send them without a token.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use holdfast_shared::config::ApiConfig;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// Time that a browser may cache the answer to a preflight; browsers have their own shorter limits.
const MAX_AGE: Duration = Duration::from_secs(2 * 60 * 60);

const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Headers of answers that a page may read.
const EXPOSED: [HeaderName; 21] = [
    header::ACCEPT_RANGES,
    header::CONTENT_DISPOSITION,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::ETAG,
    header::LINK,
    header::LOCATION,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("stream-closed"),
    HeaderName::from_static("stream-cursor"),
    HeaderName::from_static("stream-next-offset"),
    HeaderName::from_static("stream-up-to-date"),
    HeaderName::from_static("upload-offset"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-run-id"),
    HeaderName::from_static("x-should-retry"),
    HeaderName::from_static("x-vercel-ai-ui-message-stream"),
    HeaderName::from_static("x-workflow-run-id"),
    HeaderName::from_static("x-workflow-stream-tail-index"),
];

/// Returns the layer, or `None` if the settings name no origins.
pub fn layer(config: &ApiConfig) -> Option<CorsLayer> {
    if config.cors_origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins(config)))
        .allow_methods(METHODS)
        // SDKs add headers of their own, and others with each version, so a page may send any.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE);
    Some(if config.cors_credentials { layer.allow_credentials(true) } else { layer })
}

/// Returns the configured origins as browsers send them.
pub fn origins(config: &ApiConfig) -> Vec<HeaderValue> {
    let value = |origin: &String| HeaderValue::from_str(origin).expect("the settings were checked at startup");
    config.cors_origins.iter().map(value).collect()
}
